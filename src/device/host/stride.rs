//! Strided passes, and the checks of their results.
//!
//! Each worker walks its own part of the buffer, lap by lap. A stride of one word
//! is a contiguous pass and runs as one.

use super::isa::{Kernel, Simd};
use super::memory::Region;
use super::share::{Findings, Share, compare};
use super::{Loaded, Stores, Task, Timed, stream};
use crate::device::DeviceError;
use crate::pattern::data;
use crate::pattern::{Arg, Data, Launch};

/// Words of a cache line.
const LINE: u64 = 16;

/// Lines are asked for this many accesses, and at least this many words, before their
/// use. On two cores of a Sapphire Rapids server that gives a read 1.48 x at a stride of 8
/// bytes, 1.17 x at 32 and 1.12 x at 128; a quarter or four times as far is up to 18 % less.
const AHEAD_ACCESSES: usize = 16;
const AHEAD_WORDS: usize = 512;

/// A walk over whole laps.
#[derive(Debug, Clone, Copy)]
struct Laps {
    /// Words between two accesses of one lap.
    stride: u64,
    /// Words by which each lap starts later than the one before.
    shift: u64,
    /// How often the walk goes through the buffer.
    laps: u64,
    /// Accesses of each lap.
    lap: u64,
}

impl Laps {
    /// From the arguments of a launch: words, accesses, and the words of a stride and of a shift.
    fn new([words, accesses, stride, shift]: [u64; 4]) -> Result<Self, DeviceError> {
        let valid = stride.is_power_of_two() && shift.is_power_of_two() && words.is_multiple_of(stride.max(LINE));
        let lap = words.checked_div(stride).unwrap_or_default();
        if !valid || lap == 0 || !accesses.is_multiple_of(lap) || accesses / lap > 1 && (accesses / lap).checked_mul(shift) != Some(stride)
        {
            return Err(DeviceError::Failed(format!(
                "the host walks whole laps of powers of two: {accesses} accesses over {words} words with stride {stride} and shift {shift} are none"
            )));
        }
        Ok(Self { stride, shift, laps: accesses / lap, lap })
    }

    /// The positions within each lap that are this worker's.
    fn positions(&self, share: Share) -> std::ops::Range<u64> {
        share.of(self.lap, (stream::GRAIN / self.stride).max(1))
    }

    /// The words that those positions, in any lap, lie in.
    fn part(&self, share: Share) -> std::ops::Range<u64> {
        let positions = self.positions(share);
        positions.start * self.stride..positions.end * self.stride
    }
}

/// What happens at each access.
trait Visit {
    /// Asks for the line of word `at`, which may lie outside.
    fn prefetch<S: Simd>(&self, simd: S, at: usize);
    /// Handles word `at`, the `nth` access of this worker's part of the lap.
    ///
    /// # Safety
    /// `at` is inside the part.
    unsafe fn visit(&mut self, at: usize, nth: usize);
}

/// One worker's part, `words` long, of one lap that begins at word `shift`.
#[inline(always)]
fn lap<S: Simd, V: Visit>(simd: S, visit: &mut V, words: usize, stride: usize, shift: usize) {
    match stride {
        2 => lines::<S, V, 8>(simd, visit, words),
        4 => lines::<S, V, 4>(simd, visit, words),
        8 => lines::<S, V, 2>(simd, visit, words),
        _ => {
            let ahead = (stride * AHEAD_ACCESSES).max(AHEAD_WORDS);
            for nth in 0..words / stride {
                let at = nth * stride + shift;
                visit.prefetch(simd, at + ahead);
                // SAFETY: the part is whole strides, and the shift is less than one.
                unsafe { visit.visit(at, nth) };
            }
        }
    }
}

