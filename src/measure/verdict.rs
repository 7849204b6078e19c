//! What to think of a row's figures.

use crate::pattern::Level;
use crate::record::{Claim, Peaks, Run, Status, Verdict};

/// What the figures of a run are judged against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The most that the memory can carry, 10^9 B/s, when known.
    pub peak_gbps: Option<f64>,
    /// The last cache, in bytes, when known.
    pub cache_bytes: Option<u64>,
}

impl Bounds {
    /// Those of a device with these peaks and a last cache of `cache_bytes`.
    pub fn of(peaks: &Peaks, cache_bytes: Option<u64>) -> Self {
        Self { peak_gbps: peaks.memory_bound_gbps(), cache_bytes }
    }
}

/// Judges one row, of this program or of another.
///
/// Wrong data outweighs everything. Only rows that claim the memory, by their level or by telling
/// none, can be more than it allows. Those are the cache's when all their data fit into it, or when
/// they are above the peak and it can hold more of the data than level `dram` allows; above the peak
/// otherwise.
pub fn verdict(claim: &Claim, bounds: Bounds) -> Verdict {
    if claim.is_wrong() {
        return Verdict::Unverified;
    }
    let claims_memory = claim.level.is_none_or(|level| level == Level::Dram);
    let Some(carried_gbps) = claim.carried_gbps().filter(|_| claims_memory) else { return Verdict::Ok };
    let above = bounds.peak_gbps.is_some_and(|peak| carried_gbps > peak);
    match claim.cache_share(bounds.cache_bytes) {
        Some(share) if share >= 1.0 || above && share > Level::DRAM_CACHE_SHARE_MAX => Verdict::CacheResident,
        _ if above => Verdict::AbovePeak,
        _ => Verdict::Ok,
    }
}

/// Judges the rows of a document anew that it calls `ok`: whoever wrote it, none is drawn that cannot be.
pub fn judge_again(run: &mut Run) {
    let bounds = Bounds::of(&run.peaks, run.device.memory.cache_bytes);
    for row in run.measurements.iter_mut().filter(|row| row.status == Status::Ok && row.verdict == Some(Verdict::Ok)) {
        row.verdict = Some(verdict(&Claim::from(&*row), bounds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::h200;
    use crate::pattern::Bytes;
    use crate::record::Median;

    fn row(level: Level, gbps: f64) -> Claim {
        let bytes = Bytes::contiguous(gbps as u64 * 1000, 0);
        Claim {
            level: Some(level),
            bytes: Some(bytes),
            time_ns: Some(Median { median: 1000.0 }),
            verified: Some(true),
            mismatches: Some(0),
            ..Claim::default()
        }
    }

    fn judge(claim: &Claim, peak_gbps: Option<f64>) -> Verdict {
        verdict(claim, Bounds { peak_gbps, cache_bytes: None })
    }

    #[test]
    fn more_than_the_bus_can_carry_is_named() {
        assert_eq!(judge(&row(Level::Dram, 3868.0), Some(1008.0)), Verdict::AbovePeak);
        assert_eq!(judge(&row(Level::Dram, 980.0), Some(1008.0)), Verdict::Ok);
    }

    #[test]
    fn only_rows_that_claim_the_memory_can_be_above_the_peak() {
        assert_eq!(judge(&row(Level::Cache, 3868.0), Some(1008.0)), Verdict::Ok);
        assert_eq!(judge(&row(Level::Mixed, 3868.0), Some(1008.0)), Verdict::Ok);
    }

    #[test]
    fn a_row_without_a_level_claims_the_memory() {
        let foreign = Claim { achieved_gbps: Some(3868.0), ..Claim::default() };
        assert_eq!(judge(&foreign, Some(1008.0)), Verdict::AbovePeak);
    }

    #[test]
    fn an_unknown_peak_accuses_nobody() {
        assert_eq!(judge(&row(Level::Dram, 1e6), None), Verdict::Ok);
    }

    #[test]
    fn amplified_traffic_counts_against_the_peak() {
        let bytes = Bytes { requested_read: 100_000, compulsory: 800_000, ..Bytes::default() };
        assert_eq!(judge(&Claim { bytes: Some(bytes), ..row(Level::Dram, 100.0) }, Some(500.0)), Verdict::AbovePeak);
    }

    #[test]
    fn wrong_data_outweighs_every_figure() {
        for wrong in [Claim { verified: Some(false), ..row(Level::Dram, 9e3) }, Claim { mismatches: Some(1), ..row(Level::Dram, 9e3) }] {
            assert_eq!(judge(&wrong, Some(5000.0)), Verdict::Unverified);
        }
    }

    #[test]
    fn a_row_whose_data_all_fit_the_cache_is_the_caches_at_any_speed() {
        let fits = Claim { cache_fraction: Some(1.0), ..row(Level::Dram, 500.0) };
        assert_eq!((judge(&fits, Some(1008.0)), judge(&fits, None)), (Verdict::CacheResident, Verdict::CacheResident));
        let foreign = Claim { level: None, ..row(Level::Dram, 500.0) };
        let cache = |cache_bytes| verdict(&foreign, Bounds { peak_gbps: None, cache_bytes: Some(cache_bytes) });
        assert_eq!((cache(500_000), cache(499_999)), (Verdict::CacheResident, Verdict::Ok));
    }

    #[test]
    fn above_the_peak_the_cache_is_named_where_it_holds_more_than_a_quarter() {
        let held = |share| judge(&Claim { cache_fraction: Some(share), ..row(Level::Dram, 3868.0) }, Some(1008.0));
        assert_eq!((held(0.25), held(0.26)), (Verdict::AbovePeak, Verdict::CacheResident));
        assert_eq!(judge(&Claim { cache_fraction: Some(0.26), ..row(Level::Dram, 900.0) }, Some(1008.0)), Verdict::Ok);
    }

    #[test]
    fn a_row_that_a_document_calls_ok_and_cannot_be_is_not_sound_once_it_is_judged_again() {
        let mut run = h200();
        judge_again(&mut run);
        assert_eq!(run, h200());
        run.peaks.memory_gbps[0].value = 1008.0;
        judge_again(&mut run);
        let copy = run.measurements.iter().find(|row| row.id == "stream/copy/f32").unwrap();
        assert!(copy.verdict == Some(Verdict::AbovePeak) && !copy.is_sound());
    }
}
