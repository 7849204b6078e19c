//! Contiguous passes that compute with numbers, and the checks of their results.

use std::mem::size_of;
use std::ops::{Add, Mul};

use super::isa::{Isa, Kernel, Simd};
use super::memory::{Region, Word};
use super::share::{Findings, Share, compare};
use super::stream::{GRAIN, Pass, check_partial_by, head, store_partial, walk};
use super::{Loaded, Stores, Task, Timed};
use crate::device::DeviceError;
use crate::pattern::{Arg, Data, HOST_PIECE_ELEMENTS, Launch};

/// A type of numbers.
trait Number: Word + Copy + Default + Send + Sync + Into<f64> + Add<Output = Self> + Mul<Output = Self> + 'static {
    /// Of a cache line.
    const PER_LINE: usize = 64 / size_of::<Self>();
    const BYTES: u64 = size_of::<Self>() as u64;
    /// A constant of the kernels in this type.
    fn of(x: f32) -> Self;
    /// Number `i` of an input.
    fn input(data: Data, seed: u32, i: u64) -> Self;
}

impl Number for f32 {
    fn of(x: f32) -> Self {
        x
    }
    fn input(data: Data, seed: u32, i: u64) -> Self {
        data.number(seed, i)
    }
}

impl Number for f64 {
    fn of(x: f32) -> Self {
        x.into()
    }
    fn input(data: Data, seed: u32, i: u64) -> Self {
        data.double(seed, i)
    }
}

/// The most elements of a line.
const MOST_PER_LINE: usize = 16;

/// Stores what `each` makes of two inputs.
struct Stored<'a, T, F> {
    output: &'a mut [T],
    b: &'a [T],
    c: &'a [T],
    each: F,
}

impl<S: Simd, T: Number, F: Fn(T, T) -> T> Pass<S> for Stored<'_, T, F> {
    const LINE: usize = T::PER_LINE;

    #[inline(always)]
    fn prefetch(&self, simd: S, at: usize) {
        simd.prefetch(self.b.as_ptr().wrapping_add(at).cast());
        simd.prefetch(self.c.as_ptr().wrapping_add(at).cast());
    }

    #[inline(always)]
    unsafe fn line(&mut self, simd: S, at: usize) {
        let mut line = [T::default(); MOST_PER_LINE];
        for (k, result) in line.iter_mut().take(T::PER_LINE).enumerate() {
            // SAFETY: the caller vouches for a whole line, and lengths are equal.
            *result = unsafe { (self.each)(*self.b.get_unchecked(at + k), *self.c.get_unchecked(at + k)) };
        }
        // SAFETY: the caller vouches for a whole, aligned line, 64 bytes of either type.
        unsafe {
            let to = self.output.as_mut_ptr().add(at).cast::<f32>();
            for k in (0..16).step_by(S::LANES) {
                simd.store_streaming(to.add(k), simd.load(line.as_ptr().cast::<f32>().add(k)));
            }
        }
    }

    #[inline(always)]
    fn word(&mut self, at: usize) {
        self.output[at] = (self.each)(self.b[at], self.c[at]);
    }
}

impl<T: Number, F: Fn(T, T) -> T> Kernel for Stored<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        assert!(self.output.len() == self.b.len() && self.output.len() == self.c.len());
        let (length, head) = (self.output.len(), head(self.output));
        walk(simd, &mut self, length, head);
    }
}

/// Sums the products of two inputs.
struct Dot<'a, T> {
    b: &'a [T],
    c: &'a [T],
}

/// One piece of them: a sum for each element of a line.
struct Products<'a, T> {
    b: &'a [T],
    c: &'a [T],
    sums: [T; MOST_PER_LINE],
}

