//! What to think of a row's figures.

use crate::pattern::{Data, Level, link_directions};
use crate::record::{Claim, Peaks, Run, Status, Verdict};

/// What the figures of a run are judged against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The most that the memory can carry, 10^9 B/s, when known.
    pub peak_gbps: Option<f64>,
    /// What the link to the processor carries in one direction, 10^9 B/s, when known.
    pub link_gbps: Option<f64>,
    /// The last cache, in bytes, when known.
    pub cache_bytes: Option<u64>,
}

impl Bounds {
    /// Those of a device with these peaks and a last cache of `cache_bytes`.
    pub fn of(peaks: &Peaks, cache_bytes: Option<u64>) -> Self {
        Self { peak_gbps: peaks.memory_bound_gbps(), link_gbps: peaks.link_theoretical_gbps(), cache_bytes }
    }

    /// What the link carries for the case with this id, 10^9 B/s; none where that is not known, or the case is no matter of the link.
    pub fn link_of(&self, id: &str) -> Option<f64> {
        Some(self.link_gbps? * link_directions(id)? as f64)
    }
}

/// Judges one row, of this program or of another.
///
/// Wrong data outweighs everything. Only rows that claim the memory, by their level or by telling
/// none, can be more than it allows. Those are the cache's when all their data fit into it, or when
/// they are above the peak and it can hold more of the data than level `dram` allows; above the peak
/// otherwise, or compressed where the data lend themselves to it. They are spilled when they came no
/// faster than the link to the processor carries them and there is reason to think that they came over it.
/// Rows that copy over the link can be above what that carries, and nothing else.
pub fn verdict(claim: &Claim, bounds: Bounds) -> Verdict {
    if claim.is_wrong() {
        return Verdict::Unverified;
    }
    if link_directions(&claim.id).is_some() {
        let above = claim.carried_gbps().zip(bounds.link_of(&claim.id)).is_some_and(|(carried, bound)| carried > bound);
        return if above { Verdict::AbovePeak } else { Verdict::Ok };
    }
    let claims_memory = claim.level.is_none_or(|level| level == Level::Dram);
    let Some(carried_gbps) = claim.carried_gbps().filter(|_| claims_memory) else { return Verdict::Ok };
    let above = bounds.peak_gbps.is_some_and(|peak| carried_gbps > peak);
    match claim.cache_share(bounds.cache_bytes) {
        Some(share) if share >= 1.0 || above && share > Level::DRAM_CACHE_SHARE_MAX => Verdict::CacheResident,
        _ if above && is_compressible(claim) => Verdict::Compressed,
        _ if above => Verdict::AbovePeak,
        _ if is_spilled(claim, carried_gbps, bounds) => Verdict::Spilled,
        _ => Verdict::Ok,
    }
}

/// Whether the data repeat themselves.
fn is_compressible(claim: &Claim) -> bool {
    let settings = [Data::Zero, Data::Constant].map(|data| data.to_string());
    claim.parameters.data.as_ref().is_some_and(|data| settings.contains(data))
}

/// A stream may be this much faster than the link and have come over it: both directions at once.
const LINK_MULTIPLE: f64 = 2.0;
/// Where the memory is not this many times faster than that, its speed says nothing of where the data are.
const MEMORY_MULTIPLE: f64 = 2.0;
/// The allocator hands out smaller buffers of what it holds already.
const LEAST_TAKEN_BYTES: u64 = 64 << 20;

