//! How work is split over the workers, and what a check finds in a share.

use std::ops::Range;

use crate::device::STATUS_START;

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

/// What a check has found: wrong results, and the lowest index of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Findings(pub [u64; 2]);

impl Findings {
    /// Nothing wrong yet.
    pub const NONE: Self = Self([STATUS_START[0], STATUS_START[1]]);

    /// Adds a wrong result.
    pub fn add(&mut self, index: u64) {
        *self = self.merge(Self([1, index]));
    }

    /// Both together.
    pub fn merge(self, other: Self) -> Self {
        let (Self([n, first]), Self([m, second])) = (self, other);
        Self([n + m, first.min(second)])
    }
}

/// Compares results, the first of which has index `first`, by `is_right(index, result)`.
///
/// Blocks are counted without a branch, so that the comparison becomes vector
/// code; only a block with something wrong is looked through.
#[inline(always)]
pub(super) fn compare<T: Copy>(first: u64, results: &[T], is_right: impl Fn(u64, T) -> bool) -> Findings {
    const BLOCK: usize = 1024;
    let mut findings = Findings::NONE;
    for (block, start) in results.chunks(BLOCK).zip((first..).step_by(BLOCK)) {
        let mut wrong = 0u32;
        for (k, &result) in block.iter().enumerate() {
            wrong += u32::from(!is_right(start + k as u64, result));
        }
        if wrong > 0 {
            for (k, &result) in block.iter().enumerate() {
                if !is_right(start + k as u64, result) {
                    findings.add(start + k as u64);
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
        assert_eq!(compare(100, &results, |i, r| i == r), Findings::NONE);
        results[4000] = 0;
        results[1500] = 0;
        assert_eq!(compare(100, &results, |i, r| i == r), Findings([2, 1600]));
    }
}
