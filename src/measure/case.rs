//! One case on one device: what the device gave, and the row that it makes.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::marks::marks;
use super::poll::{Poller, Stamped};
use super::soak::{Soaked, Soaking, soak};
use super::telemetry::{Sampled, summarise};
use super::tune::{self, Found};
use super::{Bounds, Budget, Samples, sample, statistics, stop_rules, verdict, verify, warm_up};
use crate::device::{Device, DeviceError, Program, Variant, Verification};
use crate::pattern::{
    CacheState, Case, Data, DeviceKind, Facts, Form, Level, Parameters, Profile, Told, Ways, link_directions, pattern_of,
};
use crate::record::{Claim, Measurement, Missing, Peaks, Status, Tuning, TuningSource, known};

/// The run was ended by the user; the document holds the finished cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted; the document holds the cases that were finished")]
pub struct Interrupted;

/// What measuring a case gave.
#[derive(Debug, PartialEq)]
pub struct Measured {
    /// The row for the document.
    pub row: Measurement,
    /// Whether the device was lost in this case, so that no other can be measured on it.
    pub device_lost: bool,
}

/// What holds for all cases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How much is measured.
    pub profile: Profile,
    /// What the inputs hold while they are timed.
    pub data: Data,
    /// What the caches hold when an execution begins.
    pub cache: CacheState,
}

/// What holds for one case alone.
#[derive(Clone, Copy, Default)]
pub struct Particulars<'a> {
    /// The best of the ways in which it can be written, where an earlier search has found it.
    pub form: Option<&'a Form>,
    /// Whether the device is to work at it for long, once it was measured.
    pub soak: Option<Soaking<'a>>,
}

/// Measures one case.
///
/// Of a case that can be written in several ways, the row is of the best: known from an earlier search, or else
/// searched for.
///
/// A failure of the device becomes a row with its reason.
///
/// # Errors
/// Only when `go_on` answers no.
pub fn measure(
    case: &Case,
    device: &mut dyn Device,
    facts: &Facts,
    settings: Settings,
    peaks: &Peaks,
    own: Particulars,
    go_on: &dyn Fn() -> bool,
) -> Result<Measured, Interrupted> {
    match observe(case, device, settings, own, &Budget::of(settings.profile, facts.kind), go_on) {
        Ok(Some(observed)) => Ok(Measured { row: evaluate(case, observed, facts, settings, peaks), device_lost: false }),
        Ok(None) => Err(Interrupted),
        Err(error) => Ok(Measured {
            row: failed(case, settings, facts, status_of_device(&error), error.to_string()),
            device_lost: matches!(error, DeviceError::Lost(_)),
        }),
    }
}

/// The row of a case that gave no figures.
pub fn failed(case: &Case, settings: Settings, facts: &Facts, status: Status, reason: String) -> Measurement {
    let row = Measurement::without_figures(&case.id.to_string(), case.id.pattern(), status, reason);
    Measurement { level: Some(case.level), parameters: parameters(case, settings, facts), ..row }
}

/// The parameters that fix a row: those of the case, and what inputs and caches hold.
fn parameters(case: &Case, settings: Settings, facts: &Facts) -> Parameters {
    let mut parameters = case.parameters.clone();
    parameters.insert("data".into(), settings.data.to_string().into());
    parameters.insert("cache".into(), settings.cache.to_string().into());
    parameters.insert("cache_how".into(), settings.cache.how(facts).into());
    parameters
}

/// What the device gave.
struct Observed {
    variant: Variant,
    memory_taken_bytes: Result<u64, String>,
    tuning: Option<Tuning>,
    samples: Samples,
    told: Told,
    soaked: Option<Soaked>,
    readings: Result<Vec<Stamped>, String>,
    verification: Verification,
    wall_s: f64,
}

