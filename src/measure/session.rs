//! One run of one device: plan every case, measure each, keep the document current.

use super::{Interrupted, Settings, measure};
use crate::device::Device;
use crate::pattern::{self, Case, CaseId, Data, Facts, Pipe, PlanError};
use crate::record::{self, Measurement, Peak, Peaks, Provenance, Run, Status};

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
/// Once the device is lost, the cases that are left become rows that say so: asking it
/// again would only repeat, in each of them, an error that is none of theirs.
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
    let settings = Settings { profile: run.profile, data: run.data };
    let mut lost_in: Option<&CaseId> = None;
    for (id, planned) in &plans.planned {
        on(Event::Started(id));
        let skipped = |reason| Measurement::without_figures(&id.to_string(), id.pattern(), Status::Skipped, reason);
        let row = match (planned, lost_in) {
            (Err(error), _) => skipped(error.to_string()),
            (Ok(_), Some(lost_in)) => skipped(format!("not measured: the device was lost to this run in {lost_in}")),
            (Ok(case), None) => {
                let measured = measure(case, device, &plans.facts, settings, &run.peaks, go_on)?;
                lost_in = measured.device_lost.then_some(id);
                measured.row
            }
        };
        note_peak(&mut run.peaks, &row);
        on(Event::Finished(&row));
        run.measurements.push(row);
        save(run)?;
    }
    run.finished_at = Some(record::now());
    run.complete = lost_in.is_none();
    save(run)?;
    Ok(())
}

/// Enters a measured peak: of arithmetic, to which later rows refer, or of the memory.
fn note_peak(peaks: &mut Peaks, row: &Measurement) {
    if row.pattern == "stream"
        && row.level == Some(pattern::Level::Dram)
        && row.is_sound()
        // Memory that compresses may give zeros faster than it can carry them.
        && row.parameters.get("data").is_some_and(|data| *data == Data::Random.to_string())
        && let Some(gbps) = row.achieved_gbps
    {
        peaks.note_memory_measured(gbps);
    }
    if row.pattern == "compute"
        && row.is_sound()
        && let (Some(pipe), Some(value)) = (&row.compute_pipe, row.achieved_gflops)
    {
        peaks.compute_gflops.entry(pipe.clone()).or_default().push(Peak { value, provenance: Provenance::Measured });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceError;
    use crate::measure::testing::{Faulty, Steady, row};

    #[test]
    fn a_wrong_compute_peak_is_no_reference() {
        for (mismatches, known) in [(0, true), (1, false)] {
            let mut peaks = Peaks::default();
            let mut device = Steady { ns: 3e6, mismatches, failing: false, prepared: Vec::new() };
            note_peak(&mut peaks, &row("compute/fma/f32", &mut device, &Peaks::default()));
            assert_eq!(peaks.compute_measured_gflops("fma/f32").is_some(), known);
        }
    }

    #[test]
    fn the_measured_peak_of_the_memory_is_the_best_sound_stream_row_beyond_the_cache() {
        let mut peaks = Peaks::default();
        let steady = |ns, mismatches| Steady { ns, mismatches, failing: false, prepared: Vec::new() };
        for (id, ns, mismatches) in [
            ("stream/copy/f32@4026531840", 2e6, 0),
            ("stream/copy/f32@4026531840", 3e6, 0),
            ("stream/copy/f32@4026531840", 1e6, 1),
            ("stream/copy/f32@4096", 1.0, 0),
            ("stride/read/4", 1e6, 0),
        ] {
            note_peak(&mut peaks, &row(id, &mut steady(ns, mismatches), &Peaks::default()));
        }
        let mut zeros = row("stream/copy/f32@4026531840", &mut steady(1e6, 0), &Peaks::default());
        zeros.parameters.insert("data".into(), "zero".into());
        note_peak(&mut peaks, &zeros);
        assert_eq!(peaks.memory_gbps, [Peak { value: 2.0 * 4_026_531_840.0 / 2e6, provenance: Provenance::Measured }]);
    }

    /// A run of four cases in which loading the second one fails.
    fn run_with(fault: DeviceError) -> (Run, Faulty) {
        let ids = ["stream/read/f32", "stream/write/f32", "stream/copy/f32", "copy_engine/d2d"].map(CaseId::new);
        let mut device =
            Faulty { steady: Steady { ns: 3e6, mismatches: 0, failing: false, prepared: Vec::new() }, fault, nth: 2, loads: 0 };
        let mut document = Run { measurements: Vec::new(), complete: false, ..crate::chart::testing::h200() };
        run(&mut device, &Plans::new(&ids, &Facts::H200), &mut document, &|| true, &mut |_| {}, &|_| Ok(())).unwrap();
        (document, device)
    }

    fn statuses(run: &Run) -> Vec<Status> {
        run.measurements.iter().map(|row| row.status).collect()
    }

    #[test]
    fn cases_after_the_loss_of_the_device_are_not_tried_and_name_the_case_in_which_it_was_lost() {
        let (run, device) = run_with(DeviceError::Lost("gone".into()));
        assert_eq!(statuses(&run), [Status::Ok, Status::Error, Status::Skipped, Status::Skipped]);
        assert_eq!(run.measurements[1].reason.as_deref(), Some("the device was lost to this run: gone"));
        for row in &run.measurements[2..] {
            assert!(row.reason.as_ref().is_some_and(|reason| reason.ends_with("lost to this run in stream/write/f32")), "{:?}", row.reason);
        }
        assert_eq!(device.loads, 2);
        assert!(!run.complete);
    }

    #[test]
    fn a_case_that_fails_alone_leaves_the_others() {
        for fault in [DeviceError::OutOfMemory("none left".into()), DeviceError::Failed("busy".into())] {
            let (run, device) = run_with(fault);
            assert_eq!(statuses(&run), [Status::Ok, Status::Error, Status::Ok, Status::Ok]);
            assert_eq!(device.loads, 4);
            assert!(run.complete);
        }
    }

    #[test]
    fn the_peak_of_each_pipe_is_planned_first_and_once() {
        let ids = ["stream/copy/f32", "stream/triad/f32"].map(CaseId::new);
        let plans = Plans::new(&ids, &Facts::H200);
        let planned: Vec<String> = plans.planned.iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(planned, ["compute/fma/f32", "stream/copy/f32", "stream/triad/f32"]);
    }
}
