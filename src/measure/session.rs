//! One run of one device: plan every case, measure each, keep the document current.

use std::time::Instant;

use super::{Budget, sample, statistics, stop_rules, verdict};
use crate::device::{Device, DeviceError};
use crate::pattern::{self, Case, CaseId, Facts, Pipe, PlanError, Profile};
use crate::record::{self, Measurement, Missing, Peak, Peaks, Provenance, Run, Status, Time, known};

/// The run was ended by the user; the document holds the finished cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted; the document holds the cases that were finished")]
pub struct Interrupted;

/// Why a session ended early.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// By the user.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The document could not be kept.
    #[error(transparent)]
    Save(#[from] record::SaveError),
}

/// Every case of a run, planned against one reading of the device.
pub struct Plans {
    facts: Facts,
    planned: Vec<(CaseId, Result<Case, PlanError>)>,
}

impl Plans {
    /// Plans `ids`, preceded by the compute peaks that they refer to.
    pub fn new(ids: &[CaseId], facts: &Facts) -> Self {
        let plan = |id: &CaseId| (id.clone(), pattern::plan(id, facts));
        let mut planned: Vec<_> = ids.iter().map(plan).collect();
        let mut pipes: Vec<Pipe> = planned.iter().filter_map(|(_, case)| case.as_ref().ok()?.compute_pipe).collect();
        pipes.sort();
        pipes.dedup();
        let peaks = pipes.into_iter().map(Pipe::peak_case).filter(|peak| !ids.contains(peak));
        planned.splice(0..0, peaks.map(|peak| plan(&peak)).collect::<Vec<_>>());
        Self { facts: facts.clone(), planned }
    }

    /// How many rows the run will have.
    pub fn len(&self) -> usize {
        self.planned.len()
    }

    /// Whether there is nothing to measure.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    /// The first plan error, for which `wanted` is true.
    pub fn error(&self, wanted: impl Fn(&CaseId, &PlanError) -> bool) -> Option<&PlanError> {
        self.planned.iter().find_map(|(id, case)| case.as_ref().err().filter(|e| wanted(id, e)))
    }

    /// Whether no case is left that exercises the memory itself.
    pub fn no_dram_left(&self) -> bool {
        !self.planned.iter().any(|(_, case)| case.as_ref().is_ok_and(|case| case.level == pattern::Level::Dram))
    }
}

