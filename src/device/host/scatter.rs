//! Writes of chunks that an index orders, and the check of their places.

use super::gather::{LINE, Layout};
use super::isa::{Kernel, Simd};
use super::memory::Region;
use super::share::{Findings, Share, compare};
use super::{Loaded, Stores, Task, Timed};
use crate::device::DeviceError;
use crate::pattern::permutation::Permutation;
use crate::pattern::{Arg, Launch, data};

struct Write<'a> {
    layout: Layout,
    output: Region,
    /// This worker's part of the index, and where it begins.
    places: &'a [u32],
    first: u64,
    seed: u32,
}

impl Kernel for Write<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, output, places, first, seed } = self;
        let chunk_words = layout.chunk_words;
        for (k, (&place, chunk)) in places.iter().zip(first..).enumerate() {
            let start = layout.word(place.into()) as u64;
            let index = chunk * chunk_words as u64;
            // SAFETY: the index names each place once, and nothing else runs.
            let words: &mut [u32] = unsafe { output.slice_mut(start..start + chunk_words as u64) };
            if chunk_words < LINE {
                // A part of a line is read before it is written.
                simd.prefetch(output.address(layout.word(places[(k + layout.ahead()).min(places.len() - 1)].into()) as u64));
                words.iter_mut().zip(index..).for_each(|(word, i)| *word = data::ramp_word(seed, i));
                continue;
            }
            for (line, at) in words.chunks_exact_mut(LINE).zip((index..).step_by(LINE)) {
                let values: [u32; LINE] = std::array::from_fn(|k| data::ramp_word(seed, at + k as u64));
                for vector in (0..LINE).step_by(S::LANES) {
                    // SAFETY: the line is whole, and aligned as places are multiples of it.
                    unsafe { simd.store_streaming(line.as_mut_ptr().add(vector).cast(), simd.load(values.as_ptr().add(vector).cast())) };
                }
            }
        }
        simd.fence();
    }
}

/// The task that carries out a launch of this module.
pub(super) fn kernel(launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let isa = loaded.isa;
    let ("scatter_write", &[Arg::Buffer(output), Arg::Buffer(index), Arg::U64(chunks), Arg::U64(words), Arg::U64(pitch), Arg::U32(seed)]) =
        (launch.kernel, &launch.args[..])
    else {
        return Err(loaded.unknown(launch));
    };
    let layout = Layout::new([chunks, words, pitch])?;
    let (output, index) = (loaded.region(output, layout.words())?, loaded.region(index, layout.chunks)?);
    let task = move |share: Share| {
        let part = layout.part(share);
        // SAFETY: nothing writes the index while a task runs.
        let places = unsafe { index.slice(part.clone()) };
        isa.run(Write { layout, output, places, first: part.start, seed });
    };
    let stores = if layout.chunk_words < LINE { Stores::Plain } else { Stores::Streaming };
    Ok(Timed { task: Box::new(task), stores: Some(stores) })
}

/// The task that checks the result of a launch of this module.
pub(super) fn check(launch: &Launch, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    let isa = loaded.isa;
    let (
        "check_scatter",
        &[Arg::Buffer(output), Arg::U64(chunks), Arg::U64(words), Arg::U64(pitch), Arg::U32(order_seed), Arg::U32(seed), Arg::Status],
    ) = (launch.kernel, &launch.args[..])
    else {
        return Err(loaded.unknown(launch));
    };
    let layout = Layout::new([chunks, words, pitch])?;
    let (output, order) = (loaded.region(output, layout.words())?, Permutation::new(chunks, order_seed));
    Ok(Box::new(move |share| isa.run(CheckWrite { layout, share, output, order, seed })))
}

/// Asks the order itself where a chunk is, not the index. Two chunks at one place cannot both be right there.
struct CheckWrite {
    layout: Layout,
    share: Share,
    output: Region,
    order: Permutation,
    seed: u32,
}

impl Kernel for CheckWrite {
    type Output = Findings;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Findings {
        let Self { layout, share, output, order, seed } = self;
        let words = layout.chunk_words as u64;
        layout.part(share).fold(Findings::NONE, |found, chunk| {
            let start = layout.word(order.place(chunk)) as u64;
            // SAFETY: nothing writes while a check runs.
            let place = unsafe { output.slice(start..start + layout.pitch_words as u64) };
            found.merge(compare(start, place, |at, word: u32| {
                let k = at - start;
                word == if k < words { data::ramp_word(seed, chunk * words + k) } else { data::POISON }
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;

    #[test]
    fn every_chunk_is_verified_with_every_instruction_set() {
        for chunk in [4u64, 8, 16, 32, 64, 128, 1024, 4096] {
            for chunks in [1, 2, 3, 7, 100] {
                verifies(&format!("scatter/write/{chunk}@{}", chunk.max(64) * chunks));
            }
        }
    }

    #[test]
    fn a_chunk_at_another_place_or_beside_its_place_is_found() {
        for (chunk, words_of_two) in [(4, 2), (64, 32), (256, 128)] {
            let plan = plan(&format!("scatter/write/{chunk}@65536"), 2);
            assert!(found(&plan, nothing, nothing).passed());
            let swapped = found(&plan, |regions| words(regions, 1).swap(0, 1), nothing);
            assert_eq!(swapped.mismatches, words_of_two, "{chunk}");
            let flipped = found(&plan, nothing, |regions| words(regions, 0)[64] ^= 1);
            assert_eq!((flipped.mismatches, flipped.first_bad), (1, Some(64)), "{chunk}");
        }
        let plan = plan("scatter/write/4@65536", 2);
        let beside = found(&plan, nothing, |regions| words(regions, 0)[33] = 5);
        assert_eq!((beside.mismatches, beside.first_bad), (1, Some(33)));
    }
}