/// Strides of which several fit a line, `PER_LINE` of them.
#[inline(always)]
fn lines<S: Simd, V: Visit, const PER_LINE: usize>(simd: S, visit: &mut V, words: usize) {
    const LINE: usize = self::LINE as usize;
    for line in 0..words / LINE {
        visit.prefetch(simd, line * LINE + AHEAD_WORDS);
        for k in 0..PER_LINE {
            // SAFETY: the part is whole lines.
            unsafe { visit.visit(line * LINE + k * (LINE / PER_LINE), line * PER_LINE + k) };
        }
    }
}

struct Read<'a> {
    laps: Laps,
    share: Share,
    words: &'a [u32],
}

struct Sum<'a> {
    words: &'a [u32],
    /// Index of the first access of this worker's part of the lap.
    first: u64,
    sum: u64,
}

impl Visit for Sum<'_> {
    #[inline(always)]
    fn prefetch<S: Simd>(&self, simd: S, at: usize) {
        simd.prefetch(self.words.as_ptr().wrapping_add(at).cast());
    }

    #[inline(always)]
    unsafe fn visit(&mut self, at: usize, nth: usize) {
        // SAFETY: the caller vouches for the index.
        let word = unsafe { *self.words.get_unchecked(at) };
        self.sum = self.sum.wrapping_add(data::weighted(word, self.first + nth as u64));
    }
}

impl Kernel for Read<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let start = self.laps.positions(self.share).start;
        let mut sum = Sum { words: self.words, first: 0, sum: 0 };
        for k in 0..self.laps.laps {
            sum.first = k * self.laps.lap + start;
            lap(simd, &mut sum, self.words.len(), self.laps.stride as usize, (k * self.laps.shift) as usize);
        }
        sum.sum
    }
}

struct Copy<'a> {
    laps: Laps,
    output: &'a mut [u32],
    input: &'a [u32],
}

impl Visit for Copy<'_> {
    #[inline(always)]
    fn prefetch<S: Simd>(&self, simd: S, at: usize) {
        simd.prefetch(self.input.as_ptr().wrapping_add(at).cast());
        simd.prefetch(self.output.as_ptr().wrapping_add(at).cast());
    }

    #[inline(always)]
    unsafe fn visit(&mut self, at: usize, _nth: usize) {
        // SAFETY: the caller vouches for the index, and both are of one length.
        unsafe { *self.output.get_unchecked_mut(at) = *self.input.get_unchecked(at) };
    }
}

impl Kernel for Copy<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        assert_eq!(self.output.len(), self.input.len());
        let laps = self.laps;
        for k in 0..laps.laps {
            let words = self.input.len();
            lap(simd, &mut self, words, laps.stride as usize, (k * laps.shift) as usize);
        }
    }
}

/// The task that carries out a launch of this module.
pub(super) fn kernel(launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let isa = loaded.isa;
    let &[Arg::Buffer(first), Arg::Buffer(input), Arg::U64(words), Arg::U64(accesses), Arg::U64(stride), Arg::U64(shift)] =
        &launch.args[..]
    else {
        return Err(loaded.unknown(launch));
    };
    let laps = Laps::new([words, accesses, stride, shift])?;
    let input = loaded.region(input, words)?;
    match launch.kernel {
        "stride_read" => {
            let partials = loaded.partials(first)?;
            let task = move |share: Share| {
                if stride == 1 {
                    return stream::sum(isa, share, input, partials, words);
                }
                // SAFETY: nothing writes the input while a task runs.
                let sum = isa.run(Read { laps, share, words: unsafe { input.slice(laps.part(share)) } });
                stream::store_partial(share, partials, sum);
            };
            Ok(Timed { task: Box::new(task), stores: None })
        }
        "stride_copy" => {
            let output = loaded.region(first, words)?;
            let task = move |share: Share| {
                if stride == 1 {
                    return stream::copy(isa, share, output, input, words);
                }
                let part = laps.part(share);
                // SAFETY: parts do not overlap, the input is another region, and nothing else runs.
                isa.run(Copy { laps, output: unsafe { output.slice_mut(part.clone()) }, input: unsafe { input.slice(part) } });
            };
            let stores = if stride == 1 { Stores::Streaming } else { Stores::Plain };
            Ok(Timed { task: Box::new(task), stores: Some(stores) })
        }
        _ => Err(loaded.unknown(launch)),
    }
}

