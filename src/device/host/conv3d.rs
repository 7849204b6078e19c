//! Convolutions, and the check of their results.

use std::ops::Range;

use super::isa::{Kernel, Simd};
use super::memory::Region;
use super::share::{Findings, Share, compare};
use super::{Loaded, Stores, Task, Timed};
use crate::device::DeviceError;
use crate::pattern::conv3d::TAPS;
use crate::pattern::{Arg, Convolution, ConvolutionShape, Data, Launch};

/// Output channels that are computed at a time from one loaded input row. Eight, with two
/// vectors each, reach 0.82 of the measured multiply-add peak of a Sapphire Rapids server
/// with AVX-512 and four 0.64; with AVX2, where registers are short, 0.61 and 0.65.
const CHANNEL_BLOCK: u64 = 8;

/// The buffers of one convolution.
#[derive(Clone, Copy)]
struct Buffers {
    shape: ConvolutionShape,
    output: Region,
    input: Region,
    weights: Region,
}

impl Buffers {
    /// Of a launch whose kernel has this name without `check_`, and these arguments without the status.
    fn new(launch: &Launch, kernel: &str, args: &[Arg], loaded: &Loaded) -> Result<Self, DeviceError> {
        let convolution = match kernel {
            "conv3d_direct_f32" => Convolution::Direct,
            "conv3d_depthwise_f32" => Convolution::Depthwise,
            _ => return Err(loaded.unknown(launch)),
        };
        let &[Arg::Buffer(output), Arg::Buffer(input), Arg::Buffer(weights), ref sizes @ ..] = args else {
            return Err(loaded.unknown(launch));
        };
        let &[Arg::U64(batch), Arg::U64(channels_in), Arg::U64(channels_out), Arg::U64(depth), Arg::U64(height), Arg::U64(width)] = sizes
        else {
            return Err(loaded.unknown(launch));
        };
        let shape = ConvolutionShape { batch, channels_in, channels_out, extent: [depth, height, width], convolution };
        Ok(Self {
            shape,
            output: loaded.region(output, shape.outputs())?,
            input: loaded.region(input, shape.inputs())?,
            weights: loaded.region(weights, shape.weights())?,
        })
    }
}

/// The task that carries out a launch of this module.
pub(super) fn kernel(launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let isa = loaded.isa;
    let buffers = Buffers::new(launch, launch.kernel, &launch.args, loaded)?;
    Ok(Timed { task: Box::new(move |share| isa.run(Convolve { buffers, share })), stores: Some(Stores::Plain) })
}

/// The task that checks the result of a launch of this module.
pub(super) fn check(launch: &Launch, data: Data, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    let isa = loaded.isa;
    let (Some(kernel), &[ref args @ .., Arg::Tolerance(tolerance), Arg::Status]) = (launch.kernel.strip_prefix("check_"), &launch.args[..])
    else {
        return Err(loaded.unknown(launch));
    };
    let buffers = Buffers::new(launch, kernel, args, loaded)?;
    let tolerance = data.tolerance(tolerance).into();
    Ok(Box::new(move |share| isa.run(Check { buffers, share, tolerance })))
}

/// Computes the planes of this share: all rows at one depth of one block of output channels.
struct Convolve {
    buffers: Buffers,
    share: Share,
}

/// What all runs of one output row have in common.
struct Row<'a> {
    input: &'a [f32],
    weights: &'a [f32],
    /// Input channels that are summed, and elements from one to the next.
    channels: usize,
    plane: usize,
    /// Extent of the volume along y and x.
    height: usize,
    width: usize,
    /// First element of the input row at z - 1, y - 1 of the first channel; may lie before the
    /// buffer, where `taps` leaves it out.
    corner: isize,
    /// Taps along z and y whose rows are inside the volume.
    taps: [Range<usize>; 2],
    /// Index of the first weight, and weights from one output channel to the next.
    first_weight: usize,
    filter: usize,
    /// First element of the output row, and elements from one output channel to the next.
    output: *mut f32,
    output_plane: usize,
}

