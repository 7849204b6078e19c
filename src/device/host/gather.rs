//! Reads of chunks that an index orders, and the check of their sums.
//!
//! Each worker has its share of the index.

use super::isa::{Kernel, Simd};
use super::memory::Region;
use super::share::{Findings, Share};
use super::{Loaded, Task, Timed, stream};
use crate::device::DeviceError;
use crate::pattern::permutation::Permutation;
use crate::pattern::{Arg, Data, Launch, data};

/// Words of a cache line.
pub(super) const LINE: usize = 16;

/// So many lines are asked for before their use, which no prefetcher of the processor could guess.
const AHEAD_LINES: usize = 16;

/// Where chunks lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub chunks: u64,
    pub chunk_words: usize,
    pub pitch_words: usize,
}

impl Layout {
    /// From the arguments of a launch.
    pub(super) fn new([chunks, chunk_words, pitch_words]: [u64; 3]) -> Result<Self, DeviceError> {
        let lines = |words: u64| words.is_power_of_two() && (words < LINE as u64 || words.is_multiple_of(LINE as u64));
        // An index has places of 32 bits.
        if !(1..=1 << 32).contains(&chunks) || !lines(chunk_words) || !lines(pitch_words) || pitch_words < chunk_words {
            return Err(DeviceError::Failed(format!(
                "the host has no kernel for {chunks} chunks of {chunk_words} words, {pitch_words} words apart"
            )));
        }
        Ok(Self { chunks, chunk_words: chunk_words as usize, pitch_words: pitch_words as usize })
    }

    /// Words of an array.
    pub(super) fn words(self) -> u64 {
        self.chunks * self.pitch_words as u64
    }

    /// The chunks that are this worker's, in the order of the index.
    pub(super) fn part(self, share: Share) -> std::ops::Range<u64> {
        share.of(self.chunks, 1)
    }

    /// The first word of the chunk at a place.
    pub(super) fn word(self, place: u64) -> usize {
        place as usize * self.pitch_words
    }

    /// How many chunks ahead of its use one is asked for.
    pub(super) fn ahead(self) -> usize {
        (AHEAD_LINES * LINE / self.chunk_words).clamp(1, AHEAD_LINES)
    }
}

struct Read<'a> {
    layout: Layout,
    arrays: &'a [&'a [u32]],
    /// This worker's part of the index, and where it begins.
    places: &'a [u32],
    first: u64,
}

impl Kernel for Read<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let Self { layout, arrays, places, first } = self;
        let chunk_words = layout.chunk_words;
        let (mut lines, mut rest) = (simd.no_sums(), 0u64);
        for (array, n) in arrays.iter().zip(0..) {
            // Index of the worker's first word among all that are read.
            let mut index = (n * layout.chunks + first) * chunk_words as u64;
            for (k, &place) in places.iter().enumerate() {
                let next = array.as_ptr().wrapping_add(layout.word(places[(k + layout.ahead()).min(places.len() - 1)].into()));
                let chunk = &array[layout.word(place.into())..][..chunk_words];
                if chunk_words < LINE {
                    simd.prefetch(next.cast());
                    for (word, i) in chunk.iter().zip(index..) {
                        rest = rest.wrapping_add(data::weighted(*word, i));
                    }
                } else {
                    for at in (0..chunk_words).step_by(LINE) {
                        simd.prefetch(next.wrapping_add(at).cast());
                        for vector in (at..at + LINE).step_by(S::LANES) {
                            let weight = (index as u32).wrapping_add(vector as u32).wrapping_mul(2).wrapping_add(1);
                            // SAFETY: the chunk is whole lines.
                            lines = unsafe { simd.add_weighted(lines, chunk.as_ptr().add(vector), weight) };
                        }
                    }
                }
                index += chunk_words as u64;
            }
        }
        rest.wrapping_add(simd.total(lines))
    }
}

