//! How work is split over the workers, and what a check finds in a share.

use std::ops::Range;

/// One worker's part of a launch.
///
/// The split is static: which items a worker has depends on nothing but their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Which worker, from 0.
    pub worker: usize,
    /// How many there are.
    pub workers: usize,
}

impl Share {
    /// This worker's part of `items`. Parts begin at multiples of `grain`, differ by
    /// one grain at most, and together are all items, each once.
    pub fn of(self, items: u64, grain: u64) -> Range<u64> {
        let grains = items.div_ceil(grain);
        let (each, more) = (grains / self.workers as u64, grains % self.workers as u64);
        // Sum of the sizes before worker w: no product that could overflow.
        let start = |w: u64| (each * w + w.min(more)).saturating_mul(grain).min(items);
        let w = self.worker as u64;
        start(w)..start(w + 1)
    }
}

/// What a check has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Findings {
    /// How many were wrong.
    pub mismatches: u64,
    /// The lowest index of one.
    pub first_bad: u64,
    /// How many were compared.
    pub compared: u64,
}

impl Findings {
    /// Nothing compared yet.
    pub const NONE: Self = Self { mismatches: 0, first_bad: u64::MAX, compared: 0 };

    /// Both together.
    pub fn merge(self, other: Self) -> Self {
        Self {
            mismatches: self.mismatches + other.mismatches,
            first_bad: self.first_bad.min(other.first_bad),
            compared: self.compared + other.compared,
        }
    }
}

/// Compares results, the first of which has index `first`, by `is_right(index, result)`.
///
/// Blocks are counted without a branch, so that the comparison becomes vector
/// code; only a block with something wrong is looked through.
#[inline(always)]
pub(super) fn compare<T: Copy>(first: u64, results: &[T], is_right: impl Fn(u64, T) -> bool) -> Findings {
    const BLOCK: usize = 1024;
    let mut findings = Findings { compared: results.len() as u64, ..Findings::NONE };
    for (block, start) in results.chunks(BLOCK).zip((first..).step_by(BLOCK)) {
        let mut wrong = 0u32;
        for (k, &result) in block.iter().enumerate() {
            wrong += u32::from(!is_right(start + k as u64, result));
        }
        if wrong > 0 {
            for (k, &result) in block.iter().enumerate() {
                if !is_right(start + k as u64, result) {
                    findings.mismatches += 1;
                    findings.first_bad = findings.first_bad.min(start + k as u64);
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_together_are_all_items_each_once(items in 0u64..1 << 40, grain in 1u64..5000, workers in 1usize..70) {
            let mut next = 0;
            for worker in 0..workers {
                let part = Share { worker, workers }.of(items, grain);
                prop_assert_eq!(part.start, next);
                prop_assert!(part.start.is_multiple_of(grain) || part.start == items);
                prop_assert!(part.end - part.start <= items / workers as u64 + 2 * grain);
                next = part.end;
            }
            prop_assert_eq!(next, items);
        }
    }

    #[test]
    fn a_share_of_the_largest_size_does_not_overflow() {
        let part = Share { worker: 6, workers: 7 }.of(u64::MAX, 1024);
        assert_eq!(part.end, u64::MAX);
    }

    #[test]
    fn a_comparison_counts_what_is_wrong_and_names_the_lowest() {
        let mut results: Vec<u64> = (100..5000).collect();
        assert_eq!(compare(100, &results, |i, r| i == r), Findings { compared: 4900, ..Findings::NONE });
        results[4000] = 0;
        results[1500] = 0;
        assert_eq!(compare(100, &results, |i, r| i == r), Findings { mismatches: 2, first_bad: 1600, compared: 4900 });
    }
}