impl<S: Simd, T: Number> Pass<S> for Products<'_, T> {
    const LINE: usize = T::PER_LINE;

    #[inline(always)]
    fn prefetch(&self, simd: S, at: usize) {
        simd.prefetch(self.b.as_ptr().wrapping_add(at).cast());
        simd.prefetch(self.c.as_ptr().wrapping_add(at).cast());
    }

    #[inline(always)]
    unsafe fn line(&mut self, _simd: S, at: usize) {
        for k in 0..T::PER_LINE {
            // SAFETY: the caller vouches for a whole line, and lengths are equal.
            self.sums[k] = self.sums[k] + unsafe { *self.b.get_unchecked(at + k) * *self.c.get_unchecked(at + k) };
        }
    }

    #[inline(always)]
    fn word(&mut self, at: usize) {
        self.sums[0] = self.sums[0] + self.b[at] * self.c[at];
    }
}

impl<T: Number> Kernel for Dot<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        assert_eq!(self.b.len(), self.c.len());
        let pieces = self.b.chunks(HOST_PIECE_ELEMENTS).zip(self.c.chunks(HOST_PIECE_ELEMENTS));
        pieces.fold(0.0, |sum, (b, c)| {
            let mut products = Products { b, c, sums: [T::default(); MOST_PER_LINE] };
            walk(simd, &mut products, b.len(), 0);
            sum + products.sums.into_iter().map(Into::into).sum::<f64>()
        })
    }
}

/// The part of `elements` that is this worker's; parts are whole pages of either type.
fn part(share: Share, elements: u64) -> std::ops::Range<u64> {
    share.of(elements, GRAIN)
}

/// The task that carries out a launch, whose name ends in the element's type.
pub(super) fn kernel(launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let Some((operation, element)) = launch.kernel.strip_prefix("stream_").and_then(|name| name.rsplit_once('_')) else {
        return Err(loaded.unknown(launch));
    };
    match element {
        "f32" => kernel_of::<f32>(operation, launch, loaded),
        "f64" => kernel_of::<f64>(operation, launch, loaded),
        _ => Err(loaded.unknown(launch)),
    }
}

fn kernel_of<T: Number>(operation: &str, launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let isa = loaded.isa;
    match (operation, &launch.args[..]) {
        ("scale", &[Arg::Buffer(a), Arg::Buffer(b), Arg::U64(words), Arg::F32(scalar)]) => {
            let scalar = T::of(scalar);
            Ok(storing::<T>(isa, [a, b, b], words, move |b, _| scalar * b, loaded)?)
        }
        ("add", &[Arg::Buffer(a), Arg::Buffer(b), Arg::Buffer(c), Arg::U64(words)]) => {
            Ok(storing::<T>(isa, [a, b, c], words, |b, c| b + c, loaded)?)
        }
        ("triad", &[Arg::Buffer(a), Arg::Buffer(b), Arg::Buffer(c), Arg::U64(words), Arg::F32(scalar)]) => {
            let scalar = T::of(scalar);
            Ok(storing::<T>(isa, [a, b, c], words, move |b, c| b + scalar * c, loaded)?)
        }
        ("dot", &[Arg::Buffer(b), Arg::Buffer(c), Arg::Buffer(partials), Arg::U64(words)]) => {
            let (b, c, partials) = (loaded.region(b, words)?, loaded.region(c, words)?, loaded.partials(partials)?);
            let task = move |share: Share| {
                let part = part(share, words * 4 / T::BYTES);
                // SAFETY: nothing writes the inputs while a task runs.
                let sum = isa.run(Dot::<T> { b: unsafe { b.slice(part.clone()) }, c: unsafe { c.slice(part) } });
                store_partial(share, partials, sum.to_bits());
            };
            Ok(Timed { task: Box::new(task), stores: None })
        }
        _ => Err(loaded.unknown(launch)),
    }
}