impl Kernel for Convolve {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Buffers { shape, output, input, weights } = self.buffers;
        // SAFETY: nothing writes the inputs while a task runs.
        let (input, weights): (&[f32], &[f32]) = unsafe { (input.slice(0..shape.inputs()), weights.slice(0..shape.weights())) };
        let [depth, height, width] = shape.extent;
        let (block, channels) = match shape.convolution {
            Convolution::Direct => (CHANNEL_BLOCK, shape.channels_in),
            Convolution::Depthwise => (1, 1),
        };
        let blocks = shape.channels_out.div_ceil(block);
        for unit in self.share.of(shape.batch * blocks * depth, 1) {
            let (z, first, batch) = (unit % depth, unit / depth % blocks * block, unit / (depth * blocks));
            let first_in = if shape.convolution == Convolution::Direct { 0 } else { first };
            let count = block.min(shape.channels_out - first);
            for y in 0..height {
                let inside = |at: u64, extent: u64| usize::from(at == 0)..if at + 1 == extent { 2 } else { 3 };
                let row = Row {
                    input,
                    weights,
                    channels: channels as usize,
                    plane: shape.volume() as usize,
                    height: height as usize,
                    width: width as usize,
                    corner: (((batch * shape.channels_in + first_in) * shape.volume() + (z * height + y) * width) as isize)
                        - ((height + 1) * width) as isize,
                    taps: [inside(z, depth), inside(y, height)],
                    first_weight: (first * channels * TAPS) as usize,
                    filter: (channels * TAPS) as usize,
                    output: output.address(((batch * shape.channels_out + first) * depth + z) * height * width + y * width),
                    output_plane: shape.volume() as usize,
                };
                // A block must be a constant for its sums to stay in registers.
                const { assert!(CHANNEL_BLOCK <= 8, "a case for each smaller count") };
                match count {
                    1 => row.runs::<S, 1>(simd),
                    2 => row.runs::<S, 2>(simd),
                    3 => row.runs::<S, 3>(simd),
                    4 => row.runs::<S, 4>(simd),
                    5 => row.runs::<S, 5>(simd),
                    6 => row.runs::<S, 6>(simd),
                    7 => row.runs::<S, 7>(simd),
                    _ => row.runs::<S, { CHANNEL_BLOCK as usize }>(simd),
                }
            }
        }
    }
}

impl Row<'_> {
    /// The whole row of `BLOCK` output channels, in runs of one or two vectors.
    #[inline(always)]
    fn runs<S: Simd, const BLOCK: usize>(&self, simd: S) {
        if self.width < S::LANES {
            return self.run::<S, BLOCK, 1, true, true, true>(simd, 0);
        }
        let mut x = 0;
        while x < self.width {
            if self.width - x >= 2 * S::LANES {
                self.between_ends::<S, BLOCK, 2>(simd, x);
                x += 2 * S::LANES;
            } else {
                // The last vector ends with the row and may compute some elements again.
                x = x.min(self.width - S::LANES);
                self.between_ends::<S, BLOCK, 1>(simd, x);
                x += S::LANES;
            }
        }
    }

    /// The run of `VECTORS` vectors at `x` of a row that is no shorter.
    #[inline(always)]
    fn between_ends<S: Simd, const BLOCK: usize, const VECTORS: usize>(&self, simd: S, x: usize) {
        match (x == 0, x + VECTORS * S::LANES == self.width) {
            (true, true) => self.run::<S, BLOCK, VECTORS, true, true, false>(simd, x),
            (true, false) => self.run::<S, BLOCK, VECTORS, true, false, false>(simd, x),
            (false, true) => self.run::<S, BLOCK, VECTORS, false, true, false>(simd, x),
            (false, false) => self.run::<S, BLOCK, VECTORS, false, false, false>(simd, x),
        }
    }

    /// `VECTORS` vectors of `BLOCK` output channels from column `x` on. At the `LEFT` and
    /// `RIGHT` end of the row the neighbours outside are zeros, shifted in. A `NARROW` row is
    /// shorter than a vector.
    #[inline(always)]
    fn run<S: Simd, const BLOCK: usize, const VECTORS: usize, const LEFT: bool, const RIGHT: bool, const NARROW: bool>(
        &self,
        simd: S,
        x: usize,
    ) {
        let mut sums = [[simd.splat(0.0); VECTORS]; BLOCK];
        for channel in 0..self.channels {
            for z in self.taps[0].clone() {
                for y in self.taps[1].clone() {
                    let at = self.corner + ((channel * self.plane + (z * self.height + y) * self.width) + x) as isize;
                    let row = self.input.as_ptr().wrapping_offset(at);
                    let weights = self.first_weight + channel * TAPS as usize + z * 9 + y * 3;
                    let weights = self.weights.as_ptr().wrapping_add(weights);
                    // SAFETY: `taps` keeps z and y inside the volume, so all of the row is; the columns
                    // before and after it are not read. Weights: `BLOCK` channels from the first.
                    unsafe {
                        let load = |v: usize, by: isize| simd.load(row.wrapping_offset((v * S::LANES) as isize + by));
                        let all = |v| if NARROW { load_first(simd, row, self.width) } else { load(v, 0) };
                        let middle: [S::Vector; VECTORS] = std::array::from_fn(all);
                        let before = |v| if LEFT && v == 0 { simd.shift_up(middle[v]) } else { load(v, -1) };
                        let after = |v| if RIGHT && v + 1 == VECTORS { simd.shift_down(middle[v]) } else { load(v, 1) };
                        let (left, right) = (std::array::from_fn(before), std::array::from_fn(after));
                        for (tap, values) in [left, middle, right].iter().enumerate() {
                            for (k, sums) in sums.iter_mut().enumerate() {
                                let weight = simd.splat(*weights.add(k * self.filter + tap));
                                for (sum, &value) in sums.iter_mut().zip(values) {
                                    *sum = simd.multiply_add(value, weight, *sum);
                                }
                            }
                        }
                    }
                }
            }
        }
        for (k, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                // SAFETY: the columns are inside the row, whose plane belongs to this worker.
                unsafe {
                    let to = self.output.add(k * self.output_plane + x + v * S::LANES);
                    if NARROW { store_first(simd, to, self.width, sum) } else { simd.store(to, sum) }
                }
            }
        }
    }
}