/// What happens in a session, in time.
pub enum Event<'a> {
    /// A case begins.
    Started(&'a CaseId),
    /// A case has ended; the document is saved after this.
    Finished(&'a Measurement),
}

/// Measures every planned case into `run`, calling `save` after each.
///
/// # Errors
/// When `go_on` answers no, or the document cannot be saved.
pub fn run(
    device: &mut dyn Device,
    plans: &Plans,
    run: &mut Run,
    go_on: &dyn Fn() -> bool,
    on: &mut dyn FnMut(Event),
    save: &dyn Fn(&Run) -> Result<(), record::SaveError>,
) -> Result<(), SessionError> {
    for (id, planned) in &plans.planned {
        on(Event::Started(id));
        let row = match planned {
            Ok(case) => measure(case, device, &plans.facts, run.profile, &run.peaks, go_on)?,
            Err(error) => Measurement::without_figures(&id.to_string(), id.pattern(), Status::Skipped, error.to_string()),
        };
        note_peak(&mut run.peaks, &row);
        on(Event::Finished(&row));
        run.measurements.push(row);
        save(run)?;
    }
    run.finished_at = Some(record::now());
    run.complete = true;
    save(run)?;
    Ok(())
}

fn status_of_device(error: &DeviceError) -> Status {
    match error {
        DeviceError::Unsupported(_) => Status::Unsupported,
        _ => Status::Error,
    }
}

/// Enters a measured compute peak among those that later rows refer to.
fn note_peak(peaks: &mut Peaks, row: &Measurement) {
    if row.pattern == "compute"
        && row.is_sound()
        && let (Some(pipe), Some(value)) = (&row.compute_pipe, row.achieved_gflops)
    {
        peaks.compute_gflops.entry(pipe.clone()).or_default().push(Peak { value, provenance: Provenance::Measured });
    }
}

/// Measures one case.
///
/// A failure of the device becomes a row with its reason.
///
/// # Errors
/// Only when `go_on` answers no.
pub fn measure(
    case: &Case,
    device: &mut dyn Device,
    facts: &Facts,
    profile: Profile,
    peaks: &Peaks,
    go_on: &dyn Fn() -> bool,
) -> Result<Measurement, Interrupted> {
    let started = Instant::now();
    match figures(case, device, facts, profile, peaks, go_on) {
        Ok(Some(mut row)) => {
            row.wall_s = Some(started.elapsed().as_secs_f64());
            Ok(row)
        }
        Ok(None) => Err(Interrupted),
        Err(error) => Ok(failed(case, &error)),
    }
}

fn failed(case: &Case, error: &DeviceError) -> Measurement {
    let row = Measurement::without_figures(&case.id.to_string(), case.id.pattern(), status_of_device(error), error.to_string());
    Measurement { level: Some(case.level), parameters: case.parameters.clone(), ..row }
}

fn figures(
    case: &Case,
    device: &mut dyn Device,
    facts: &Facts,
    profile: Profile,
    peaks: &Peaks,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Measurement>, DeviceError> {
    let mut program = device.load(&case.plan)?;
    let budget = Budget::of(profile, facts.kind);
    let Some(samples) = sample(program.as_mut(), &budget, &stop_rules(&budget), go_on)? else { return Ok(None) };
    let verification = program.verify()?;

    let sorted = statistics::sorted(&samples.ns);
    let median = statistics::quantile(&sorted, 0.5);
    let theoretical = peaks.memory_theoretical_gbps();
    let achieved_gbps = case.bytes.requested() as f64 / median;
    let achieved_gflops = case.flops as f64 / median;

    let mut missing = Missing::new();
    missing.insert("bytes.dram".into(), "no hardware counters were imported".into());
    for field in ["sm_clock_mhz", "telemetry"] {
        missing.insert(field.into(), "this version of the program does not read it".into());
    }
    let fraction_of_peak = known(&mut missing, "fraction_of_peak", fraction_of_peak(case, achieved_gbps, theoretical));
    let compute_utilization = known(&mut missing, "compute_utilization", utilization(case, achieved_gflops, peaks));
    if case.compute_pipe.is_none() {
        missing.insert("compute_pipe".into(), "the case has no floating-point operations".into());
    }
    let footprint = case.plan.footprint_bytes().max(1) as f64;
    let cache_fraction =
        facts.cache_bytes.map(|cache| cache as f64 / footprint).ok_or_else(|| "the size of the last cache is not known".to_owned());
    if case.bytes.issued.is_none() {
        missing.insert("bytes.issued".into(), "nobody counts the loads and stores of this kernel".into());
    }
    if verification.passed() {
        missing.insert("first_bad_index".into(), "every result was right".into());
    }

    Ok(Some(Measurement {
        id: case.id.to_string(),
        pattern: case.id.pattern().to_owned(),
        level: Some(case.level),
        parameters: case.parameters.clone(),
        variant: program.variant(),
        status: Status::Ok,
        reason: None,
        cache_fraction: known(&mut missing, "cache_fraction", cache_fraction),
        notes: case.notes.clone(),
        bytes: Some(case.bytes),
        flops: Some(case.flops),
        compute_pipe: case.compute_pipe.map(|pipe| pipe.name().to_owned()),
        time_ns: Some(Time {
            median,
            p25: statistics::quantile(&sorted, 0.25),
            p75: statistics::quantile(&sorted, 0.75),
            min: statistics::quantile(&sorted, 0.0),
            max: statistics::quantile(&sorted, 1.0),
            noise_fraction: statistics::median_noise(&samples.ns),
            n: samples.ns.len() as u32,
            executions_per_sample: samples.executions,
            stopped_by: samples.stopped_by.to_owned(),
        }),
        samples_ns: samples.ns,
        achieved_gbps: Some(achieved_gbps),
        compulsory_gbps: Some(case.bytes.compulsory as f64 / median),
        fraction_of_peak,
        achieved_gflops: Some(achieved_gflops),
        compute_utilization,
        sm_clock_mhz: None,
        telemetry: None,
        verified: Some(verification.passed()),
        mismatches: Some(verification.mismatches),
        first_bad_index: verification.first_bad,
        verdict: Some(verdict(&verification, case.level, &case.bytes, median, theoretical)),
        wall_s: None,
        missing,
    }))
}

fn fraction_of_peak(case: &Case, achieved_gbps: f64, theoretical_gbps: Option<f64>) -> Result<f64, String> {
    if case.level != pattern::Level::Dram {
        return Err("the case does not exercise the memory alone".into());
    }
    theoretical_gbps.map(|peak| achieved_gbps / peak).ok_or_else(|| "the theoretical peak is not known".into())
}

/// Achieved over the measured peak of the case's pipe. A compute case refers to
/// the best of its pipe, itself included.
fn utilization(case: &Case, achieved_gflops: f64, peaks: &Peaks) -> Result<f64, String> {
    let Some(pipe) = case.compute_pipe else { return Ok(0.0) };
    let measured = peaks.compute_measured_gflops(pipe.name());
    let own = (pipe.peak_case() == case.id).then_some(achieved_gflops);
    match measured.into_iter().chain(own).max_by(f64::total_cmp) {
        Some(peak) => Ok(achieved_gflops / peak),
        None => Err(format!("{} gave no sound figure in this run", pipe.peak_case())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Program, Variant, Verification};
    use crate::pattern::{DeviceKind, Plan};
    use crate::record::Verdict;
    use std::cell::Cell;

    /// A device whose every execution takes `ns`, with `mismatches` wrong results; `failing` loads fail.
    struct Steady {
        ns: f64,
        mismatches: u64,
        failing: bool,
    }

    impl Device for Steady {
        fn facts(&self) -> Result<Facts, DeviceError> {
            Ok(facts())
        }
        fn identity(&self) -> Result<record::Device, DeviceError> {
            Err(DeviceError::Unsupported("nobody".into()))
        }
        fn load<'a>(&'a mut self, _plan: &'a Plan) -> Result<Box<dyn Program + 'a>, DeviceError> {
            if self.failing { Err(DeviceError::OutOfMemory("none left".into())) } else { Ok(Box::new(&mut *self)) }
        }
    }

    impl Program for &mut Steady {
        fn variant(&self) -> Variant {
            Variant::new()
        }
        fn execute(&mut self, executions: u32) -> Result<f64, DeviceError> {
            Ok(self.ns * f64::from(executions))
        }
        fn verify(&mut self) -> Result<Verification, DeviceError> {
            Ok(Verification { mismatches: self.mismatches, first_bad: (self.mismatches > 0).then_some(3) })
        }
    }

    fn facts() -> Facts {
        Facts { kind: DeviceKind::Cuda, cache_bytes: Some(60 << 20), free_bytes: 139 << 30, units: 132, threads_per_unit: 2048 }
    }

    fn row(id: &str, device: &mut Steady, peaks: &Peaks) -> Measurement {
        let case = pattern::plan(&CaseId::new(id), &facts()).unwrap();
        measure(&case, device, &facts(), Profile::Quick, peaks, &|| true).unwrap()
    }

    fn peaks(gbps: f64, gflops: f64) -> Peaks {
        let peak = |value, provenance| vec![Peak { value, provenance }];
        Peaks {
            memory_gbps: peak(gbps, Provenance::DeviceAttributes),
            compute_gflops: [("fma/f32".to_owned(), peak(gflops, Provenance::Measured))].into(),
            missing: Missing::new(),
        }
    }

    #[test]
    fn bandwidth_counts_requested_bytes_over_the_median_and_utilization_the_measured_peak() {
        let mut device = Steady { ns: 3e6, mismatches: 0, failing: false };
        let row = row("stream/triad/f32@4026531840", &mut device, &peaks(4814.3, 65_000.0));
        assert_eq!(row.achieved_gbps, Some(3.0 * 4_026_531_840.0 / 3e6));
        assert_eq!(row.fraction_of_peak, row.achieved_gbps.map(|g| g / 4814.3));
        assert_eq!(row.achieved_gflops, Some(2.0 * 1_006_632_960.0 / 3e6));
        assert_eq!(row.compute_utilization, row.achieved_gflops.map(|g| g / 65_000.0));
        assert_eq!(row.verdict, Some(Verdict::Ok));
    }

    #[test]
    fn wrong_data_make_a_row_unverified_and_name_the_first_index() {
        let mut device = Steady { ns: 3e6, mismatches: 2, failing: false };
        let row = row("stream/copy/f32", &mut device, &peaks(4814.3, 65_000.0));
        assert_eq!((row.verified, row.mismatches, row.first_bad_index), (Some(false), Some(2), Some(3)));
        assert_eq!(row.verdict, Some(Verdict::Unverified));
        assert!(!row.is_sound());
    }

    #[test]
    fn more_than_the_peak_is_no_result() {
        let mut device = Steady { ns: 1e6, mismatches: 0, failing: false };
        assert_eq!(row("stream/copy/f32", &mut device, &peaks(4814.3, 65_000.0)).verdict, Some(Verdict::AbovePeak));
    }

    #[test]
    fn a_case_that_cannot_be_loaded_is_a_row_with_its_reason() {
        let mut device = Steady { ns: 1e6, mismatches: 0, failing: true };
        let row = row("stream/copy/f32", &mut device, &Peaks::default());
        assert_eq!(row.status, Status::Error);
        assert_eq!(row.reason.as_deref(), Some("out of memory: none left"));
        assert_eq!((row.achieved_gbps, row.verdict), (None, None));
    }

    #[test]
    fn without_a_sound_peak_the_utilization_is_null_with_the_reason() {
        let mut device = Steady { ns: 3e6, mismatches: 0, failing: false };
        let row = row("stream/triad/f32", &mut device, &Peaks::default());
        assert_eq!(row.compute_utilization, None);
        assert!(row.missing["compute_utilization"].contains("compute/fma/f32"));
        assert_eq!(row.fraction_of_peak, None);
        assert!(row.missing.contains_key("fraction_of_peak"));
    }

    #[test]
    fn a_wrong_compute_peak_is_no_reference() {
        for (mismatches, known) in [(0, true), (1, false)] {
            let mut peaks = Peaks::default();
            let mut device = Steady { ns: 3e6, mismatches, failing: false };
            note_peak(&mut peaks, &row("compute/fma/f32", &mut device, &Peaks::default()));
            assert_eq!(peaks.compute_measured_gflops("fma/f32").is_some(), known);
        }
    }

    #[test]
    fn the_peak_of_each_pipe_is_planned_first_and_once() {
        let ids = ["stream/copy/f32", "stream/triad/f32"].map(CaseId::new);
        let plans = Plans::new(&ids, &facts());
        let planned: Vec<String> = plans.planned.iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(planned, ["compute/fma/f32", "stream/copy/f32", "stream/triad/f32"]);
    }

    #[test]
    fn an_interruption_keeps_no_half_measured_row() {
        let asked = Cell::new(0);
        let go_on = || asked.replace(asked.get() + 1) < 3;
        let case = pattern::plan(&CaseId::new("stream/copy/f32"), &facts()).unwrap();
        let mut device = Steady { ns: 3e6, mismatches: 0, failing: false };
        let outcome = measure(&case, &mut device, &facts(), Profile::Quick, &Peaks::default(), &go_on);
        assert_eq!(outcome, Err(Interrupted));
    }
}
