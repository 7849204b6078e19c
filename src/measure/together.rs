//! One case on one device while others are at work: made ready, and then sampled for a fixed time
//! from a common start, so that the samples of all devices fall into one stretch of time.

use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::{Budget, Settings, StopRule, TimeLimit, sample, statistics, verify, warm_up};
use crate::device::{Device, DeviceError, Verification};
use crate::pattern::{Case, DeviceKind, Form, Profile};
use crate::record::{Contention, Measurement, Time, Verdict};

/// From the start to the first sample, ns: clocks that fell while the device waited for the others
/// rise again, and all the others have started too.
const LEAD_NS: f64 = 250e6;
/// Samples that are taken however long they are.
const LEAST_SAMPLES: usize = 3;

/// For how long all devices sample, ns.
const fn sampling_ns(profile: Profile) -> f64 {
    match profile {
        Profile::Quick => 1e9,
        Profile::Standard | Profile::Full => 2e9,
    }
}

/// What one device gave of a case while others were at work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The times of one execution.
    pub time: Time,
    /// Whether its results were right.
    pub verification: Verification,
    /// When its first sample began: ns since 1970 by this machine's clock, which all its processes share.
    pub began_unix_ns: u64,
    /// When its last sample ended, by the same clock.
    pub ended_unix_ns: u64,
}

/// Makes a case ready, written as is `known` to be best, calls `start`, which answers yes as soon as all devices may start, and samples.
///
/// The results of the last sample are checked as they are, because they came about under contention,
/// and then those of one more execution into poisoned outputs, as for every row.
///
/// The result is none when `start` or `go_on` answers no.
///
/// # Errors
/// When the device fails.
pub fn measure_together(
    case: &Case,
    device: &mut dyn Device,
    kind: DeviceKind,
    settings: Settings,
    known: Option<&Form>,
    start: &mut dyn FnMut() -> bool,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Window>, DeviceError> {
    let mut program = device.load(&case.plan)?;
    let program = program.as_mut();
    program.prepare(settings.data)?;
    if let Some(way) = known.and_then(|form| case.ways.as_ref()?.of(form)) {
        program.take(way)?;
    }
    let budget = Budget { most_ns: sampling_ns(settings.profile), ..Budget::of(settings.profile, kind) };
    let Some(execution_ns) = warm_up(program, &budget, go_on)? else { return Ok(None) };
    if !start() {
        return Ok(None);
    }
    let mut sample_for = |ns: f64, least_samples: usize, execution_ns: f64| {
        let deadline = Instant::now() + Duration::from_nanos(ns as u64);
        let rules: [Box<dyn StopRule>; 2] = [Box::new(TimeLimit { ns, least_samples }), Box::new(Deadline { deadline, least_samples })];
        sample(program, execution_ns, settings.cache, &budget, &rules, go_on)
    };
    let Some(lead) = sample_for(LEAD_NS, 1, execution_ns)? else { return Ok(None) };
    let began_unix_ns = unix_ns();
    let samples = sample_for(budget.most_ns, LEAST_SAMPLES, statistics::median(&lead.ns))?;
    let ended_unix_ns = unix_ns();
    let Some(samples) = samples else { return Ok(None) };
    let verification = program.check()?.and(verify(program, &case.plan, settings.data)?);
    Ok(Some(Window { time: samples.time(), verification, began_unix_ns, ended_unix_ns }))
}

/// Stops when the time is up by this machine's clock: what stands between the samples, such as the
/// eviction of caches, takes part of the common time too.
struct Deadline {
    deadline: Instant,
    least_samples: usize,
}

impl StopRule for Deadline {
    fn name(&self) -> &'static str {
        "time"
    }
    fn is_met(&self, samples_ns: &[f64], _spent_ns: f64) -> bool {
        samples_ns.len() >= self.least_samples && Instant::now() >= self.deadline
    }
}

fn unix_ns() -> u64 {
    // Before 1970 all windows are at 0, and overlap in nothing.
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64)
}

impl Window {
    /// The share of this window that lies in all of `windows`, a fraction.
    pub fn overlap_fraction(&self, windows: &[Self]) -> f64 {
        let began = windows.iter().map(|window| window.began_unix_ns).fold(self.began_unix_ns, u64::max);
        let ended = windows.iter().map(|window| window.ended_unix_ns).fold(self.ended_unix_ns, u64::min);
        ended.saturating_sub(began) as f64 / self.ended_unix_ns.saturating_sub(self.began_unix_ns).max(1) as f64
    }