/// The first `n` lanes from memory, zeros in the others.
///
/// # Safety
/// `n` numbers at `from` are readable; `n` is less than the lanes.
#[inline(always)]
unsafe fn load_first<S: Simd>(simd: S, from: *const f32, n: usize) -> S::Vector {
    let mut lanes = [0.0; 16];
    // SAFETY: the caller vouches for `from`; no vector has more than 16 lanes.
    unsafe {
        std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), n);
        simd.load(lanes.as_ptr())
    }
}

/// The first `n` lanes to memory.
///
/// # Safety
/// `n` numbers at `to` are writable; `n` is less than the lanes.
#[inline(always)]
unsafe fn store_first<S: Simd>(simd: S, to: *mut f32, n: usize, v: S::Vector) {
    let mut lanes = [0.0; 16];
    // SAFETY: the caller vouches for `to`; no vector has more than 16 lanes.
    unsafe {
        simd.store(lanes.as_mut_ptr(), v);
        std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, n);
    }
}

/// Compares every output with `pattern::conv3d::reference`, computed a row at a
/// time: tap by tap, each a shifted row times a weight.
struct Check {
    buffers: Buffers,
    share: Share,
    /// Of the sum of the products' magnitudes.
    tolerance: f64,
}

impl Kernel for Check {
    type Output = Findings;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Findings {
        let Buffers { shape, output, input, weights } = self.buffers;
        // SAFETY: nothing writes while a check runs.
        let (input, weights): (&[f32], &[f32]) = unsafe { (input.slice(0..shape.inputs()), weights.slice(0..shape.weights())) };
        let [_, _, width] = shape.extent;
        let (mut sums, mut magnitudes) = (vec![0.0; width as usize], vec![0.0; width as usize]);
        let mut findings = Findings::NONE;
        for row in self.share.of(shape.outputs() / width, 1) {
            expect(&shape, row, input, weights, &mut sums, &mut magnitudes);
            let first = row * width;
            // SAFETY: as above.
            let results: &[f32] = unsafe { output.slice(first..first + width) };
            findings = findings.merge(compare(first, results, |i, got| {
                let k = (i - first) as usize;
                // A NaN fails.
                (f64::from(got) - sums[k]).abs() <= self.tolerance * magnitudes[k]
            }));
        }
        findings
    }
}