/// The task that stores what `each` makes of the inputs; `buffers` are a, b and c.
fn storing<T: Number>(
    isa: Isa,
    buffers: [usize; 3],
    words: u64,
    each: impl Fn(T, T) -> T + Copy + Send + Sync + 'static,
    loaded: &Loaded,
) -> Result<Timed, DeviceError> {
    let [a, b, c] = buffers.map(|buffer| loaded.region(buffer, words));
    let (a, b, c) = (a?, b?, c?);
    let task = move |share: Share| {
        let part = part(share, words * 4 / T::BYTES);
        // SAFETY: shares do not overlap, the inputs are other regions, and nothing else runs.
        let (output, b, c) = unsafe { (a.slice_mut(part.clone()), b.slice(part.clone()), c.slice(part)) };
        isa.run(Stored { output, b, c, each });
    };
    Ok(Timed { task: Box::new(task), stores: Some(Stores::Streaming) })
}

/// The task that checks the result of a launch.
pub(super) fn check(launch: &Launch, data: Data, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    let Some((operation, element)) = launch.kernel.strip_prefix("check_").and_then(|name| name.rsplit_once('_')) else {
        return Err(loaded.unknown(launch));
    };
    match element {
        "f32" => check_of::<f32>(operation, launch, data, loaded),
        "f64" => check_of::<f64>(operation, launch, data, loaded),
        _ => Err(loaded.unknown(launch)),
    }
}

fn check_of<T: Number>(operation: &str, launch: &Launch, data: Data, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    let isa = loaded.isa;
    let sum = |output: usize, words: u64, terms: [(u32, f32); 2], tolerance: f32| -> Result<Task<Findings>, DeviceError> {
        let (output, tolerance) = (loaded.region(output, words)?, data.tolerance(tolerance).into());
        Ok(Box::new(move |share| isa.run(CheckSum::<T> { share, output, words, terms, data, tolerance, number: Default::default() })))
    };
    match (operation, &launch.args[..]) {
        (
            "scale",
            &[Arg::Buffer(a), Arg::U64(words), Arg::U32(seed), Arg::F32(scalar), Arg::Data, Arg::Tolerance(tolerance), Arg::Status],
        ) => sum(a, words, [(seed, scalar), (seed, 0.0)], tolerance),
        ("add", &[Arg::Buffer(a), Arg::U64(words), Arg::U32(b), Arg::U32(c), Arg::Data, Arg::Tolerance(tolerance), Arg::Status]) => {
            sum(a, words, [(b, 1.0), (c, 1.0)], tolerance)
        }
        (
            "triad",
            &[
                Arg::Buffer(a),
                Arg::U64(words),
                Arg::U32(b),
                Arg::U32(c),
                Arg::F32(scalar),
                Arg::Data,
                Arg::Tolerance(tolerance),
                Arg::Status,
            ],
        ) => sum(a, words, [(b, 1.0), (c, scalar)], tolerance),
        (
            "dot",
            &[Arg::Buffer(partials), Arg::U64(words), _, _, Arg::U32(b), Arg::U32(c), Arg::Data, Arg::Tolerance(tolerance), Arg::Status],
        ) => {
            let (partials, tolerance) = (loaded.partials(partials)?, f64::from(data.tolerance(tolerance)));
            Ok(Box::new(move |share| {
                let products = part(share, words * 4 / T::BYTES).map(|i| T::input(data, b, i).into() * T::input(data, c, i).into());
                let (expected, magnitude) = products.fold((0.0, 0.0), |(sum, all), x: f64| (sum + x, all + x.abs()));
                check_partial_by(share, partials, |sum| (f64::from_bits(sum) - expected).abs() <= tolerance * magnitude)
            }))
        }
        _ => Err(loaded.unknown(launch)),
    }
}

/// Compares each element with the sum of two terms, an input times a factor each.
struct CheckSum<T> {
    share: Share,
    output: Region,
    words: u64,
    terms: [(u32, f32); 2],
    data: Data,
    /// Of the sum of both terms' magnitudes.
    tolerance: f64,
    number: std::marker::PhantomData<T>,
}

