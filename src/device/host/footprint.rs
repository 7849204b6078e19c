//! Passes over a footprint, and the checks of their results.
//!
//! Each worker passes over its own part, so small footprints stay in the caches of its processor,
//! which no instruction bypasses: the curve of a host begins with those.

use std::hint::black_box;
use std::ops::Range;

use super::isa::{Kernel, Simd};
use super::memory::Region;
use super::share::{Findings, Share};
use super::{Loaded, Stores, Task, Timed, stream};
use crate::device::DeviceError;
use crate::pattern::LINE_BYTES;
use crate::pattern::footprint::Order;
use crate::pattern::{Arg, Data, Launch, data};

/// Words of what is read or copied at once in random order.
const LINE: u64 = LINE_BYTES / 4;
/// Lines of which the places are found, and which are asked for, before the first is used.
const AHEAD: usize = 16;

/// Lines in random order, and which of them are whose.
#[derive(Debug, Clone, Copy)]
struct Lines {
    order: Order,
    lines: u32,
}

impl Lines {
    fn new(words: u64) -> Result<Self, DeviceError> {
        let lines = u32::try_from(words / LINE).ok().filter(|lines| *lines > 1 && words.is_multiple_of(LINE * AHEAD as u64));
        let refused = || DeviceError::Failed(format!("the host has no random order of the lines of {words} words"));
        lines.map(|lines| Self { order: Order::new(lines), lines }).ok_or_else(refused)
    }

    /// The positions in the order that are this worker's.
    fn positions(&self, share: Share) -> Range<u64> {
        share.of(self.lines.into(), AHEAD as u64)
    }

    /// Calls `visit` with the first word of each of this worker's lines, in their order; `ask` comes some lines before.
    #[inline(always)]
    fn walk(&self, share: Share, ask: impl Fn(u64), mut visit: impl FnMut(u64)) {
        for first in self.positions(share).step_by(AHEAD) {
            let places: [u64; AHEAD] = std::array::from_fn(|k| u64::from(self.order.line(first as u32 + k as u32)) * LINE);
            places.iter().for_each(|place| ask(*place));
            places.iter().for_each(|place| visit(*place));
        }
    }
}

struct ReadLines {
    lines: Lines,
    share: Share,
    passes: u32,
    input: Region,
}

impl Kernel for ReadLines {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let from = |word: u64| self.input.address::<u32>(word).cast_const();
        let mut sums = simd.no_sums();
        for _ in 0..self.passes {
            let ask = |place: u64| [0, 16].iter().for_each(|line| simd.prefetch(from(place).wrapping_add(*line).cast()));
            black_box(self.lines).walk(self.share, ask, |place| {
                for k in 0..LINE as usize / S::LANES {
                    let word = place as u32 + (k * S::LANES) as u32;
                    // SAFETY: the order has no line beyond the region, and nothing writes it while a task runs.
                    sums = unsafe { simd.add_weighted(sums, from(place).add(k * S::LANES), word.wrapping_mul(2).wrapping_add(1)) };
                }
            });
        }
        simd.total(sums)
    }
}

struct CopyLines {
    lines: Lines,
    share: Share,
    passes: u32,
    output: Region,
    input: Region,
}

impl Kernel for CopyLines {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let ask = |place: u64| {
            for region in [self.input, self.output] {
                [0, 16].iter().for_each(|line| simd.prefetch(region.address::<f32>(place).wrapping_add(*line)));
            }
        };
        for _ in 0..self.passes {
            black_box(self.lines).walk(self.share, ask, |place| {
                // SAFETY: no other worker has this line, the input is another region, and nothing else runs.
                unsafe { copy_words(simd, self.output.slice_mut(place..place + LINE), self.input.slice(place..place + LINE)) };
            });
        }
    }
}

/// Copies whole lines through the caches.
#[inline(always)]
fn copy_words<S: Simd>(simd: S, output: &mut [f32], input: &[f32]) {
    for (to, from) in output.chunks_exact_mut(S::LANES).zip(input.chunks_exact(S::LANES)) {
        // SAFETY: both have one vector.
        unsafe { simd.store(to.as_mut_ptr(), simd.load(from.as_ptr())) };
    }
}

struct Copy<'a> {
    passes: u32,
    output: &'a mut [f32],
    input: &'a [f32],
}

impl Kernel for Copy<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for _ in 0..self.passes {
            copy_words(simd, black_box(&mut *self.output), black_box(self.input));
        }
    }
}

/// The task that carries out a launch of this module.
pub(super) fn kernel(launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let isa = loaded.isa;
    let &[Arg::Buffer(first), Arg::Buffer(input), Arg::U64(words), Arg::U32(passes)] = &launch.args[..] else {
        return Err(loaded.unknown(launch));
    };
    let input = loaded.region(input, words)?;
    let (task, stores): (Task<()>, _) = match launch.kernel {
        "footprint_read" => {
            let partials = loaded.partials(first)?;
            let task = move |share: Share| {
                let part = share.of(words, stream::GRAIN);
                // SAFETY: nothing writes the input while a task runs.
                let read = || isa.run(stream::Read { first: part.start, words: black_box(unsafe { input.slice(part.clone()) }) });
                stream::store_partial(share, partials, (0..passes).fold(0u64, |sum, _| sum.wrapping_add(read())));
            };
            (Box::new(task), None)
        }
        "footprint_read_random" => {
            let (partials, lines) = (loaded.partials(first)?, Lines::new(words)?);
            let task = move |share| stream::store_partial(share, partials, isa.run(ReadLines { lines, share, passes, input }));
            (Box::new(task), None)
        }
        "footprint_copy" => {
            let output = loaded.region(first, words)?;
            let task = move |share: Share| {
                let part = share.of(words, stream::GRAIN);
                // SAFETY: shares do not overlap, the input is another region, and nothing else runs.
                isa.run(Copy { passes, output: unsafe { output.slice_mut(part.clone()) }, input: unsafe { input.slice(part) } });
            };
            (Box::new(task), Some(Stores::Plain))
        }
        "footprint_copy_random" => {
            let (output, lines) = (loaded.region(first, words)?, Lines::new(words)?);
            (Box::new(move |share| isa.run(CopyLines { lines, share, passes, output, input })), Some(Stores::Plain))
        }
        _ => return Err(loaded.unknown(launch)),
    };
    Ok(Timed { task, stores })
}