/// The task that checks the result of a launch of this module.
pub(super) fn check(launch: &Launch, data: Data, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    let isa = loaded.isa;
    let &[
        Arg::Buffer(first),
        Arg::U64(words),
        Arg::U64(accesses),
        Arg::U64(stride),
        Arg::U64(shift),
        Arg::U32(seed),
        Arg::Data,
        Arg::Status,
    ] = &launch.args[..]
    else {
        return Err(loaded.unknown(launch));
    };
    let laps = Laps::new([words, accesses, stride, shift])?;
    match launch.kernel {
        "check_stride_read" => {
            let partials = loaded.partials(first)?;
            Ok(Box::new(move |share| stream::check_partial(share, partials, isa.run(ExpectedSum { laps, share, seed, data }))))
        }
        "check_stride_copy" => {
            let output = loaded.region(first, words)?;
            Ok(Box::new(move |share| isa.run(CheckCopy { laps, share, output, seed, data })))
        }
        _ => Err(loaded.unknown(launch)),
    }
}

/// Position by position where the kernel goes lap by lap.
struct ExpectedSum {
    laps: Laps,
    share: Share,
    seed: u32,
    data: Data,
}

impl Kernel for ExpectedSum {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> u64 {
        let laps = self.laps;
        let at = |position, k| {
            let word = self.data.word(self.seed, position * laps.stride + k * laps.shift);
            data::weighted(word, k * laps.lap + position)
        };
        laps.positions(self.share).fold(0, |sum: u64, position| (0..laps.laps).fold(sum, |sum, k| sum.wrapping_add(at(position, k))))
    }
}

struct CheckCopy {
    laps: Laps,
    share: Share,
    output: Region,
    seed: u32,
    data: Data,
}

