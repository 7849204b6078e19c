//! When to time, how long, and when to stop.

use std::time::Instant;

use super::statistics::{median, median_noise, quantile, sorted};
use crate::device::{DeviceError, Program, Timing};
use crate::pattern::{CacheState, DeviceKind, Profile};
use crate::record::Time;

/// Decides after each sample whether the samples are enough.
pub trait StopRule {
    /// The name stored with the samples.
    fn name(&self) -> &'static str;
    /// Whether to stop, given the time of one execution in each sample (ns) and the
    /// time spent in all of them (ns).
    fn is_met(&self, samples_ns: &[f64], spent_ns: f64) -> bool;
}

/// Stops when the median is known well enough.
pub struct Noise {
    /// Half-width of the 95 % interval of the median, over the median.
    pub fraction: f64,
    /// Samples below this count say nothing about noise.
    pub least_samples: usize,
    /// Time that must be spent in samples before noise is trusted, in ns.
    pub least_ns: f64,
}

impl StopRule for Noise {
    fn name(&self) -> &'static str {
        "noise"
    }
    fn is_met(&self, samples_ns: &[f64], spent_ns: f64) -> bool {
        samples_ns.len() >= self.least_samples && spent_ns >= self.least_ns && median_noise(samples_ns) < self.fraction
    }
}

/// Stops when more samples no longer make the median better known: some noise is there to stay.
pub struct Stable {
    /// The latest samples that should have made a difference.
    pub window: usize,
    /// By at least this share of the noise.
    pub improvement_fraction: f64,
    /// Time that must be spent in samples before noise is trusted, in ns.
    pub least_ns: f64,
}

impl StopRule for Stable {
    fn name(&self) -> &'static str {
        "noise_stable"
    }
    fn is_met(&self, samples_ns: &[f64], spent_ns: f64) -> bool {
        let Some(before) = samples_ns.len().checked_sub(self.window).filter(|before| *before >= self.window) else { return false };
        spent_ns >= self.least_ns && median_noise(samples_ns) > median_noise(&samples_ns[..before]) * (1.0 - self.improvement_fraction)
    }
}

/// Stops when the time is up.
pub struct TimeLimit {
    /// Time spent in samples, in ns.
    pub ns: f64,
    /// Samples to take all the same.
    pub least_samples: usize,
}

impl StopRule for TimeLimit {
    fn name(&self) -> &'static str {
        "time"
    }
    fn is_met(&self, samples_ns: &[f64], spent_ns: f64) -> bool {
        samples_ns.len() >= self.least_samples && spent_ns >= self.ns
    }
}

/// Stops at a number of samples.
pub struct Count(
    /// How many.
    pub usize,
);

impl StopRule for Count {
    fn name(&self) -> &'static str {
        "count"
    }
    fn is_met(&self, samples_ns: &[f64], _spent_ns: f64) -> bool {
        samples_ns.len() >= self.0
    }
}

/// Times that bound the measurement of one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// A sample runs at least this long, in ns: the cost of starting and ending it
    /// (about 2 us for a pair of CUDA events) then stays near 0.1 %.
    pub least_sample_ns: f64,
    /// Warm-up takes at least half of this time and at most all of it, in ns.
    pub warm_up_ns: f64,
    /// Samples must fill this time before their noise is trusted, in ns.
    pub least_ns: f64,
    /// Sampling ends at the latest after this time, in ns.
    pub most_ns: f64,
}

/// Samples that a document stores for a row at most.
const MOST_SAMPLES: usize = 64;
/// Samples below which a median means little.
const LEAST_SAMPLES: usize = 5;
/// How often samples that turn out too short are begun again.
const MOST_CORRECTIONS: u32 = 5;
/// Noise at which a median is good enough to tell cards apart.
const NOISE_FRACTION: f64 = 0.005;

impl Budget {
    /// The budget of a profile on a kind of device.
    pub fn of(profile: Profile, kind: DeviceKind) -> Self {
        // A host pass takes a hundred times as long as a GPU's, and `quick` is
        // promised in half a minute with some fifteen cases.
        let (warm_up_ms, least_ms, most_ms) = match (profile, kind) {
            (Profile::Quick, DeviceKind::Cuda) => (100.0, 200.0, 500.0),
            (_, DeviceKind::Cuda) => (200.0, 200.0, 1500.0),
            (Profile::Quick, DeviceKind::Host) => (150.0, 300.0, 700.0),
            (_, DeviceKind::Host) => (500.0, 1000.0, 3000.0),
        };
        Self { least_sample_ns: 2e6, warm_up_ns: warm_up_ms * 1e6, least_ns: least_ms * 1e6, most_ns: most_ms * 1e6 }
    }
}