/// The task that checks the result of a launch of this module.
pub(super) fn check(launch: &Launch, data: Data, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    let isa = loaded.isa;
    let &[Arg::Buffer(partials), Arg::U64(words), Arg::U32(passes), Arg::U32(seed), Arg::Data, Arg::Status] = &launch.args[..] else {
        return Err(loaded.unknown(launch));
    };
    let partials = loaded.partials(partials)?;
    let all_passes = move |sum: u64| sum.wrapping_mul(passes.into());
    match launch.kernel {
        "check_footprint_read" => Ok(Box::new(move |share| {
            stream::check_partial(share, partials, all_passes(isa.run(stream::ExpectedSum { share, n: words, seed, data })))
        })),
        "check_footprint_read_random" => {
            let lines = Lines::new(words)?;
            Ok(Box::new(move |share| {
                stream::check_partial(share, partials, all_passes(isa.run(ExpectedLines { lines, share, seed, data })))
            }))
        }
        _ => Err(loaded.unknown(launch)),
    }
}

/// Goes through the lines in the order of memory and asks of each at which position it comes.
struct ExpectedLines {
    lines: Lines,
    share: Share,
    seed: u32,
    data: Data,
}

impl Kernel for ExpectedLines {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> u64 {
        let mine = self.lines.positions(self.share);
        let lines = (0..self.lines.lines).filter(|line| mine.contains(&self.lines.order.position(*line).into()));
        let words = lines.flat_map(|line| (0..LINE).map(move |k| u64::from(line) * LINE + k));
        words.fold(0, |sum: u64, i| sum.wrapping_add(data::weighted(self.data.word(self.seed, i), i)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::isa::Isa;
    use super::super::testing::*;
    use super::*;
    use crate::pattern::{Plan, Work};

    #[test]
    fn every_operation_is_verified_with_every_instruction_set() {
        for operation in ["read", "copy", "read-random", "copy-random"] {
            for workers in [1, 2, 3] {
                let mut plan = plan(&format!("footprint/{operation}/196608"), workers);
                set_passes(&mut plan.check, 3);
                set_passes(work(&mut plan), 3);
                for isa in Isa::all() {
                    let verification = with_plan(isa, workers, &plan, |program| verify(program, Data::Random));
                    assert!(verification.passed(), "{operation} with {} on {workers} workers: {verification:?}", isa.name());
                }
            }
        }
    }

    fn work(plan: &mut Plan) -> &mut Launch {
        let Work::Kernel(work) = &mut plan.work else { unreachable!() };
        work
    }

    /// Fewer passes: a debug build takes its time. The check of a copy knows of none.
    fn set_passes(launch: &mut Launch, n: u32) {
        if launch.module == "footprint" {
            launch.args[3 - usize::from(launch.kernel.starts_with("check"))] = Arg::U32(n);
        }
    }

    #[test]
    fn a_read_that_leaves_out_a_pass_or_exchanges_words_is_found() {
        for operation in ["read", "read-random"] {
            let mut good = plan(&format!("footprint/{operation}/196608"), 2);
            set_passes(&mut good.check, 3);
            set_passes(work(&mut good), 3);
            assert!(found(&good, nothing, nothing).passed());
            let mut short = good.clone();
            let Some(Arg::U32(passes)) = work(&mut short).args.last_mut() else { unreachable!() };
            *passes -= 1;
            assert_eq!(found(&short, nothing, nothing).mismatches, 2);
            let swapped = found(&good, |regions| words(regions, 1).swap(17, 18), nothing);
            assert_eq!(swapped.mismatches, 1, "{operation}");
            let unwritten = found(&good, nothing, |regions| words(regions, 0)[..2].fill(data::POISON));
            assert_eq!((unwritten.mismatches, unwritten.first_bad), (1, Some(0)), "{operation}");
        }
    }

    #[test]
    fn a_wrong_word_of_a_copy_is_found_at_its_index() {
        for operation in ["copy", "copy-random"] {
            let plan = plan(&format!("footprint/{operation}/196608"), 2);
            assert!(found(&plan, nothing, nothing).passed());
            let flipped = found(&plan, nothing, |regions| words(regions, 0)[7001] ^= 1 << 12);
            assert_eq!((flipped.mismatches, flipped.first_bad), (1, Some(7001)), "{operation}");
        }
    }

    #[test]
    fn the_workers_together_visit_each_line_once() {
        let lines = Lines::new(96 << 10).unwrap();
        let mut seen = Vec::new();
        for worker in 0..3 {
            lines.walk(Share { worker, workers: 3 }, |_| {}, |place| seen.push(place));
        }
        assert_ne!(seen[..4], [0, 32, 64, 96]);
        seen.sort_unstable();
        assert!(seen.into_iter().eq((0..96 << 10).step_by(LINE as usize)));
    }

    #[test]
    fn words_that_are_no_whole_lines_have_no_order() {
        assert!(Lines::new(1000).is_err() && Lines::new(0).is_err() && Lines::new(1 << 40).is_err());
    }
}