/// Whether the data are not in the memory of the card: the free memory did not fall for them by half
/// of their size, or a contiguous pass was as slow as the link. Nothing faster than the link came over it,
/// whatever the free memory did: other programs allocate and free as well.
fn is_spilled(claim: &Claim, carried_gbps: f64, bounds: Bounds) -> bool {
    let over_link = bounds.link_gbps.map(|link| carried_gbps <= link * LINK_MULTIPLE);
    let taken = claim.footprint_bytes.zip(claim.memory_taken_bytes);
    let not_taken = taken.is_some_and(|(asked, taken)| asked >= LEAST_TAKEN_BYTES && taken < asked / 2);
    let memory_is_faster = bounds.peak_gbps.zip(bounds.link_gbps).is_some_and(|(peak, link)| peak > link * LINK_MULTIPLE * MEMORY_MULTIPLE);
    let contiguous = ["stream/", "copy_engine/"].iter().any(|pattern| claim.id.starts_with(pattern));
    over_link.unwrap_or(true) && not_taken || over_link == Some(true) && memory_is_faster && contiguous
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
    use crate::record::{Median, Settled};

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
        verdict(claim, Bounds { peak_gbps, link_gbps: None, cache_bytes: None })
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
        let cache = |cache_bytes| verdict(&foreign, Bounds { peak_gbps: None, link_gbps: None, cache_bytes: Some(cache_bytes) });
        assert_eq!((cache(500_000), cache(499_999)), (Verdict::CacheResident, Verdict::Ok));
    }

    #[test]
    fn above_the_peak_the_cache_is_named_where_it_holds_more_than_a_quarter() {
        let held = |share| judge(&Claim { cache_fraction: Some(share), ..row(Level::Dram, 3868.0) }, Some(1008.0));
        assert_eq!((held(0.25), held(0.26)), (Verdict::AbovePeak, Verdict::CacheResident));
        assert_eq!(judge(&Claim { cache_fraction: Some(0.26), ..row(Level::Dram, 900.0) }, Some(1008.0)), Verdict::Ok);
    }

    #[test]
    fn above_the_peak_on_zeros_or_a_constant_is_called_compressed() {
        let of = |data: &str| {
            let parameters = Settled { data: Some(data.into()) };
            judge(&Claim { parameters, ..row(Level::Dram, 9e3) }, Some(5000.0))
        };
        assert_eq!([of("zero"), of("constant"), of("random")], [Verdict::Compressed, Verdict::Compressed, Verdict::AbovePeak]);
    }

    /// A row of a GiB on a card of 1008 GB/s behind 31.5 GB/s.
    fn placed(id: &str, gbps: f64, taken_bytes: Option<u64>, link_gbps: Option<f64>) -> Verdict {
        let claim = Claim { id: id.into(), footprint_bytes: Some(1 << 30), memory_taken_bytes: taken_bytes, ..row(Level::Dram, gbps) };
        verdict(&claim, Bounds { peak_gbps: Some(1008.0), link_gbps, cache_bytes: None })
    }

    #[test]
    fn memory_that_nobody_lost_is_not_the_cards_unless_it_is_faster_than_the_link() {
        assert_eq!(placed("gather/read/64", 20.0, Some(0), Some(31.5)), Verdict::Spilled);
        assert_eq!(placed("gather/read/64", 20.0, Some(0), None), Verdict::Spilled);
        assert_eq!(placed("gather/read/64", 20.0, Some(1 << 30), Some(31.5)), Verdict::Ok);
        assert_eq!(placed("gather/read/64", 20.0, None, Some(31.5)), Verdict::Ok);
        assert_eq!(placed("stream/copy/f32", 900.0, Some(0), Some(31.5)), Verdict::Ok);
    }

    #[test]
    fn a_contiguous_pass_as_slow_as_the_link_is_spilled_whatever_the_free_memory_says() {
        assert_eq!(placed("stream/read/f32", 26.0, Some(1 << 30), Some(31.5)), Verdict::Spilled);
        assert_eq!(placed("stream/copy/f32", 55.0, None, Some(31.5)), Verdict::Spilled);
        assert_eq!(placed("stream/read/f32", 26.0, None, None), Verdict::Ok);
        assert_eq!(placed("stream/read/f32", 100.0, None, Some(31.5)), Verdict::Ok);
    }

    #[test]
    fn a_transfer_is_above_the_peak_where_the_link_carries_less_in_its_directions() {
        let judge = |id: &str, level, gbps, link_gbps| {
            let claim = Claim { id: id.into(), level, ..row(Level::Mixed, gbps) };
            verdict(&claim, Bounds { peak_gbps: Some(50.0), link_gbps, cache_bytes: Some(1 << 40) })
        };
        for level in [Some(Level::Mixed), None] {
            assert_eq!(judge("transfer/h2d/pinned", level, 60.0, Some(63.0)), Verdict::Ok);
            assert_eq!(judge("transfer/h2d/pinned@4096", level, 64.0, Some(63.0)), Verdict::AbovePeak);
            assert_eq!(judge("transfer/both/pageable", level, 125.0, Some(63.0)), Verdict::Ok);
            assert_eq!(judge("transfer/both/pinned", level, 127.0, Some(63.0)), Verdict::AbovePeak);
            assert_eq!(judge("transfer/d2h/pinned", level, 900.0, None), Verdict::Ok);
        }
    }

    #[test]
    fn a_memory_little_faster_than_the_link_is_not_accused() {
        let claim = Claim { id: "stream/read/f32".into(), ..row(Level::Dram, 26.0) };
        assert_eq!(verdict(&claim, Bounds { peak_gbps: Some(100.0), link_gbps: Some(31.5), cache_bytes: None }), Verdict::Ok);
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