/// The task that carries out a launch of this module.
pub(super) fn kernel(launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let isa = loaded.isa;
    let (partials, inputs, index, sizes) = match (launch.kernel, &launch.args[..]) {
        (
            "gather_read",
            &[Arg::Buffer(partials), Arg::Buffer(input), Arg::Buffer(index), Arg::U64(chunks), Arg::U64(words), Arg::U64(pitch)],
        ) => (partials, vec![input], index, [chunks, words, pitch]),
        (
            "gather_kv",
            &[Arg::Buffer(partials), Arg::Buffer(keys), Arg::Buffer(values), Arg::Buffer(table), Arg::U64(pages), Arg::U64(words)],
        ) => (partials, vec![keys, values], table, [pages, words, words]),
        _ => return Err(loaded.unknown(launch)),
    };
    let layout = Layout::new(sizes)?;
    let arrays: Vec<Region> = inputs.into_iter().map(|input| loaded.region(input, layout.words())).collect::<Result<_, _>>()?;
    let (partials, index) = (loaded.partials(partials)?, loaded.region(index, layout.chunks)?);
    let task = move |share: Share| {
        let part = layout.part(share);
        // SAFETY: nothing writes arrays and index while a task runs.
        let arrays: Vec<&[u32]> = arrays.iter().map(|array| unsafe { array.slice(0..layout.words()) }).collect();
        // SAFETY: as above.
        let places = unsafe { index.slice(part.clone()) };
        stream::store_partial(share, partials, isa.run(Read { layout, arrays: &arrays, places, first: part.start }));
    };
    Ok(Timed { task: Box::new(task), stores: None })
}

/// The task that checks the result of a launch of this module.
pub(super) fn check(launch: &Launch, data: Data, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    let isa = loaded.isa;
    let (
        "check_gather",
        &[
            Arg::Buffer(partials),
            Arg::U64(chunks),
            Arg::U64(words),
            Arg::U64(pitch),
            // Of the tiles of a GPU's blocks.
            Arg::U64(_),
            Arg::U32(arrays),
            Arg::U32(order_seed),
            Arg::U32(seed),
            Arg::Data,
            Arg::Status,
        ],
    ) = (launch.kernel, &launch.args[..])
    else {
        return Err(loaded.unknown(launch));
    };
    let layout = Layout::new([chunks, words, pitch])?;
    let (partials, order) = (loaded.partials(partials)?, Permutation::new(chunks, order_seed));
    Ok(Box::new(move |share| stream::check_partial(share, partials, isa.run(ExpectedSum { layout, share, order, arrays, seed, data }))))
}

/// Asks the order itself where a chunk is, not the index.
struct ExpectedSum {
    layout: Layout,
    share: Share,
    order: Permutation,
    arrays: u32,
    seed: u32,
    data: Data,
}

impl Kernel for ExpectedSum {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> u64 {
        let layout = self.layout;
        let words = layout.chunk_words as u64;
        let mut sum = 0u64;
        for array in 0..self.arrays {
            for chunk in layout.part(self.share) {
                let place = layout.word(self.order.place(chunk)) as u64;
                let index = (u64::from(array) * layout.chunks + chunk) * words;
                for k in 0..words {
                    sum = sum.wrapping_add(data::weighted(self.data.word(self.seed + array, place + k), index + k));
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;

    #[test]
    fn every_chunk_is_verified_with_every_instruction_set() {
        for chunk in [4u64, 8, 16, 32, 64, 128, 1024, 4096] {
            for chunks in [1, 2, 3, 7, 100] {
                verifies(&format!("gather/read/{chunk}@{}", chunk.max(64) * chunks));
            }
        }
        for pages in [1, 2, 5] {
            verifies(&format!("gather/kv/4096@{}", 4096 * pages));
        }
    }

    #[test]
    fn a_read_of_other_words_or_in_another_order_is_found() {
        for (id, index) in [("gather/read/4@65536", 2), ("gather/read/256@65536", 2), ("gather/kv/4096@65536", 3)] {
            let plan = plan(id, 2);
            assert!(found(&plan, nothing, nothing).passed(), "{id}");
            // Two chunks of one worker exchanged in the index: the same words in another order.
            assert_eq!(found(&plan, |regions| words(regions, index).swap(0, 1), nothing).mismatches, 1, "{id}");
            // One chunk read twice and another not.
            assert_eq!(found(&plan, |regions| words(regions, index)[0] = words(regions, index)[1], nothing).mismatches, 1, "{id}");
            let flipped = found(&plan, |regions| words(regions, 1)[0] ^= 1 << 31, nothing);
            assert_eq!(flipped.mismatches, 1, "{id}");
        }
        // What lies between chunks is not read, and the values are as well as the keys.
        assert!(found(&plan("gather/read/4@65536", 2), |regions| words(regions, 1)[1] ^= 1, nothing).passed());
        assert!(!found(&plan("gather/kv/4096@65536", 2), |regions| words(regions, 2)[5000] ^= 1, nothing).passed());
    }
}
