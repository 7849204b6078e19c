//! What to think of a row's figures.

use crate::device::Verification;
use crate::pattern::{Bytes, Level};
use crate::record::Verdict;

/// Judges one row. `peak_gbps` is the theoretical memory peak, when known.
///
/// Wrong data outweighs everything. Only rows at the dram level can be above the
/// peak: the larger of requested and compulsory bytes is what the bus must carry.
pub fn verdict(verification: &Verification, level: Level, bytes: &Bytes, median_ns: f64, peak_gbps: Option<f64>) -> Verdict {
    if !verification.passed() {
        return Verdict::Unverified;
    }
    let carried_gbps = bytes.requested().max(bytes.compulsory) as f64 / median_ns;
    match peak_gbps {
        Some(peak) if level == Level::Dram && carried_gbps > peak => Verdict::AbovePeak,
        _ => Verdict::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: Verification = Verification { mismatches: 0, first_bad: None, stray: 0 };

    fn judge(level: Level, gbps: f64, peak: Option<f64>) -> Verdict {
        verdict(&RIGHT, level, &Bytes::contiguous(gbps as u64 * 1000, 0), 1000.0, peak)
    }

    #[test]
    fn more_than_the_bus_can_carry_is_named() {
        assert_eq!(judge(Level::Dram, 3868.0, Some(1008.0)), Verdict::AbovePeak);
        assert_eq!(judge(Level::Dram, 980.0, Some(1008.0)), Verdict::Ok);
    }

    #[test]
    fn only_dram_rows_can_be_above_the_peak() {
        assert_eq!(judge(Level::Cache, 3868.0, Some(1008.0)), Verdict::Ok);
    }

    #[test]
    fn an_unknown_peak_accuses_nobody() {
        assert_eq!(judge(Level::Dram, 1e6, None), Verdict::Ok);
    }

    #[test]
    fn amplified_traffic_counts_against_the_peak() {
        let bytes = Bytes { requested_read: 100_000, compulsory: 800_000, ..Bytes::default() };
        assert_eq!(verdict(&RIGHT, Level::Dram, &bytes, 1000.0, Some(500.0)), Verdict::AbovePeak);
    }

    #[test]
    fn wrong_data_outweighs_every_figure() {
        let wrong = Verification { mismatches: 1, first_bad: Some(7), stray: 0 };
        assert_eq!(verdict(&wrong, Level::Dram, &Bytes::contiguous(1000, 0), 1000.0, Some(5000.0)), Verdict::Unverified);
    }
}
