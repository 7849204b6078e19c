//! Half-precision matrices times a few vectors, and the check of their results.

use half::f16;

use super::isa::{Kernel, Simd};
use super::memory::Region;
use super::share::{Findings, Share};
use super::{Loaded, Stores, Task, Timed};
use crate::device::DeviceError;
use crate::pattern::{Arg, Data, Launch, MatvecShape};

/// Rows that are computed at a time, so that a loaded and converted input serves several.
const ROWS: usize = 4;

/// Columns are a multiple of this.
const VECTOR: usize = 8;

/// The shape that a launch's sizes name.
fn shape(sizes: &[Arg], launch: &Launch, loaded: &Loaded) -> Result<MatvecShape, DeviceError> {
    match *sizes {
        [Arg::U64(matrices), Arg::U64(batch), Arg::U64(rows), Arg::U64(columns)] if columns.is_multiple_of(VECTOR as u64) => {
            Ok(MatvecShape { matrices, batch, rows, columns })
        }
        _ => Err(loaded.unknown(launch)),
    }
}

/// The task that carries out a launch of this module.
pub(super) fn kernel(launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let ("matvec", &[Arg::Buffer(output), Arg::Buffer(weights), Arg::Buffer(inputs), ref sizes @ ..]) = (launch.kernel, &launch.args[..])
    else {
        return Err(loaded.unknown(launch));
    };
    let isa = loaded.isa;
    let shape = shape(sizes, launch, loaded)?;
    let output = loaded.region(output, shape.outputs())?;
    let (weights, inputs) = (loaded.region(weights, shape.weights() / 2)?, loaded.region(inputs, shape.inputs() / 2)?);
    Ok(Timed { task: Box::new(move |share| isa.run(Multiply { shape, output, weights, inputs, share })), stores: Some(Stores::Plain) })
}

/// The task that checks the result of a launch of this module.
pub(super) fn check(launch: &Launch, data: Data, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    let (
        "check_matvec",
        &[
            Arg::Buffer(output),
            ref sizes @ ..,
            Arg::U32(seed_weights),
            Arg::U32(seed_inputs),
            Arg::Data,
            Arg::Tolerance(tolerance),
            Arg::Slice,
            Arg::Slices,
            Arg::Status,
        ],
    ) = (launch.kernel, &launch.args[..])
    else {
        return Err(loaded.unknown(launch));
    };
    let isa = loaded.isa;
    let shape = shape(sizes, launch, loaded)?;
    let output = loaded.region(output, shape.outputs())?;
    let tolerance = data.tolerance(tolerance).into();
    Ok(Box::new(move |share| isa.run(Check { shape, output, seed_weights, seed_inputs, data, tolerance, share })))
}

/// Computes this share of the rows of all matrices.
struct Multiply {
    shape: MatvecShape,
    output: Region,
    weights: Region,
    inputs: Region,
    share: Share,
}

impl Kernel for Multiply {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let MatvecShape { matrices, rows, .. } = self.shape;
        let part = self.share.of(matrices * rows, 1);
        let mut at = part.start;
        while at < part.end {
            let left = part.end.min((at / rows + 1) * rows) - at;
            if left >= ROWS as u64 {
                self.rows::<S, ROWS>(simd, at);
                at += ROWS as u64;
            } else {
                self.rows::<S, 1>(simd, at);
                at += 1;
            }
        }
    }
}

impl Multiply {
    /// `COUNT` rows of one matrix, the first of which is row `at` of all.
    #[inline(always)]
    fn rows<S: Simd, const COUNT: usize>(&self, simd: S, at: u64) {
        let MatvecShape { batch, rows, columns, .. } = self.shape;
        let (matrix, row) = (at / rows, at % rows);
        let line = columns / 2;
        // SAFETY: nothing writes weights and inputs while a task runs; the rows lie in one matrix.
        let weights: [&[u32]; COUNT] =
            std::array::from_fn(|k| unsafe { self.weights.slice((at + k as u64) * line..(at + k as u64 + 1) * line) });
        for input in matrix * batch..(matrix + 1) * batch {
            // SAFETY: as above.
            let x: &[u32] = unsafe { self.inputs.slice(input * line..(input + 1) * line) };
            let sums = dots(simd, weights, x);
            for (k, sum) in sums.into_iter().enumerate() {
                // SAFETY: the results of a row belong to the worker whose share it is in.
                unsafe { self.output.address::<f32>(input * rows + row + k as u64).write(sum) }
            }
        }
    }
}

