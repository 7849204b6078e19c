//! What a document claims, whoever wrote it: the fields by which its figures are judged.

use serde::Deserialize;

use super::{Mark, Measurement, Peaks, Status, Verdict};
use crate::pattern::{Bytes, Level};

/// A document with the fields that its judgement needs, under the names of [`super::Run`].
///
/// Each may be absent, so that figures of another program can be judged too.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// Who wrote it.
    pub program: Writer,
    /// Whether every case was tried.
    pub complete: Option<bool>,
    /// The ids of the cases to measure.
    pub cases: Vec<String>,
    /// What was measured.
    pub device: Subject,
    /// What the device can do at most.
    pub peaks: Peaks,
    /// The rows.
    pub measurements: Vec<Claim>,
}

/// The program that wrote a document.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Writer {
    /// `release` or `debug`.
    pub build: Option<String>,
}

/// The device that a document is about.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// Its memory.
    pub memory: Store,
}

/// The memory of a device.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Store {
    /// Its last cache, in bytes.
    pub cache_bytes: Option<u64>,
}

/// A row, with the fields that its judgement needs, under the names of [`Measurement`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Claim {
    /// The case.
    pub id: String,
    /// Whether there are figures; a row that does not say has those that it has.
    pub status: Option<Status>,
    /// What it exercises; a row that does not say claims the memory.
    pub level: Option<Level>,
    /// Size of the last cache over that of all buffers.
    pub cache_fraction: Option<f64>,
    /// What fixes the case.
    pub parameters: Settled,
    /// Size of all buffers, in bytes.
    pub footprint_bytes: Option<u64>,
    /// By how much the free memory fell for them, in bytes.
    pub memory_taken_bytes: Option<u64>,
    /// Bytes of one execution.
    pub bytes: Option<Bytes>,
    /// Time of one execution.
    pub time_ns: Option<Median>,
    /// Every sample of it, ns; none where they were not kept.
    pub samples_ns: Vec<f64>,
    /// Requested bytes over the median, 10^9 B/s.
    pub achieved_gbps: Option<f64>,
    /// Whether every result was right.
    pub verified: Option<bool>,
    /// Wrong results, when any.
    pub mismatches: Option<u64>,
    /// What the document thinks of the row.
    pub verdict: Option<Verdict>,
    /// What else marks the row.
    pub marks: Vec<Mark>,
}

/// What fixes a case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Settled {
    /// What the inputs hold.
    pub data: Option<String>,
}

/// The time of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Median {
    /// The median over the samples, ns.
    pub median: f64,
}

/// How far an achieved bandwidth may lie from its bytes over its time, and a median outside of its samples: documents of
/// other programs round.
const ROUNDING: f64 = 1e-3;

impl Claim {
    /// Whether the check found wrong results.
    pub fn is_wrong(&self) -> bool {
        self.verified == Some(false) || self.mismatches.is_some_and(|wrong| wrong > 0)
    }

    /// Requested bytes over the median, 10^9 B/s, where both are told.
    pub fn requested_gbps(&self) -> Option<f64> {
        Some(self.bytes?.requested() as f64 / self.time_ns?.median)
    }

    /// What the memory must have carried, 10^9 B/s: the larger of requested and compulsory bytes over the
    /// median, and no less than the row says that it achieved.
    pub fn carried_gbps(&self) -> Option<f64> {
        let counted = self.bytes.zip(self.time_ns).map(|(bytes, time)| touched(&bytes) as f64 / time.median);
        counted.into_iter().chain(self.achieved_gbps).reduce(f64::max)
    }

    /// The share of its data that a last cache of `cache_bytes` can hold; 1 and more when all fit.
    ///
    /// A row that does not tell the size of its buffers touches its bytes once.
    pub fn cache_share(&self, cache_bytes: Option<u64>) -> Option<f64> {
        self.cache_fraction.or_else(|| Some(cache_bytes? as f64 / touched(&self.bytes?) as f64))
    }

    /// The fastest and the slowest sample, ns, where they were kept.
    pub fn extremes_ns(&self) -> Option<(f64, f64)> {
        let samples = || self.samples_ns.iter().copied();
        samples().reduce(f64::min).zip(samples().reduce(f64::max))
    }