/// The rules of a budget, in the order in which they are asked.
pub fn stop_rules(budget: &Budget) -> Vec<Box<dyn StopRule>> {
    vec![
        Box::new(Noise { fraction: NOISE_FRACTION, least_samples: LEAST_SAMPLES, least_ns: budget.least_ns }),
        // Independent noise falls by a quarter from 16 samples to 32.
        Box::new(Stable { window: 16, improvement_fraction: 0.1, least_ns: budget.least_ns }),
        Box::new(TimeLimit { ns: budget.most_ns, least_samples: LEAST_SAMPLES }),
        Box::new(Count(MOST_SAMPLES)),
    ]
}

/// Timed samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// The time of one execution in each sample, ns.
    pub ns: Vec<f64>,
    /// Executions that each sample averages over.
    pub executions: u32,
    /// The median clock of the multiprocessors over the samples, MHz; none where it cannot be read.
    pub sm_clock_mhz: Option<f64>,
    /// The device's time over this machine's, the median of the samples: at most 1 where both
    /// clocks are right.
    pub host_fraction: f64,
    /// The rule that ended the sampling.
    pub stopped_by: &'static str,
}

impl Samples {
    /// The times as a row keeps them.
    pub fn time(&self) -> Time {
        let sorted = sorted(&self.ns);
        let at = |q| quantile(&sorted, q);
        Time {
            median: at(0.5),
            p25: at(0.25),
            p75: at(0.75),
            min: at(0.0),
            max: at(1.0),
            noise_fraction: median_noise(&self.ns),
            n: self.ns.len() as u32,
            executions_per_sample: self.executions,
            stopped_by: self.stopped_by.to_owned(),
            host_fraction: Some(self.host_fraction),
        }
    }
}

/// `executions` with a time that can be used.
pub(super) fn timed(program: &mut dyn Program, executions: u32) -> Result<Timing, DeviceError> {
    let timing = program.execute(executions)?;
    let ns = timing.ns;
    if ns.is_finite() && ns > 0.0 {
        Ok(timing)
    } else {
        Err(DeviceError::Failed(format!("the device's clock says that {executions} executions took {ns} ns: its times cannot be used")))
    }
}