/// The scalar product of `x` with each of `rows`, all of one length: two numbers a word.
#[inline(always)]
fn dots<S: Simd, const COUNT: usize>(simd: S, rows: [&[u32]; COUNT], x: &[u32]) -> [f32; COUNT] {
    let words = S::LANES / 2;
    let mut sums = [simd.splat(0.0); COUNT];
    let mut add = |rows: [*const u32; COUNT], x: *const u32| {
        // SAFETY: callers have a vector of numbers at each place.
        unsafe {
            let x = simd.load_halves(x.cast());
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = simd.multiply_add(simd.load_halves(row.cast()), x, *sum);
            }
        }
    };
    let whole = x.len() / words * words;
    for at in (0..whole).step_by(words) {
        add(rows.map(|row| row[at..at + words].as_ptr()), x[at..at + words].as_ptr());
    }
    if whole < x.len() {
        // No vector has more than 16 lanes; zeros add nothing.
        let padded = |line: &[u32]| {
            let mut last = [0u32; 8];
            last[..line.len() - whole].copy_from_slice(&line[whole..]);
            last
        };
        let (rows, x) = (rows.map(padded), padded(x));
        add(std::array::from_fn(|k| rows[k].as_ptr()), x.as_ptr());
    }
    sums.map(|sum| {
        let mut lanes = [0.0; 16];
        // SAFETY: no vector has more than 16 lanes.
        unsafe { simd.store(lanes.as_mut_ptr(), sum) };
        lanes[..S::LANES].iter().sum()
    })
}

/// Compares every result with the sum in f64 of what the sequences say that weights and inputs are.
struct Check {
    shape: MatvecShape,
    output: Region,
    seed_weights: u32,
    seed_inputs: u32,
    data: Data,
    /// Of the sum of the products' magnitudes.
    tolerance: f64,
    share: Share,
}

impl Kernel for Check {
    type Output = Findings;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Findings {
        let MatvecShape { matrices, batch, rows, columns } = self.shape;
        let line = |seed: u32, index: u64| (index * columns..(index + 1) * columns).map(move |i| self.data.half(seed, i)).map(f16::to_f32);
        let mut findings = Findings::NONE;
        let (mut inputs, mut inputs_of): (Vec<Vec<f32>>, _) = (Vec::new(), None);
        for at in self.share.of(matrices * rows, 1) {
            let (matrix, row) = (at / rows, at % rows);
            if inputs_of != Some(matrix) {
                inputs = (matrix * batch..(matrix + 1) * batch).map(|input| line(self.seed_inputs, input).collect()).collect();
                inputs_of = Some(matrix);
            }
            let weights: Vec<f32> = line(self.seed_weights, at).collect();
            for (input, x) in (matrix * batch..).zip(&inputs) {
                let (sum, magnitude) = expected(&weights, x);
                let index = input * rows + row;
                // SAFETY: nothing writes while a check runs.
                let result = unsafe { self.output.slice::<f32>(index..index + 1) }[0];
                // A NaN is wrong.
                let right = (f64::from(result) - sum).abs() <= self.tolerance * magnitude;
                let first_bad = if right { u64::MAX } else { index };
                findings = findings.merge(Findings { mismatches: u64::from(!right), first_bad, compared: 1 });
            }
        }
        findings
    }
}

/// The sum of the products, and of their magnitudes. The product of two numbers of half
/// precision is exact in single precision.
#[inline(always)]
fn expected(weights: &[f32], x: &[f32]) -> (f64, f64) {
    // Several sums, so that the additions become vector code.
    let (mut sums, mut magnitudes) = ([0.0; VECTOR], [0.0; VECTOR]);
    for (weights, x) in weights.chunks_exact(VECTOR).zip(x.chunks_exact(VECTOR)) {
        for k in 0..VECTOR {
            let product = f64::from(weights[k] * x[k]);
            sums[k] += product;
            magnitudes[k] += product.abs();
        }
    }
    (sums.iter().sum(), magnitudes.iter().sum())
}

#[cfg(test)]
mod tests {
    use crate::device::host::testing::*;

    #[test]
    fn products_of_any_size_verify_with_every_instruction_set() {
        for id in ["matvec/f16/1@1x8", "matvec/f16/1@3x24", "matvec/f16/2@5x40", "matvec/f16/4@9x136", "matvec/f16/8@7x16"] {
            verifies(id);
        }
    }

    #[test]
    fn a_result_of_another_input_is_found() {
        let rows = 11;
        let found = found(&plan("matvec/f16/4@11x64", 2), nothing, |regions| {
            let (one, two) = words(regions, 0).split_at_mut(rows);
            one.swap_with_slice(&mut two[..rows]);
        });
        assert_eq!((found.mismatches, found.first_bad), (2 * rows as u64, Some(0)));
    }

    #[test]
    fn one_weight_that_another_took_the_place_of_is_found() {
        // Word 3 of row 1 holds its columns 6 and 7: the results of row 1 of every input are wrong.
        let found = found(
            &plan("matvec/f16/2@5x16", 2),
            |regions| {
                let weights = words(regions, 1);
                weights[8 + 3] = weights[8 + 2];
            },
            nothing,
        );
        assert_eq!((found.mismatches, found.first_bad), (2, Some(1)));
    }
}