/// Runs a case on the device; none when `go_on` answers no.
fn observe(
    case: &Case,
    device: &mut dyn Device,
    settings: Settings,
    own: Particulars,
    budget: &Budget,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Observed>, DeviceError> {
    let started = Instant::now();
    let sensors = device.sensors();
    let mut program = device.load(&case.plan)?;
    program.prepare(settings.data)?;
    let chosen = match &case.ways {
        None => None,
        Some(ways) => match choose(program.as_mut(), ways, own.form, go_on)? {
            None => return Ok(None),
            chosen => chosen,
        },
    };
    let Some(execution_ns) = warm_up(program.as_mut(), budget, go_on)? else { return Ok(None) };
    let poller = sensors.and_then(Poller::start);
    let samples = sample(program.as_mut(), execution_ns, settings.cache, budget, &stop_rules(budget), go_on);
    let ended = poller.and_then(Poller::end);
    let Some(samples) = samples? else { return Ok(None) };
    let told = match case.report {
        Some(report) => (report.read)(&program.read(report.buffer)?),
        None => Told::default(),
    };
    let (readings, sensors) = ended.map_or_else(|why| (Err(why.clone()), Err(why)), |(readings, sensors)| (Ok(readings), Ok(sensors)));
    let soaked = match own.soak {
        None => None,
        Some(soaking) => match soak(program.as_mut(), statistics::median(&samples.ns), soaking, sensors, go_on)? {
            None => return Ok(None),
            soaked => soaked,
        },
    };
    let verification = verify(program.as_mut(), &case.plan, settings.data)?;
    let verification = soaked.iter().fold(verification, |found, soaked| found.and(soaked.verification));
    let (variant, memory_taken_bytes) = (program.variant(), program.memory_taken_bytes());
    let tuning = match (&case.ways, chosen) {
        (Some(ways), Some(chosen)) => {
            let best_ns = statistics::median(&samples.ns);
            let tuning = tune::compare(program.as_mut(), case, ways, settings, chosen, best_ns, go_on)?;
            if tuning.is_none() {
                return Ok(None);
            }
            tuning
        }
        _ => None,
    };
    Ok(Some(Observed {
        variant,
        memory_taken_bytes,
        tuning,
        samples,
        told,
        soaked,
        readings,
        verification,
        wall_s: started.elapsed().as_secs_f64(),
    }))
}

/// Has the program work in the best of the ways, the one that is known or else one that is searched for; none
/// when `go_on` answers no.
fn choose(
    program: &mut dyn Program,
    ways: &Ways,
    known: Option<&Form>,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<(Found, TuningSource)>, DeviceError> {
    let known = known.filter(|form| ways.of(form).is_some()).map(|&form| (Found { form, tried: 0 }, TuningSource::Known));
    let chosen = match known {
        Some(known) => Some(known),
        None => tune::search(program, ways, go_on)?.map(|found| (found, TuningSource::Searched)),
    };
    if let Some(way) = chosen.as_ref().and_then(|(found, _)| ways.of(&found.form)) {
        program.take(way)?;
    }
    Ok(chosen)
}

/// Above this, the clocks of device and machine contradict each other: no work ends before it was waited for.
const HOST_FRACTION_MOST: f64 = 1.01;

/// Below this, a copy over the link took longer than the events beside it saw. The driver's part in copying pageable
/// memory is work of the processor, which events enclose only where the device waits for it.
const HOST_FRACTION_LEAST: f64 = 0.9;

/// Turns what the device gave into a row.
fn evaluate(case: &Case, observed: Observed, facts: &Facts, settings: Settings, peaks: &Peaks) -> Measurement {
    let time = observed.samples.time();
    let median = time.median;
    let theoretical = peaks.memory_theoretical_gbps();
    let bytes = case.bytes.and_read(observed.told.read_bytes);
    let achieved_gbps = bytes.requested() as f64 / median;
    let achieved_gflops = case.flops as f64 / median;

    let mut missing = Missing::new();
    missing.insert("bytes.dram".into(), "no hardware counters were imported".into());
    missing.insert("contention".into(), "no other device was measured at the same time".into());
    let sampled = Sampled {
        seconds: observed.samples.ns.iter().sum::<f64>() * f64::from(observed.samples.executions) / 1e9,
        requested_bytes: requested_bytes(case, &observed.samples),
    };
    let telemetry = known(&mut missing, "telemetry", observed.readings.map(|readings| summarise(&readings, sampled)));
    let soak = observed.soaked.as_ref().map(|soaked| soaked.summarise(bytes.requested(), not_of_memory(case), &no_clock(facts.kind)));
    let soak = known(&mut missing, "soak", soak.ok_or_else(|| "not asked for".to_owned()));
    let sm_clock_mhz = known(&mut missing, "sm_clock_mhz", observed.samples.sm_clock_mhz.ok_or_else(|| no_clock(facts.kind)));
    let theoretical_gflops = known(&mut missing, "theoretical_gflops", theoretical_gflops(case, facts, sm_clock_mhz));
    let fraction_of_theoretical = theoretical_gflops.map(|theoretical| achieved_gflops / theoretical);
    if fraction_of_theoretical.is_none() {
        missing.insert("fraction_of_theoretical".into(), "there is no theoretical_gflops".into());
    }
    let fraction_of_peak = known(&mut missing, "fraction_of_peak", fraction_of_peak(case, achieved_gbps, theoretical));
    let fraction_of_link = known(&mut missing, "fraction_of_link", fraction_of_link(case, achieved_gbps, peaks.link_theoretical_gbps()));
    let latency_ns = known(&mut missing, "latency_ns", latency_ns(case, median));
    let latency_cycles = latency_ns.zip(sm_clock_mhz).map(|(ns, mhz)| ns * mhz / 1e3).ok_or("there is no latency_ns, or no clock");
    let latency_cycles = known(&mut missing, "latency_cycles", latency_cycles.map_err(str::to_owned));
    let mut notes = [case.notes.clone(), observed.told.notes].concat();
    let compute_utilization = known(&mut missing, "compute_utilization", utilization(case, achieved_gflops, facts, peaks));
    if compute_utilization.is_some_and(|utilization| utilization > 1.0) {
        notes.push("above the arithmetic peak that this run measured: that was too low, so repeat the run on an idle machine".to_owned());
    }
    if case.compute_pipe.is_none() {
        missing.insert("compute_pipe".into(), if case.flops == 0 { "the case has no floating-point operations" } else { NO_PEAK }.into());
    }
    let footprint = case.plan.footprint_bytes();
    if facts.cache_bytes.is_none() && case.level == Level::Dram {
        notes.push(format!("the size of the last cache is not known: these {footprint} bytes may have been served from it in part"));
    }
    let cache_fraction = facts
        .cache_bytes
        .map(|cache| cache as f64 / footprint.max(1) as f64)
        .ok_or_else(|| "the size of the last cache is not known".to_owned());
    if observed.tuning.is_none() {
        missing.insert("tuning".into(), "the case is written in one way".into());
    }
    if case.bytes.issued.is_none() {
        missing.insert("bytes.issued".into(), "nobody counts the loads and stores of this kernel".into());
    }
    if observed.verification.passed() {
        missing.insert("first_bad_index".into(), "every result was right".into());
    }

    if settings.cache == CacheState::Cold {
        notes.push("cold: each execution was timed by itself, so the time of one includes what starting it costs".to_owned());
    }
    if observed.samples.host_fraction > HOST_FRACTION_MOST {
        notes.push(format!(
            "the device's clock says {:.2} times what this machine's says of the same samples: one of them is wrong, so do not trust the times",
            observed.samples.host_fraction
        ));
    }
    if link_directions(&case.id.to_string()).is_some() && observed.samples.host_fraction < HOST_FRACTION_LEAST {
        notes.push(format!(
            "the device's clock saw {:.2} of the time that the copies took by this machine's: what the processor did for them may be missing",
            observed.samples.host_fraction
        ));
    }
    if let Some(soaked) = observed.soaked.filter(|soaked| !soaked.verification.passed()) {
        let wrong = soaked.verification.mismatches.saturating_add(soaked.verification.stray);
        notes.push(format!("{wrong} results were wrong at the end of the soak"));
    }
    if observed.verification.stray > 0 {
        notes.push(format!("{} words beside the buffers were overwritten", observed.verification.stray));
    }

    let mut found = Vec::new();
    for (mark, note) in marks(time.noise_fraction, telemetry.as_ref()) {
        notes.push(note);
        if !found.contains(&mark) {
            found.push(mark);
        }
    }

    let mut row = Measurement {
        id: case.id.to_string(),
        pattern: case.id.pattern().to_owned(),
        level: Some(case.level),
        parameters: parameters(case, settings, facts),
        variant: observed.variant,
        status: Status::Ok,
        reason: None,
        cache_fraction: known(&mut missing, "cache_fraction", cache_fraction),
        footprint_bytes: Some(footprint),
        memory_taken_bytes: known(&mut missing, "memory_taken_bytes", observed.memory_taken_bytes),
        notes,
        bytes: Some(bytes),
        flops: Some(case.flops),
        compute_pipe: case.compute_pipe.map(|pipe| pipe.name().to_owned()),
        time_ns: Some(time),
        samples_ns: observed.samples.ns,
        achieved_gbps: Some(achieved_gbps),
        compulsory_gbps: Some(bytes.compulsory as f64 / median),
        fraction_of_peak,
        fraction_of_link,
        latency_ns,
        latency_cycles,
        achieved_gflops: Some(achieved_gflops),
        compute_utilization,
        theoretical_gflops,
        fraction_of_theoretical,
        sm_clock_mhz,
        tuning: observed.tuning,
        telemetry,
        contention: None,
        soak,
        verified: Some(observed.verification.passed()),
        mismatches: Some(observed.verification.mismatches.saturating_add(observed.verification.stray)),
        first_bad_index: observed.verification.first_bad,
        verdict: None,
        marks: found,
        wall_s: Some(observed.wall_s),
        missing,
    };
    row.verdict = Some(verdict(&Claim::from(&row), Bounds::of(peaks, facts.cache_bytes)));
    row
}

/// The time of one access in a case that measures it.
fn latency_ns(case: &Case, median_ns: f64) -> Result<f64, String> {
    case.accesses.map(|accesses| median_ns / accesses as f64).ok_or_else(|| "the case measures no latency".into())
}

/// Why the bandwidth of a case is not that of the memory; none where it is.
fn not_of_memory(case: &Case) -> Option<&'static str> {
    if case.accesses.is_some() {
        return Some("the case measures a latency");
    }
    (case.level != Level::Dram).then_some("the case does not exercise the memory alone")
}

/// What the memory was asked for in all samples, if that is what the case exercises.
fn requested_bytes(case: &Case, samples: &Samples) -> Result<f64, &'static str> {
    not_of_memory(case).map_or(Ok(()), Err)?;
    Ok(case.bytes.requested() as f64 * samples.ns.len() as f64 * f64::from(samples.executions))
}