/// Samples a warm program, an execution of which takes about `execution_ns`, until a rule is met.
///
/// On cold caches a sample is one execution, however short.
///
/// `go_on` is asked before each timed piece; the result is none once it answers no.
///
/// # Errors
/// When the device fails.
pub fn sample(
    program: &mut dyn Program,
    execution_ns: f64,
    cache: CacheState,
    budget: &Budget,
    rules: &[Box<dyn StopRule>],
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Samples>, DeviceError> {
    // Enough executions for a sample, and as many as let a full set of samples take
    // all the time there is, so that short cases do not stop at the count.
    let wanted_ns = budget.least_sample_ns.max(budget.most_ns / MOST_SAMPLES as f64);
    let executions_for = |each_ns: f64| (wanted_ns / each_ns).ceil().clamp(1.0, 1e6) as u32;
    let cold = cache == CacheState::Cold;
    let mut executions = if cold { 1 } else { executions_for(execution_ns) };
    let mut corrections = 0;
    let (mut ns, mut clocks, mut host_fractions) = (Vec::new(), Vec::new(), Vec::new());
    let mut spent_ns = 0.0;
    loop {
        if !go_on() {
            return Ok(None);
        }
        if cold {
            program.evict_caches()?;
        }
        let started = Instant::now();
        let Timing { ns: total_ns, sm_clock_mhz } = timed(program, executions)?;
        let host_ns = started.elapsed().as_nanos() as f64;
        // The warm-up was slower than this, on a busy machine say: begin again with longer samples.
        if !cold && total_ns < budget.least_sample_ns / 2.0 && corrections < MOST_CORRECTIONS {
            executions = executions_for(total_ns / f64::from(executions));
            corrections += 1;
            ns.clear();
            clocks.clear();
            host_fractions.clear();
            spent_ns = 0.0;
            continue;
        }
        spent_ns += total_ns;
        ns.push(to_hundredths(total_ns / f64::from(executions)));
        clocks.extend(sm_clock_mhz);
        host_fractions.push(total_ns / host_ns);
        if let Some(rule) = rules.iter().find(|rule| rule.is_met(&ns, spent_ns)) {
            let sm_clock_mhz = (!clocks.is_empty()).then(|| median(&clocks));
            return Ok(Some(Samples { ns, executions, sm_clock_mhz, host_fraction: median(&host_fractions), stopped_by: rule.name() }));
        }
    }
}

/// To a hundredth of a nanosecond, which is finer than any clock here: more digits would fill documents and say nothing.
fn to_hundredths(ns: f64) -> f64 {
    (ns * 100.0).round() / 100.0
}

/// Executions in a row that must not beat the best by more than the tolerance.
const PLATEAU_PATIENCE: u32 = 3;
const PLATEAU_TOLERANCE: f64 = 0.02;

/// Warms a program up until its time no longer falls, and gives the time of one execution then, ns.
///
/// `go_on` is asked before each timed piece; the result is none once it answers no.
///
/// # Errors
/// When the device fails.
pub fn warm_up(program: &mut dyn Program, budget: &Budget, go_on: &dyn Fn() -> bool) -> Result<Option<f64>, DeviceError> {
    let mut best = f64::INFINITY;
    let (mut spent, mut since_better) = (0.0, 0);
    // Clocks take some milliseconds to rise: a plateau before that is none.
    let least = budget.warm_up_ns / 2.0;
    while spent < least || (spent < budget.warm_up_ns && since_better < PLATEAU_PATIENCE) {
        if !go_on() {
            return Ok(None);
        }
        let executions = (budget.least_sample_ns / best).ceil().clamp(1.0, 1e6) as u32;
        let total = timed(program, executions)?.ns;
        spent += total;
        let each = total / f64::from(executions);
        since_better = if each < best * (1.0 - PLATEAU_TOLERANCE) { 0 } else { since_better + 1 };
        best = best.min(each);
    }
    Ok(Some(best))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Variant, Verification};
    use crate::pattern::{Data, Way};

    /// A program whose executions take the listed times, the last one for ever.
    struct Scripted {
        ns: Vec<f64>,
        calls: usize,
        executions: u64,
        evictions: u32,
    }

    impl Program for Scripted {
        fn variant(&self) -> Variant {
            Variant::new()
        }
        fn execute(&mut self, executions: u32) -> Result<Timing, DeviceError> {
            let each = self.ns[self.calls.min(self.ns.len() - 1)];
            self.calls += 1;
            self.executions += u64::from(executions);
            Ok(Timing { ns: each * f64::from(executions), sm_clock_mhz: (self.calls > 1).then_some(1000.0 + self.calls as f64) })
        }
        fn take(&mut self, _way: &Way) -> Result<(), DeviceError> {
            Ok(())
        }
        fn evict_caches(&mut self) -> Result<(), DeviceError> {
            self.evictions += 1;
            Ok(())
        }
        fn memory_taken_bytes(&self) -> Result<u64, String> {
            Err("none is taken".into())
        }
        fn prepare(&mut self, _data: Data) -> Result<(), DeviceError> {
            Ok(())
        }
        fn check(&mut self) -> Result<Verification, DeviceError> {
            Err(DeviceError::Unsupported("nothing is computed".into()))
        }
        fn alter(&mut self, _buffer: usize, _change: &dyn Fn(&mut [u32])) -> Result<(), DeviceError> {
            Ok(())
        }
    }

    fn measured(ns: &[f64]) -> Result<Samples, DeviceError> {
        let budget = Budget::of(Profile::Quick, DeviceKind::Cuda);
        let mut program = Scripted { ns: ns.to_vec(), calls: 0, executions: 0, evictions: 0 };
        let execution_ns = warm_up(&mut program, &budget, &|| true)?.unwrap();
        Ok(sample(&mut program, execution_ns, CacheState::Hot, &budget, &stop_rules(&budget), &|| true)?.unwrap())
    }

    fn sampled(ns: &[f64]) -> Samples {
        measured(ns).unwrap()
    }

    #[test]
    fn a_steady_case_stops_by_noise() {
        let s = sampled(&[2e6]);
        assert_eq!(s.stopped_by, "noise");
        assert!(s.ns.len() as f64 * f64::from(s.executions) * 2e6 >= 200e6);
    }

    #[test]
    fn the_clock_is_the_median_of_those_samples_that_have_one() {
        let s = sampled(&[2e6]);
        let mhz = s.sm_clock_mhz.unwrap();
        assert!(mhz > 1001.0 && mhz < 1000.0 + 200.0, "{mhz}");
    }

    #[test]
    fn a_short_case_is_executed_several_times_a_sample() {
        let s = sampled(&[1000.0]);
        assert!(f64::from(s.executions) * 1000.0 >= 2e6);
        assert!(s.ns.iter().all(|&ns| (ns - 1000.0).abs() < 1e-6));
    }

    #[test]
    fn on_cold_caches_each_sample_is_one_execution_after_an_eviction_however_short() {
        let budget = Budget::of(Profile::Quick, DeviceKind::Cuda);
        let mut program = Scripted { ns: vec![1000.0], calls: 0, executions: 0, evictions: 0 };
        let s = sample(&mut program, 1000.0, CacheState::Cold, &budget, &stop_rules(&budget), &|| true).unwrap().unwrap();
        assert_eq!((s.executions, s.ns.len() as u32), (1, program.evictions));
        assert_eq!(u64::from(program.evictions), program.executions);
    }

    #[test]
    fn executions_before_the_plateau_are_not_samples() {
        let s = sampled(&[30e6, 20e6, 12e6, 8e6, 5e6, 3e6, 2e6]);
        assert!(s.ns.iter().all(|&ns| ns == 2e6), "{:?}", s.ns);
    }

    #[test]
    fn samples_that_turn_out_too_short_are_begun_again() {
        let slow_warm_up: Vec<f64> = (0..3).map(|_| 60e6).chain([10_000.0]).collect();
        let s = sampled(&slow_warm_up);
        assert!(s.ns.iter().all(|&ns| ns == 10_000.0) && f64::from(s.executions) * 10_000.0 >= 2e6, "{s:?}");
    }

    #[test]
    fn a_noisy_case_stops_by_time_and_says_so() {
        let ns: Vec<f64> = (0..400).map(|i| if i % 2 == 0 { 20e6 } else { 40e6 }).collect();
        assert_eq!(sampled(&ns).stopped_by, "time");
    }

    #[test]
    fn noise_that_more_samples_do_not_lessen_ends_the_sampling() {
        let rule = Stable { window: 16, improvement_fraction: 0.1, least_ns: 0.0 };
        let steady_noise: Vec<f64> = (0..64).map(|i| if i % 2 == 0 { 2e6 } else { 4e6 }).collect();
        assert!(rule.is_met(&steady_noise[..32], 1.0));
        assert!(!rule.is_met(&steady_noise[..31], 1.0));
        // Outliers at the start weigh less and less.
        let settling: Vec<f64> = (0..32).map(|i| if i < 8 { 4e6 + f64::from(i) * 1e5 } else { 2e6 + f64::from(i) }).collect();
        assert!(!rule.is_met(&settling, 1.0));
    }

    #[test]
    fn a_slow_case_still_gives_five_samples() {
        let s = sampled(&[1e9]);
        assert_eq!(s.ns.len(), 5);
    }

    #[test]
    fn no_row_stores_more_than_64_samples() {
        let ns: Vec<f64> = (0..400).map(|i| if i % 2 == 0 { 2e6 } else { 4e6 }).collect();
        assert!(sampled(&ns).ns.len() <= 64);
    }

    #[test]
    fn a_time_that_cannot_be_is_a_failure_and_no_figure() {
        for ns in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert!(measured(&[2e6, ns]).is_err(), "{ns}");
        }
    }

    #[test]
    fn an_interruption_ends_sampling_without_a_result() {
        let budget = Budget::of(Profile::Quick, DeviceKind::Cuda);
        let mut program = Scripted { ns: vec![2e6], calls: 0, executions: 0, evictions: 0 };
        assert_eq!(warm_up(&mut program, &budget, &|| false).unwrap(), None);
        assert_eq!(sample(&mut program, 2e6, CacheState::Hot, &budget, &stop_rules(&budget), &|| false).unwrap(), None);
    }
}