impl Kernel for CheckCopy {
    type Output = Findings;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Findings {
        let part = self.laps.part(self.share);
        let between = if self.laps.laps > 1 { self.laps.shift } else { self.laps.stride } - 1;
        // SAFETY: nothing writes while a check runs.
        compare(part.start, unsafe { self.output.slice(part) }, |i, word: u32| {
            word == if i & between == 0 { self.data.word(self.seed, i) } else { data::POISON }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::pattern::stride::Walk;
    use proptest::prelude::*;

    #[test]
    fn every_stride_is_verified_with_every_instruction_set() {
        for stride in [4u64, 8, 16, 32, 64, 128, 256, 1024, 4096, 65536] {
            for strides in [1, 3, 7, 65] {
                let bytes = stride.max(64) * strides;
                for operation in ["read", "copy"] {
                    verifies(&format!("stride/{operation}/{stride}@{bytes}"));
                }
            }
        }
    }

    #[test]
    fn the_longest_strides_are_verified() {
        for strides in [1, 3] {
            for operation in ["read", "copy"] {
                let plan = plan(&format!("stride/{operation}/2097152@{}", strides << 21), 2);
                assert!(found(&plan, nothing, nothing).passed(), "{operation} {strides}");
            }
        }
    }

    fn walk_and_laps(bytes: u64, stride: u64) -> (Walk, Laps) {
        let walk = Walk::new(bytes, stride, 64);
        (walk, Laps::new([bytes / 4, walk.accesses, walk.stride_words, walk.shift_words]).unwrap())
    }

    /// Records the words and indices of its visits.
    struct Visits(Vec<(usize, usize)>);

    impl Visit for Visits {
        fn prefetch<S: Simd>(&self, _simd: S, _at: usize) {}
        unsafe fn visit(&mut self, at: usize, nth: usize) {
            self.0.push((at, nth));
        }
    }

    struct OneLap {
        words: usize,
        stride: usize,
        shift: usize,
    }

    impl Kernel for OneLap {
        type Output = Vec<(usize, usize)>;
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let mut visits = Visits(Vec::new());
            lap(simd, &mut visits, self.words, self.stride, self.shift);
            visits.0
        }
    }

    proptest! {
        #[test]
        fn the_workers_together_make_the_accesses_of_the_walk(log_stride in 3u32..13, strides in 1u64..200, workers in 1usize..5) {
            let stride = 1 << log_stride;
            let (walk, laps) = walk_and_laps(stride.max(64) * strides, stride);
            let mut made = Vec::new();
            for worker in 0..workers {
                let share = Share { worker, workers };
                let part = laps.part(share);
                for k in 0..laps.laps {
                    let one = OneLap { words: (part.end - part.start) as usize, stride: laps.stride as usize, shift: (k * laps.shift) as usize };
                    for (at, nth) in super::super::isa::Isa::best().run(one) {
                        made.push((k * laps.lap + laps.positions(share).start + nth as u64, part.start + at as u64));
                    }
                }
            }
            made.sort_unstable();
            let expected: Vec<_> = (0..walk.accesses).map(|i| (i, walk.word(i))).collect();
            prop_assert_eq!(made, expected);
        }
    }

    #[test]
    fn a_buffer_of_more_than_32_bits_of_words_is_walked_to_its_end() {
        for stride in [64, 256, 4096] {
            let (walk, laps) = walk_and_laps((1 << 36) + 4096, stride);
            let last = Share { worker: 6, workers: 7 };
            assert_eq!(laps.part(last).end, (1 << 34) + 1024);
            let (position, k) = (laps.positions(last).end - 1, laps.laps - 1);
            let i = k * laps.lap + position;
            assert_eq!(i, walk.accesses - 1);
            assert_eq!(position * laps.stride + k * laps.shift, walk.word(i));
        }
    }

    #[test]
    fn a_walk_that_leaves_a_lap_unfinished_is_refused() {
        assert!(Laps::new([64, 3, 16, 16]).is_err());
        assert!(Laps::new([64, 4, 16, 16]).is_ok());
        assert!(Laps::new([65, 4, 16, 16]).is_err());
        assert!(Laps::new([64, 4, 0, 16]).is_err());
        assert!(Laps::new([0, 0, 16, 16]).is_err());
    }

    #[test]
    fn a_read_of_wrong_words_is_found() {
        let plan = plan("stride/read/256@65536", 2);
        assert!(found(&plan, nothing, nothing).passed());
        // Accesses 0 and 1 of a lap, and word 0 of the upper half.
        let swapped = found(&plan, |regions| words(regions, 1).swap(0, 64), nothing);
        assert_eq!((swapped.mismatches, swapped.first_bad), (1, Some(0)));
        let flipped = found(&plan, |regions| words(regions, 1)[8192] ^= 1, nothing);
        assert_eq!((flipped.mismatches, flipped.first_bad), (1, Some(1)));
        // A word that is not touched may hold anything.
        assert!(found(&plan, |regions| words(regions, 1)[1] ^= 1, nothing).passed());
    }

    #[test]
    fn a_copy_of_too_few_or_too_many_words_is_found() {
        for (stride, touched) in [(32, 8), (256, 16)] {
            let plan = plan(&format!("stride/copy/{stride}@65536"), 2);
            assert!(found(&plan, nothing, nothing).passed());
            let wrong = |word: usize, value: u32| found(&plan, nothing, move |regions| words(regions, 0)[word] = value);
            assert_eq!(wrong(touched, data::POISON).first_bad, Some(touched as u64));
            assert_eq!(wrong(touched + 1, data::random_word(0, 0)).first_bad, Some(touched as u64 + 1));
            let swapped = found(&plan, nothing, |regions| words(regions, 0).swap(0, touched));
            assert_eq!((swapped.mismatches, swapped.first_bad), (2, Some(0)));
        }
    }
}