fn fraction_of_peak(case: &Case, achieved_gbps: f64, theoretical_gbps: Option<f64>) -> Result<f64, String> {
    not_of_memory(case).map_or(Ok(()), Err)?;
    theoretical_gbps.map(|peak| achieved_gbps / peak).ok_or_else(|| "the theoretical peak is not known".into())
}

/// Achieved over what the link carries in the directions that the case keeps busy.
fn fraction_of_link(case: &Case, achieved_gbps: f64, link_gbps: Option<f64>) -> Result<f64, String> {
    let directions = link_directions(&case.id.to_string()).ok_or("the case copies nothing over the link to the processor")?;
    link_gbps.map(|link| achieved_gbps / (link * directions as f64)).ok_or_else(|| "what the link carries is not known".into())
}

/// What stands in for the utilization of such arithmetic.
const NO_PEAK: &str = "no arithmetic peak of this type is measured";

/// Achieved over the measured peak of the case's pipe. A compute case refers to
/// the best of its pipe, itself included.
fn utilization(case: &Case, achieved_gflops: f64, facts: &Facts, peaks: &Peaks) -> Result<f64, String> {
    let Some(pipe) = case.compute_pipe else { return if case.flops == 0 { Ok(0.0) } else { Err(NO_PEAK.into()) } };
    let measured = peaks.compute_measured_gflops(pipe.name());
    let own = (pipe.peak_case() == case.id).then_some(achieved_gflops);
    match measured.into_iter().chain(own).max_by(f64::total_cmp) {
        Some(peak) => Ok(achieved_gflops / peak),
        None if pattern_of(&pipe.peak_case()).is_some_and(|pattern| pattern.case(&pipe.peak_case(), facts).is_ok()) => {
            Err(format!("{} gave no sound figure in this run", pipe.peak_case()))
        }
        None => Err(NO_PEAK.into()),
    }
}