    /// Whether its figures are possible, its median lies between its samples where it tells both, and its bandwidth is
    /// its bytes over its time where it tells all three.
    pub fn adds_up(&self) -> bool {
        let possible = |figure: Option<f64>| figure.is_none_or(|x| x.is_finite() && x > 0.0);
        let agrees = |(achieved, counted): (f64, f64)| (achieved / counted - 1.0).abs() < ROUNDING;
        let between =
            |(Median { median }, (min, max)): (Median, (f64, f64))| median > min * (1.0 - ROUNDING) && median < max * (1.0 + ROUNDING);
        possible(self.achieved_gbps)
            && self.time_ns.zip(self.extremes_ns()).is_none_or(between)
            && possible(self.time_ns.map(|time| time.median))
            && self.achieved_gbps.zip(self.requested_gbps()).is_none_or(agrees)
    }
}

/// The larger of requested and compulsory bytes.
fn touched(bytes: &Bytes) -> u64 {
    bytes.requested().max(bytes.compulsory)
}

impl From<&Measurement> for Claim {
    fn from(row: &Measurement) -> Self {
        Self {
            id: row.id.clone(),
            status: Some(row.status),
            level: row.level,
            cache_fraction: row.cache_fraction,
            parameters: Settled { data: row.parameters.get("data").and_then(|data| data.as_str()).map(str::to_owned) },
            footprint_bytes: row.footprint_bytes,
            memory_taken_bytes: row.memory_taken_bytes,
            bytes: row.bytes,
            time_ns: row.time_ns.as_ref().map(|time| Median { median: time.median }),
            samples_ns: row.samples_ns.clone(),
            achieved_gbps: row.achieved_gbps,
            verified: row.verified,
            mismatches: row.mismatches,
            verdict: row.verdict,
            marks: row.marks.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(requested_read: u64, compulsory: u64, median: f64, achieved_gbps: f64) -> Claim {
        let bytes = Bytes { requested_read, compulsory, ..Bytes::default() };
        Claim { bytes: Some(bytes), time_ns: Some(Median { median }), achieved_gbps: Some(achieved_gbps), ..Claim::default() }
    }

    #[test]
    fn the_memory_carried_the_most_of_what_was_counted_and_what_is_said() {
        assert_eq!(claim(100, 800, 2.0, 50.0).carried_gbps(), Some(400.0));
        assert_eq!(claim(100, 0, 2.0, 900.0).carried_gbps(), Some(900.0));
        assert_eq!(Claim { achieved_gbps: Some(7.0), ..Claim::default() }.carried_gbps(), Some(7.0));
        assert_eq!(Claim::default().carried_gbps(), None);
    }

    #[test]
    fn a_bandwidth_is_its_bytes_over_its_time_to_a_thousandth() {
        assert!(claim(1000, 0, 2.0, 500.0).adds_up() && claim(1000, 0, 2.0, 500.4).adds_up());
        assert!(!claim(1000, 0, 2.0, 501.0).adds_up() && !claim(0, 0, 2.0, 500.0).adds_up());
    }

    #[test]
    fn a_median_lies_between_its_samples_to_a_thousandth() {
        let of = |median| Claim { samples_ns: vec![1000.0, 1010.0, 1020.0], ..claim(1000, 0, median, 1000.0 / median) };
        assert!(of(999.5).adds_up() && of(1010.0).adds_up() && of(1020.5).adds_up());
        assert!(!of(998.0).adds_up() && !of(1022.0).adds_up());
    }

    #[test]
    fn what_a_row_does_not_tell_contradicts_nothing_but_nothing_takes_no_time() {
        assert!(Claim { achieved_gbps: Some(7.0), ..Claim::default() }.adds_up() && Claim::default().adds_up());
        assert!(!Claim { time_ns: Some(Median { median: 0.0 }), ..Claim::default() }.adds_up());
        assert!(!Claim { achieved_gbps: Some(-1.0), ..Claim::default() }.adds_up());
    }

    #[test]
    fn the_share_of_the_cache_is_of_the_buffers_or_else_of_the_bytes_touched() {
        let row = claim(100, 800, 2.0, 50.0);
        assert_eq!(row.cache_share(Some(400)), Some(0.5));
        assert_eq!(row.cache_share(None), None);
        assert_eq!(Claim { cache_fraction: Some(0.1), ..row }.cache_share(Some(400)), Some(0.1));
    }
}