    /// Puts what was seen beside `others` into the row of the same case alone, which has figures.
    /// Wrong results make the row itself unverified.
    pub fn enter(&self, row: &mut Measurement, others: Vec<String>, overlap_fraction: f64) {
        let (Some(bytes), Some(alone_gbps)) = (row.bytes, row.achieved_gbps) else { return };
        let achieved_gbps = bytes.requested() as f64 / self.time.median;
        row.missing.remove("contention");
        row.contention =
            Some(Contention { others, achieved_gbps, time_ns: self.time.clone(), overlap_fraction, factor: achieved_gbps / alone_gbps });
        if !self.verification.passed() {
            let Verification { mismatches, first_bad, stray } = self.verification;
            let wrong = mismatches.saturating_add(stray);
            row.notes.push(format!("{wrong} results were wrong while all devices ran"));
            row.verified = Some(false);
            row.mismatches = Some(row.mismatches.unwrap_or(0).saturating_add(wrong));
            row.first_bad_index = row.first_bad_index.into_iter().chain(first_bad).min();
            if row.first_bad_index.is_some() {
                row.missing.remove("first_bad_index");
            }
            row.verdict = Some(Verdict::Unverified);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{SETTINGS, Steady, peaks, row};
    use crate::pattern::{CaseId, Facts, plan};

    const ID: &str = "stream/copy/f32@4026531840";

    fn steady(ns: f64, mismatches: u64) -> Steady {
        Steady { ns, mismatches, ..Steady::default() }
    }

    fn window(device: &mut Steady, start: &mut dyn FnMut() -> bool, go_on: &dyn Fn() -> bool) -> Option<Window> {
        let case = plan(&CaseId::new(ID), &Facts::H200).unwrap();
        measure_together(&case, device, DeviceKind::Cuda, SETTINGS, None, start, go_on).unwrap()
    }

    fn alone() -> Measurement {
        row(ID, &mut steady(2e6, 0), &peaks(4814.3, 65_000.0))
    }

    #[test]
    fn a_case_is_sampled_for_a_fixed_time_after_the_start() {
        let mut starts = 0;
        let window = window(
            &mut steady(4e6, 0),
            &mut || {
                starts += 1;
                true
            },
            &|| true,
        )
        .unwrap();
        assert_eq!((starts, window.time.median, window.time.stopped_by.as_str()), (1, 4e6, "time"));
        let sampled_ns = f64::from(window.time.n * window.time.executions_per_sample) * 4e6;
        assert!((1e9..1.1e9).contains(&sampled_ns), "{sampled_ns}");
    }

    #[test]
    fn a_slow_case_still_gives_three_samples() {
        assert_eq!(window(&mut steady(3e9, 0), &mut || true, &|| true).unwrap().time.n, 3);
    }

    #[test]
    fn what_passes_between_the_samples_counts_too() {
        let rule = |deadline| Deadline { deadline, least_samples: 3 };
        let (over, ahead) = (Instant::now(), Instant::now() + Duration::from_secs(3600));
        assert!(rule(over).is_met(&[1.0; 3], 3.0) && !rule(over).is_met(&[1.0; 2], 2.0));
        assert!(!rule(ahead).is_met(&[1.0; 3], 3.0));
    }

    #[test]
    fn without_a_start_or_after_an_interruption_there_is_no_window() {
        assert_eq!(window(&mut steady(4e6, 0), &mut || false, &|| true), None);
        assert_eq!(window(&mut steady(4e6, 0), &mut || true, &|| false), None);
    }

    #[test]
    fn the_factor_is_what_is_left_of_the_bandwidth_alone() {
        let mut row = alone();
        let gbps = row.achieved_gbps.unwrap();
        assert!(row.missing.contains_key("contention"));
        window(&mut steady(4e6, 0), &mut || true, &|| true).unwrap().enter(&mut row, vec!["GPU-2".into()], 0.98);
        let contention = row.contention.as_ref().unwrap();
        assert_eq!((contention.factor, contention.achieved_gbps, contention.overlap_fraction), (0.5, gbps / 2.0, 0.98));
        assert!(!row.missing.contains_key("contention") && row.is_sound());
        assert_eq!(row.achieved_gbps, Some(gbps));
    }

    #[test]
    fn wrong_results_while_all_ran_make_the_row_unverified() {
        let mut row = alone();
        let window = window(&mut steady(4e6, 2), &mut || true, &|| true).unwrap();
        // Those of the last sample, and those of the execution after it.
        assert_eq!(window.verification.mismatches, 4);
        window.enter(&mut row, Vec::new(), 1.0);
        assert_eq!((row.verified, row.mismatches, row.first_bad_index), (Some(false), Some(4), Some(3)));
        assert_eq!(row.verdict, Some(Verdict::Unverified));
        assert!(!row.missing.contains_key("first_bad_index"));
        assert!(row.notes.iter().any(|note| note.contains("4 results were wrong while all")), "{:?}", row.notes);
    }

    #[test]
    fn the_overlap_is_the_share_of_its_own_window_in_which_all_sampled() {
        let at = |began_unix_ns, ended_unix_ns| {
            let time = alone().time_ns.unwrap();
            let verification = Verification { mismatches: 0, first_bad: None, stray: 0 };
            Window { time, verification, began_unix_ns, ended_unix_ns }
        };
        let all = [at(100, 200), at(150, 190), at(0, 170)];
        assert_eq!(all.each_ref().map(|window| window.overlap_fraction(&all)), [0.2, 0.5, 20.0 / 170.0]);
        let apart = [at(0, 10), at(20, 30)];
        assert_eq!(apart[0].overlap_fraction(&apart), 0.0);
        assert_eq!(at(5, 5).overlap_fraction(&apart), 0.0);
    }
}