/// The outputs of one row and the sums of the magnitudes of their products.
#[inline(always)]
fn expect(shape: &ConvolutionShape, row: u64, input: &[f32], weights: &[f32], sums: &mut [f64], magnitudes: &mut [f64]) {
    let [depth, height, width] = shape.extent;
    let (y, z) = (row % height, row / height % depth);
    let channel_out = row / (height * depth) % shape.channels_out;
    let batch = row / (height * depth * shape.channels_out);
    let per_output = shape.channels_per_output();
    let first_in = if shape.convolution == Convolution::Direct { 0 } else { channel_out };
    sums.fill(0.0);
    magnitudes.fill(0.0);
    for channel in 0..per_output {
        let filter = ((channel_out * per_output + channel) * TAPS) as usize;
        for tap in 0..TAPS {
            let (tz, ty, tx) = (tap / 9, tap / 3 % 3, tap % 3);
            let (iz, iy) = ((z + tz).wrapping_sub(1), (y + ty).wrapping_sub(1));
            if iz >= depth || iy >= height {
                continue;
            }
            let first = (((batch * shape.channels_in + first_in + channel) * depth + iz) * height + iy) * width;
            let line = &input[first as usize..(first + width) as usize];
            let weight = f64::from(weights[filter + tap as usize]);
            // Output x sees input x + tx - 1: all but the first or the last column have one.
            let (to, from) = match tx {
                0 => (1..width as usize, 0..width as usize - 1),
                1 => (0..width as usize, 0..width as usize),
                _ => (0..width as usize - 1, 1..width as usize),
            };
            let outputs = sums[to.clone()].iter_mut().zip(&mut magnitudes[to]);
            for ((sum, magnitude), &value) in outputs.zip(&line[from]) {
                let product = f64::from(value) * weight;
                *sum += product;
                *magnitude += product.abs();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::isa::Isa;
    use super::super::testing::*;
    use super::*;
    use crate::pattern::conv3d::reference;
    use crate::pattern::{Plan, Work, data};

    #[test]
    fn every_width_is_verified_with_every_instruction_set() {
        for width in 1..=36 {
            verifies(&format!("conv3d/direct/f32/2x3@2x2x{width}"));
            verifies(&format!("conv3d/depthwise/f32/3x3@2x3x{width}"));
        }
    }

    #[test]
    fn channels_that_no_block_divides_and_extents_of_one_are_verified() {
        for channels_out in 1..=2 * CHANNEL_BLOCK + 1 {
            verifies(&format!("conv3d/direct/f32/3x{channels_out}@3x2x19"));
        }
        for extent in ["1x1x1", "1x1x70", "1x5x1", "7x1x1", "1x4x33", "4x1x16", "3x3x100"] {
            verifies(&format!("conv3d/direct/f32/1x16@{extent}"));
            verifies(&format!("conv3d/direct/f32/16x1@{extent}"));
            verifies(&format!("conv3d/depthwise/f32/5x5@{extent}"));
        }
    }

    /// The case with two volumes instead of one.
    fn two_volumes(id: &str) -> Plan {
        let mut plan = plan(id, 2);
        plan.buffers[0].bytes *= 2;
        plan.buffers[1].bytes *= 2;
        let Work::Kernel(work) = &mut plan.work else { unreachable!() };
        work.args[3] = Arg::U64(2);
        plan.check.args[3] = Arg::U64(2);
        plan.compared *= 2;
        plan
    }

    #[test]
    fn several_volumes_are_verified() {
        for id in ["conv3d/direct/f32/3x9@2x3x17", "conv3d/depthwise/f32/3x3@2x3x17"] {
            for isa in Isa::all() {
                assert!(with_plan(isa, 2, &two_volumes(id), |program| verify(program, Data::Random)).passed(), "{id} {}", isa.name());
            }
        }
    }

    #[test]
    fn what_is_expected_is_what_the_pattern_says() {
        for convolution in [Convolution::Direct, Convolution::Depthwise] {
            let shape = ConvolutionShape { batch: 2, channels_in: 3, channels_out: 3, extent: [2, 3, 5], convolution };
            let input: Vec<f32> = (0..shape.inputs()).map(|i| data::random_f32(1, i)).collect();
            let weights: Vec<f32> = (0..shape.weights()).map(|i| data::random_f32(2, i)).collect();
            let (mut sums, mut magnitudes) = ([0.0; 5], [0.0; 5]);
            for row in 0..shape.outputs() / 5 {
                expect(&shape, row, &input, &weights, &mut sums, &mut magnitudes);
                for x in 0..5 {
                    let (sum, magnitude) = reference(&shape, row * 5 + x, |i| input[i as usize], |i| weights[i as usize]);
                    assert!((sums[x as usize] - sum).abs() < 1e-12 && (magnitudes[x as usize] - magnitude).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn a_wrong_output_is_found_at_its_index() {
        for id in ["conv3d/direct/f32/3x9@4x5x17", "conv3d/depthwise/f32/9x9@4x5x17"] {
            let plan = plan(id, 2);
            let volume = 4 * 5 * 17;
            assert!(found(&plan, nothing, nothing).passed(), "{id}");
            let flipped = found(&plan, nothing, |regions| words(regions, 0)[1000] ^= 1 << 16);
            assert_eq!((flipped.mismatches, flipped.first_bad), (1, Some(1000)), "{id}");
            let tail = found(&plan, nothing, |regions| words(regions, 0)[9 * volume - 3..].fill(data::POISON));
            assert_eq!((tail.mismatches, tail.first_bad), (3, Some(9 * volume as u64 - 3)), "{id}");
            let swapped = found(&plan, nothing, |regions| {
                let (one, two) = words(regions, 0).split_at_mut(volume);
                one.swap_with_slice(&mut two[..volume]);
            });
            assert!(swapped.mismatches > volume as u64 && swapped.first_bad < Some(3), "{id}: {swapped:?}");
        }
    }
}