fn no_clock(kind: DeviceKind) -> String {
    match kind {
        DeviceKind::Host => "a processor's clock cannot be read without privileges".into(),
        DeviceKind::Cuda => "no multiprocessor gave its time and cycles both before and after a sample".into(),
    }
}

/// Multiprocessors x operations of each a clock x the clock that they ran at.
fn theoretical_gflops(case: &Case, facts: &Facts, sm_clock_mhz: Option<f64>) -> Result<f64, String> {
    let pipe = case.compute_pipe.filter(|pipe| pipe.peak_case() == case.id).ok_or("the case is no arithmetic peak")?;
    let capability = facts.capability.ok_or("the operations a clock of this processor are not known")?;
    let per_clock = pipe
        .flops_per_clock(capability)
        .ok_or_else(|| format!("the operations a clock of compute capability {}.{} are not known", capability.0, capability.1))?;
    let mhz = sm_clock_mhz.ok_or("the clock is not known")?;
    Ok(f64::from(facts.units) * f64::from(per_clock) * mhz / 1e3)
}

fn status_of_device(error: &DeviceError) -> Status {
    match error {
        DeviceError::Unsupported(_) => Status::Unsupported,
        _ => Status::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{SETTINGS, Sensing, Steady, peaks, row};
    use crate::pattern::{self, CaseId};
    use crate::record::{Mark, Peak, Provenance, Verdict};
    use std::cell::Cell;

    #[test]
    fn bandwidth_counts_requested_bytes_over_the_median_and_utilization_the_measured_peak() {
        let mut device = Steady { ns: 3e6, mismatches: 0, failing: false, ..Steady::default() };
        let row = row("stream/triad/f32@4026531840", &mut device, &peaks(4814.3, 65_000.0));
        assert_eq!(row.achieved_gbps, Some(3.0 * 4_026_531_840.0 / 3e6));
        assert_eq!(row.fraction_of_peak, row.achieved_gbps.map(|g| g / 4814.3));
        assert_eq!(row.achieved_gflops, Some(2.0 * 1_006_632_960.0 / 3e6));
        assert_eq!(row.compute_utilization, row.achieved_gflops.map(|g| g / 65_000.0));
        assert_eq!(row.verdict, Some(Verdict::Ok));
    }

    #[test]
    fn wrong_data_make_a_row_unverified_and_name_the_first_index() {
        let mut device = Steady { ns: 3e6, mismatches: 2, failing: false, ..Steady::default() };
        let row = row("stream/copy/f32", &mut device, &peaks(4814.3, 65_000.0));
        assert_eq!((row.verified, row.mismatches, row.first_bad_index), (Some(false), Some(2), Some(3)));
        assert_eq!(row.verdict, Some(Verdict::Unverified));
        assert!(!row.is_sound());
    }

    #[test]
    fn a_row_says_what_its_caches_held_and_how_that_came_about() {
        let mut device = Steady { ns: 3e6, ..Steady::default() };
        let hot = row("stream/copy/f32", &mut device, &Peaks::default());
        assert_eq!((&hot.parameters["cache"], device.evictions), (&"hot".into(), 0));
        let case = pattern::plan(&CaseId::new("stream/copy/f32"), &Facts::H200).unwrap();
        let settings = Settings { cache: CacheState::Cold, ..SETTINGS };
        let cold = measure(&case, &mut device, &Facts::H200, settings, &Peaks::default(), Particulars::default(), &|| true).unwrap().row;
        assert_eq!(cold.parameters["cache"], "cold");
        assert!(cold.parameters["cache_how"].as_str().unwrap().starts_with("125829120 bytes of other memory"));
        assert!(device.evictions > 0 && cold.notes.iter().any(|note| note.starts_with("cold: ")));
    }

    #[test]
    fn a_transfer_is_a_share_of_the_link_in_its_directions_and_none_of_the_memory() {
        let link = vec![Peak { value: 63.0, provenance: Provenance::DeviceAttributes }];
        let peaks = Peaks { link_gbps: link, ..peaks(4814.3, 65_000.0) };
        for (id, directions) in [("transfer/h2d/pinned", 1.0), ("transfer/both/pinned", 2.0)] {
            let row = row(id, &mut Steady { ns: directions * 5e6, ..Steady::default() }, &peaks);
            let gbps = f64::from(256 << 20) / 5e6;
            assert_eq!((row.achieved_gbps, row.fraction_of_link), (Some(gbps), Some(gbps / (63.0 * directions))), "{id}");
            assert_eq!((row.fraction_of_peak, row.verdict), (None, Some(Verdict::Ok)), "{id}");
        }
        let faster = row("transfer/d2h/pinned", &mut Steady { ns: 4e6, ..Steady::default() }, &peaks);
        assert_eq!(faster.verdict, Some(Verdict::AbovePeak));
        let unknown = row("transfer/d2h/pinned", &mut Steady { ns: 4e6, ..Steady::default() }, &Peaks::default());
        assert_eq!((unknown.fraction_of_link, unknown.verdict), (None, Some(Verdict::Ok)));
        assert!(unknown.missing["fraction_of_link"].contains("not known"));
        let copy = row("stream/copy/f32", &mut Steady { ns: 3e6, ..Steady::default() }, &peaks);
        assert!(copy.fraction_of_link.is_none() && copy.missing.contains_key("fraction_of_link"));
    }

    #[test]
    fn memory_that_the_device_did_not_lose_is_told_and_judged() {
        let mut device = Steady { ns: 3e6, taken_bytes: Some(0), ..Steady::default() };
        let row = row("stream/copy/f32", &mut device, &Peaks::default());
        assert_eq!((row.footprint_bytes, row.memory_taken_bytes), (Some(2 * 64 * (60 << 20)), Some(0)));
        assert_eq!(row.verdict, Some(Verdict::Spilled));
    }

    #[test]
    fn a_latency_is_the_time_of_one_access_and_no_share_of_the_peak() {
        let mut device = Steady { ns: 20e6, taken_bytes: Some(1 << 30), ..Steady::default() };
        let chase = row("latency/chase/1073741824", &mut device, &peaks(4814.3, 65_000.0));
        let ns = 20e6 / 32_768.0;
        assert_eq!((chase.latency_ns, chase.latency_cycles), (Some(ns), Some(ns * 1980.0 / 1e3)));
        assert_eq!((chase.level, chase.fraction_of_peak), (Some(Level::Dram), None));
        assert!(chase.missing["fraction_of_peak"].contains("latency") && chase.is_sound());
        let copy = row("stream/copy/f32", &mut Steady { ns: 3e6, ..Steady::default() }, &Peaks::default());
        assert_eq!((copy.latency_ns, copy.latency_cycles), (None, None));
        assert!(copy.missing.contains_key("latency_ns") && copy.missing.contains_key("latency_cycles"));
    }

    #[test]
    fn what_a_kernel_tells_that_it_read_counts_as_requested() {
        // Each of the 131 x 31 warps read seven tiles of 4 KiB.
        let held = [9u32, 9, 7, 0].repeat(131 * 31);
        let mut device = Steady { ns: 20e6, held, taken_bytes: Some(1 << 40), ..Steady::default() };
        let loaded = row("latency/loaded/50", &mut device, &peaks(4814.3, 65_000.0));
        let (links, read) = (16_384 * 8, 131 * 31 * 7 * 4096);
        let bytes = loaded.bytes.unwrap();
        assert_eq!((bytes.requested_read, bytes.compulsory, bytes.issued), (links + read, 4 * links + read, Some(links + read)));
        assert_eq!(loaded.achieved_gbps, Some((links + read) as f64 / 20e6));
        assert_eq!(loaded.latency_ns, Some(20e6 / 16_384.0));
        assert!(loaded.is_sound());
    }

    #[test]
    fn what_a_kernel_tells_its_reader_becomes_a_note() {
        let held = [[1u32, 0, 0, 0].repeat(32), [1, 0, 0, 0].repeat(32)].concat();
        let mut device = Steady { ns: 20e6, held, taken_bytes: Some(1 << 40), ..Steady::default() };
        let read = row("saturation/read/2", &mut device, &peaks(4814.3, 65_000.0));
        assert!(read.notes.iter().any(|note| note.contains("2 blocks ran on 1 multiprocessors")), "{:?}", read.notes);
    }

    #[test]
    fn more_than_the_peak_is_no_result() {
        let mut device = Steady { ns: 1e6, mismatches: 0, failing: false, ..Steady::default() };
        assert_eq!(row("stream/copy/f32", &mut device, &peaks(4814.3, 65_000.0)).verdict, Some(Verdict::AbovePeak));
    }

    #[test]
    fn a_case_that_cannot_be_loaded_is_a_row_with_its_reason() {
        let mut device = Steady { ns: 1e6, mismatches: 0, failing: true, ..Steady::default() };
        let row = row("stream/copy/f32", &mut device, &Peaks::default());
        assert_eq!(row.status, Status::Error);
        assert_eq!(row.reason.as_deref(), Some("out of memory: none left"));
        assert_eq!((row.achieved_gbps, row.verdict), (None, None));
    }

    #[test]
    fn without_a_sound_peak_the_utilization_is_null_with_the_reason() {
        let mut device = Steady { ns: 3e6, mismatches: 0, failing: false, ..Steady::default() };
        let row = row("stream/triad/f32", &mut device, &Peaks::default());
        assert_eq!(row.compute_utilization, None);
        assert!(row.missing["compute_utilization"].contains("compute/fma/f32"));
        assert_eq!(row.fraction_of_peak, None);
        assert!(row.missing.contains_key("fraction_of_peak"));
    }

    #[test]
    fn a_peak_is_compared_with_all_multiprocessors_at_the_clock_of_the_samples() {
        let mut device = Steady { ns: 3e6, mismatches: 0, failing: false, ..Steady::default() };
        let peak = row("compute/fma/f32", &mut device, &Peaks::default());
        assert_eq!(peak.sm_clock_mhz, Some(1980.0));
        assert_eq!(peak.theoretical_gflops, Some(132.0 * 256.0 * 1.98));
        assert_eq!(peak.fraction_of_theoretical, Some(peak.achieved_gflops.unwrap() / (132.0 * 256.0 * 1.98)));
        let triad = row("stream/triad/f32", &mut device, &Peaks::default());
        assert_eq!(triad.theoretical_gflops, None);
        assert!(triad.missing.contains_key("theoretical_gflops") && triad.missing.contains_key("fraction_of_theoretical"));
    }

    #[test]
    fn more_than_the_measured_arithmetic_peak_is_noted() {
        let mut device = Steady { ns: 3e6, mismatches: 0, failing: false, ..Steady::default() };
        let row = row("stream/triad/f32", &mut device, &peaks(4814.3, 100.0));
        assert!(row.compute_utilization.unwrap() > 1.0 && row.notes.iter().any(|note| note.contains("was too low")), "{:?}", row.notes);
    }

    #[test]
    fn an_unknown_cache_is_said_in_every_row_that_claims_memory() {
        let unknown = Facts { cache_bytes: None, ..Facts::H200 };
        let case = pattern::plan(&CaseId::new("stream/copy/f32@4096"), &unknown).unwrap();
        let mut device = Steady { ns: 3e6, mismatches: 0, failing: false, ..Steady::default() };
        let row = measure(&case, &mut device, &unknown, SETTINGS, &Peaks::default(), Particulars::default(), &|| true).unwrap().row;
        assert!(row.notes.iter().any(|note| note.contains("8192 bytes")), "{:?}", row.notes);
        assert!(row.missing.contains_key("cache_fraction"));
    }

    #[test]
    fn sensors_that_are_read_while_a_case_runs_make_its_telemetry_and_marks() {
        let mut device = Sensing(Steady { ns: 3e6, mismatches: 0, failing: false, ..Steady::default() });
        let case = pattern::plan(&CaseId::new("stream/copy/f32@4026531840"), &Facts::H200).unwrap();
        let row = measure(&case, &mut device, &Facts::H200, SETTINGS, &Peaks::default(), Particulars::default(), &|| true).unwrap().row;
        let telemetry = row.telemetry.unwrap();
        assert!(telemetry.readings > 0);
        // 600 W for 3 ms a copy of 2 x 4026531840 bytes.
        let joules_per_gb = 600.0 * 3e-3 / (2.0 * 4.026_531_84);
        assert!((telemetry.joules_per_gb.unwrap() / joules_per_gb - 1.0).abs() < 1e-9, "{telemetry:?}");
        assert_eq!(row.marks, [Mark::Shared]);
        assert!(row.notes.iter().any(|note| note.contains("3 other processes")), "{:?}", row.notes);
        assert_eq!((row.verdict, row.verified), (Some(Verdict::Ok), Some(true)));
    }

    #[test]
    fn a_device_without_sensors_has_rows_without_telemetry_and_the_reason() {
        let row = row("stream/copy/f32", &mut Steady { ns: 3e6, mismatches: 0, failing: false, ..Steady::default() }, &Peaks::default());
        assert_eq!((row.telemetry, row.missing["telemetry"].as_str()), (None, "no sensors"));
        assert!(row.marks.is_empty());
    }

    #[test]
    fn a_soak_leaves_the_rows_own_figures_and_is_null_where_nobody_asked() {
        let plain = row("stream/copy/f32", &mut Steady { ns: 3e6, ..Steady::default() }, &Peaks::default());
        assert_eq!((plain.soak.as_ref(), plain.missing["soak"].as_str()), (None, "not asked for"));
        let soaked = soaked(&mut Steady { ns: 3e6, ..Steady::default() }, &|| true).unwrap();
        let soak = soaked.soak.as_ref().unwrap();
        assert_eq!(soak.asked_s, 60);
        assert!((soak.first_10_s_gbps / plain.achieved_gbps.unwrap() - 1.0).abs() < 1e-9);
        assert_eq!((&soaked.samples_ns, soaked.achieved_gbps, soaked.verdict), (&plain.samples_ns, plain.achieved_gbps, plain.verdict));
        assert!(!soaked.missing.contains_key("soak") && soaked.is_sound());
    }

    #[test]
    fn wrong_results_at_the_end_of_a_soak_make_the_row_unverified() {
        let row = soaked(&mut Steady { ns: 3e6, mismatches: 2, ..Steady::default() }, &|| true).unwrap();
        // Those as the soak left them, and those of the execution after it.
        assert_eq!((row.verified, row.mismatches, row.verdict), (Some(false), Some(4), Some(Verdict::Unverified)));
        assert!(row.notes.iter().any(|note| note.contains("2 results were wrong at the end of the soak")), "{:?}", row.notes);
    }

    #[test]
    fn a_soak_that_is_interrupted_keeps_no_row() {
        let asked = Cell::new(0);
        // Some hundred times before the soak, 240 times in it.
        assert_eq!(soaked(&mut Steady { ns: 3e6, ..Steady::default() }, &|| asked.replace(asked.get() + 1) < 200), None);
        assert!(asked.get() > 200);
    }

    #[test]
    fn sensors_are_read_in_the_samples_and_again_in_the_soak() {
        let case = pattern::plan(&CaseId::new("stream/copy/f32"), &Facts::H200).unwrap();
        let own = Particulars { soak: Some(Soaking { seconds: 60, on: &|_| () }), ..Particulars::default() };
        let mut device = Sensing(Steady { ns: 3e6, ..Steady::default() });
        let row = measure(&case, &mut device, &Facts::H200, SETTINGS, &Peaks::default(), own, &|| true).unwrap().row;
        assert_eq!(row.telemetry.unwrap().power_max_w, Some(600.0));
        let soak = row.soak.unwrap();
        assert_eq!((soak.power_mean_w, soak.temperature_gpu_max_c), (Some(600.0), None));
        // 600 W for 3 ms a copy.
        let joules_per_gb = 600.0 * 3e-3 / (row.bytes.unwrap().requested() as f64 / 1e9);
        assert!((soak.joules_per_gb.unwrap() / joules_per_gb - 1.0).abs() < 1e-9);
    }

    /// The row of a copy with a soak of a minute.
    fn soaked(device: &mut Steady, go_on: &dyn Fn() -> bool) -> Option<Measurement> {
        let case = pattern::plan(&CaseId::new("stream/copy/f32"), &Facts::H200).unwrap();
        let own = Particulars { soak: Some(Soaking { seconds: 60, on: &|_| () }), ..Particulars::default() };
        measure(&case, device, &Facts::H200, SETTINGS, &Peaks::default(), own, go_on).ok().map(|measured| measured.row)
    }

    #[test]
    fn an_interruption_keeps_no_half_measured_row() {
        let asked = Cell::new(0);
        let go_on = || asked.replace(asked.get() + 1) < 3;
        let case = pattern::plan(&CaseId::new("stream/copy/f32"), &Facts::H200).unwrap();
        let mut device = Steady { ns: 3e6, mismatches: 0, failing: false, ..Steady::default() };
        let outcome = measure(&case, &mut device, &Facts::H200, SETTINGS, &Peaks::default(), Particulars::default(), &go_on);
        assert_eq!(outcome, Err(Interrupted));
    }
}