impl<T: Number> Kernel for CheckSum<T> {
    type Output = Findings;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Findings {
        let part = part(self.share, self.words * 4 / T::BYTES);
        // SAFETY: nothing writes while a check runs.
        let results: &[T] = unsafe { self.output.slice(part.clone()) };
        compare(part.start, results, |i, got| {
            let [b, c] = self.terms.map(|(seed, factor)| f64::from(factor) * T::input(self.data, seed, i).into());
            // A NaN fails.
            (got.into() - (b + c)).abs() <= self.tolerance * (b.abs() + c.abs())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::pattern::Plan;

    const CASES: [&str; 8] = ["scale/f32", "scale/f64", "add/f32", "add/f64", "triad/f32", "triad/f64", "dot/f32", "dot/f64"];

    #[test]
    fn sizes_that_nothing_divides_are_verified_with_every_instruction_set() {
        for elements in [1, 3, 15, 16, 17, 31, 33, 1025, 4097, 16_384, 32_768 + 17, 3 * 32_768 + 4117] {
            for case in CASES {
                let bytes = if case.ends_with("f64") { 8 } else { 4 };
                verifies(&format!("stream/{case}@{}", elements * bytes));
            }
        }
    }

    #[test]
    fn outputs_that_begin_inside_a_line_are_written_and_nothing_beside_them() {
        const GUARD: f64 = -7.0;
        let b: Vec<f64> = (0..600).map(f64::from).collect();
        for isa in Isa::all() {
            for offset in 0..8 {
                for n in [0, 1, 5, 16, 40, 301] {
                    let mut output = vec![GUARD; 600];
                    isa.run(Stored { output: &mut output[offset..offset + n], b: &b[1..1 + n], c: &b[2..2 + n], each: |b, c| b + 3.0 * c });
                    assert!((0..n).all(|k| output[offset + k] == b[k + 1] + 3.0 * b[k + 2]), "{}", isa.name());
                    output[offset..offset + n].fill(GUARD);
                    assert_eq!(output, [GUARD; 600], "{}", isa.name());
                }
            }
        }
    }

    #[test]
    fn a_wrong_element_is_found_at_its_index() {
        for case in ["scale/f32", "add/f64", "triad/f32"] {
            let plan = plan(&format!("stream/{case}@40000"), 2);
            assert!(found(&plan, nothing, nothing).passed());
            let words_each = if case.ends_with("f64") { 2 } else { 1 };
            // The highest word of an element holds its sign.
            let flipped = found(&plan, nothing, |regions| words(regions, 0)[7001 / words_each * words_each + words_each - 1] ^= 1 << 31);
            assert_eq!((flipped.mismatches, flipped.first_bad), (1, Some(7001 / words_each as u64)), "{case}");
        }
    }

    #[test]
    fn a_product_that_is_left_out_is_found_where_sums_are_exact() {
        let plan = plan("stream/dot/f32@400000", 2);
        let found = with_plan(Isa::best(), 2, &plan, |program| {
            use crate::device::Program;
            program.prepare(Data::SmallIntegers).unwrap();
            let at = (0..).find(|&i| words(&program.regions, 0)[i] != 0 && words(&program.regions, 1)[i] != 0).unwrap();
            words(&program.regions, 0)[at] = 0;
            program.execute(1).unwrap();
            program.check().unwrap()
        });
        assert_eq!((found.mismatches, found.first_bad), (1, Some(0)));
    }

    /// What a check finds when element 100 of the result is moved by so much.
    fn nudged(plan: &Plan, by: f32) -> bool {
        found(plan, nothing, |regions| {
            let word = &mut words(regions, 0)[100];
            *word = (f32::from_bits(*word) + by).to_bits();
        })
        .passed()
    }

    #[test]
    fn a_triad_may_round_twice_and_not_more() {
        let plan = plan("stream/triad/f32@4000", 2);
        // |b| + |3 c| is 4 at most.
        assert!(nudged(&plan, 0.0) && !nudged(&plan, 1e-6));
    }
}
