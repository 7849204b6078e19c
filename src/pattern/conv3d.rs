//! `conv3d`: three-dimensional convolutions, 3 x 3 x 3 with padding 1, in the
//! layout `[batch][channel][depth][height][width]`.
//!
//! Bytes count each input, weight and output element once. Flops count two for
//! each of the 27 taps of every output, the padding's zeros included, as
//! frameworks count them: `2 x 27 x Cin/groups x outputs`.

mod tiling;

use serde_json::json;

use self::tiling::Tiling;
use super::plan::{Arg, Buffer, Launch, Plan, Work, sum_tolerance};
use super::size::{numbers, room_bytes};
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, Pipe, PlanError, Profile};

const SEED_INPUT: u32 = 0x5EED_0C31;
const SEED_WEIGHTS: u32 = 0x5EED_0C32;

/// Batch and edge of the cubic volume when the id names none.
///
/// A GPU gets what networks for medical volumes and video have: large enough to leave
/// the last cache, smaller where many channels make the arithmetic long. The host gets a
/// few MiB, because a processor takes milliseconds for what a GPU does in microseconds.
fn default_volume(kind: DeviceKind, convolution: Convolution, channels: u64) -> (u64, u64) {
    match (kind, convolution, channels) {
        (DeviceKind::Host, _, _) => (1, 32),
        (DeviceKind::Cuda, Convolution::Depthwise, _) | (DeviceKind::Cuda, _, 0..=16) => (4, 128),
        (DeviceKind::Cuda, _, 17..=32) => (4, 96),
        (DeviceKind::Cuda, _, _) => (4, 64),
    }
}

/// Taps of one filter and input channel.
pub const TAPS: u64 = 27;

/// Which outputs see which inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convolution {
    /// Every output channel sums over every input channel.
    Direct,
    /// Each channel is filtered by itself.
    Depthwise,
}

/// All sizes of one convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Independent volumes.
    pub batch: u64,
    /// Input channels.
    pub channels_in: u64,
    /// Output channels.
    pub channels_out: u64,
    /// Depth, height and width of input and output.
    pub extent: [u64; 3],
    /// Which outputs see which inputs.
    pub convolution: Convolution,
}

impl Shape {
    /// Elements of one channel of one volume.
    pub fn volume(&self) -> u64 {
        self.extent.iter().product()
    }

    /// Input channels that one output sums over.
    pub fn channels_per_output(&self) -> u64 {
        match self.convolution {
            Convolution::Direct => self.channels_in,
            Convolution::Depthwise => 1,
        }
    }

    /// Elements of the input.
    pub fn inputs(&self) -> u64 {
        self.batch * self.channels_in * self.volume()
    }

    /// Elements of the output.
    pub fn outputs(&self) -> u64 {
        self.batch * self.channels_out * self.volume()
    }

    /// Elements of all filters.
    pub fn weights(&self) -> u64 {
        self.channels_out * self.channels_per_output() * TAPS
    }

    /// Floating-point operations, padding included.
    pub fn flops(&self) -> u64 {
        2 * TAPS * self.channels_per_output() * self.outputs()
    }

    /// Whether every count above fits 64 bits, as bytes of 4-byte elements too.
    fn fits(&self) -> bool {
        let product = |factors: &[u64]| factors.iter().try_fold(1u64, |p, &f| p.checked_mul(f));
        let [d, h, w] = self.extent;
        product(&[self.batch, self.channels_in.max(self.channels_out), d, h, w, 8 * TAPS, self.channels_per_output()]).is_some()
    }
}

/// The conv3d pattern.
pub struct Conv3d;

impl Pattern for Conv3d {
    fn name(&self) -> &'static str {
        "conv3d"
    }

    fn summary(&self) -> &'static str {
        "3 x 3 x 3 convolutions: bandwidth and compute utilization in one row"
    }

    fn ids(&self, _profile: Profile, kind: DeviceKind) -> Vec<String> {
        let cases: &[&str] = match kind {
            DeviceKind::Cuda => &["direct/f32/1x16", "direct/f32/16x16", "direct/f32/32x32", "depthwise/f32/32x32"],
            DeviceKind::Host => &["direct/f32/1x16", "direct/f32/16x16", "depthwise/f32/32x32"],
        };
        cases.iter().map(|rest| format!("conv3d/{rest}")).collect()
    }

    fn trials(&self) -> &'static [&'static str] {
        &[
            "conv3d/direct/f32/3x9@7x9x36",
            "conv3d/direct/f32/9x3@7x9x35",
            "conv3d/depthwise/f32/3x3@35x9x36",
            "conv3d/depthwise/f32/3x3@35x9x35",
        ]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let shape = shape(id, facts.kind)?;
        let [depth, height, width] = shape.extent;
        let (plan, issued) = match facts.kind {
            // How often the host kernel loads an element depends on the vectors of the processor.
            DeviceKind::Host => (host_plan(&shape, facts), None),
            DeviceKind::Cuda => {
                let tiling = Tiling::new(&shape).ok_or_else(|| {
                    PlanError::Invalid(format!("'{id}': a plane, a depth or a number of channels is beyond what the kernels count (2^31)"))
                })?;
                (cuda_plan(&shape, &tiling, facts), Some(tiling.issued_bytes()))
            }
        };
        if plan.footprint_bytes() > room_bytes(facts) {
            return Err(PlanError::TooLarge(format!(
                "'{id}' needs {} MiB and {} MiB are free; choose fewer channels or a smaller volume after '@'",
                plan.footprint_bytes() >> 20,
                facts.free_bytes >> 20
            )));
        }
        let mut parameters = Parameters::new();
        parameters.insert("batch".into(), json!(shape.batch));
        parameters.insert("channels_in".into(), json!(shape.channels_in));
        parameters.insert("channels_out".into(), json!(shape.channels_out));
        parameters.insert("groups".into(), json!(shape.channels_in / shape.channels_per_output()));
        parameters.insert("extent".into(), json!([depth, height, width]));
        parameters.insert("kernel".into(), json!([3, 3, 3]));
        parameters.insert("padding".into(), json!(1));
        let read = (shape.inputs() + shape.weights()) * 4;
        let write = shape.outputs() * 4;
        Ok(Case {
            id: id.clone(),
            level: Level::of(plan.footprint_bytes(), facts.cache_bytes),
            parameters,
            bytes: Bytes { issued, ..Bytes::contiguous(read, write) },
            flops: shape.flops(),
            compute_pipe: Some(Pipe::FmaF32),
            accesses: None,
            report: None,
            notes: Vec::new(),
            plan,
            ways: None,
        })
    }
}

fn shape(id: &CaseId, kind: DeviceKind) -> Result<Shape, PlanError> {
    let unknown = || {
        PlanError::Unknown(format!("'{id}' is not conv3d/<direct|depthwise>/f32/<channels in>x<channels out>[@<depth>x<height>x<width>]"))
    };
    let [convolution, "f32", channels] = id.parts()[..] else { return Err(unknown()) };
    let convolution = match convolution {
        "direct" => Convolution::Direct,
        "depthwise" => Convolution::Depthwise,
        _ => return Err(unknown()),
    };
    let channels: Option<[u64; 2]> = numbers(channels).and_then(|n| n.try_into().ok());
    let [channels_in, channels_out] = channels.ok_or_else(unknown)?;
    let (batch, edge) = default_volume(kind, convolution, channels_in.max(channels_out));
    let extent = match id.size() {
        None => [edge; 3],
        Some(text) => numbers(text)
            .and_then(|n| n.try_into().ok())
            .ok_or_else(|| PlanError::Invalid(format!("'{id}': '{text}' is not <depth>x<height>x<width>, such as 32x32x32")))?,
    };
    let shape = Shape { batch, channels_in, channels_out, extent, convolution };
    if extent.contains(&0) || channels_in == 0 || channels_out == 0 {
        return Err(PlanError::Invalid(format!("'{id}': sizes and channels start at 1")));
    }
    if convolution == Convolution::Depthwise && channels_in != channels_out {
        return Err(PlanError::Invalid(format!(
            "'{id}': a depthwise convolution has as many output as input channels; {channels_in}x{channels_in} would be"
        )));
    }
    if !shape.fits() {
        return Err(PlanError::Invalid(format!("'{id}': the sizes overflow 64 bits")));
    }
    Ok(shape)
}

fn buffers(shape: &Shape) -> Vec<Buffer> {
    vec![
        Buffer::output(shape.outputs() * 4),
        Buffer::numbers(shape.inputs() * 4, SEED_INPUT),
        Buffer::numbers(shape.weights() * 4, SEED_WEIGHTS),
    ]
}

fn sizes(shape: &Shape) -> impl Iterator<Item = Arg> + use<> {
    let [d, h, w] = shape.extent;
    [shape.batch, shape.channels_in, shape.channels_out, d, h, w].map(Arg::U64).into_iter()
}

fn host_plan(shape: &Shape, facts: &Facts) -> Plan {
    let (work, check) = match shape.convolution {
        Convolution::Direct => ("conv3d_direct_f32", "check_conv3d_direct_f32"),
        Convolution::Depthwise => ("conv3d_depthwise_f32", "check_conv3d_depthwise_f32"),
    };
    let launch = |kernel, last: &[Arg]| Launch {
        module: "conv3d",
        kernel,
        grid: facts.units,
        block: 1,
        args: (0..3).map(Arg::Buffer).chain(sizes(shape)).chain(last.iter().copied()).collect(),
        body: None,
    };
    Plan {
        compared: shape.outputs(),
        buffers: buffers(shape),
        work: Work::Kernel(launch(work, &[])),
        check: launch(check, &[Arg::Tolerance(sum_tolerance(TAPS * shape.channels_per_output())), Arg::Status]),
    }
}

fn cuda_plan(shape: &Shape, tiling: &Tiling, facts: &Facts) -> Plan {
    let kernel = match (shape.convolution, tiling.vector) {
        (Convolution::Direct, 4) => "conv3d_direct_f32_v4",
        (Convolution::Direct, _) => "conv3d_direct_f32_v1",
        (Convolution::Depthwise, 4) => "conv3d_depthwise_f32_v4",
        (Convolution::Depthwise, _) => "conv3d_depthwise_f32_v1",
    };
    let groups = Arg::U64(shape.channels_in / shape.channels_per_output());
    let expected = [
        groups,
        Arg::U32(SEED_INPUT),
        Arg::U32(SEED_WEIGHTS),
        Arg::Data,
        Arg::Tolerance(sum_tolerance(TAPS * shape.channels_per_output())),
        Arg::Slice,
        Arg::Slices,
        Arg::Status,
    ];
    Plan {
        compared: shape.outputs(),
        buffers: buffers(shape),
        work: Work::Kernel(Launch {
            module: "conv3d",
            kernel,
            grid: tiling.grid(),
            block: tiling.block(),
            args: (0..3).map(Arg::Buffer).chain(sizes(shape)).collect(),
            body: Some(tiling.body()),
        }),
        check: Launch {
            module: "conv3d",
            kernel: "check_conv3d_f32",
            grid: facts.units.saturating_mul(8),
            block: 256,
            args: [Arg::Buffer(0)].into_iter().chain(sizes(shape)).chain(expected).collect(),
            body: None,
        },
    }
}

/// One output in f64 and the sum of the magnitudes of its products.
///
/// `input` and `weights` give elements by flat index. `output` is the flat index.
/// The rule that tests hold kernels and their checks to.
#[cfg(test)]
pub fn reference(shape: &Shape, output: u64, input: impl Fn(u64) -> f32, weights: impl Fn(u64) -> f32) -> (f64, f64) {
    let [depth, height, width] = shape.extent;
    let (x, y, z) = (output % width, output / width % height, output / (width * height) % depth);
    let channel_out = output / shape.volume() % shape.channels_out;
    let batch = output / (shape.volume() * shape.channels_out);
    let first_channel = match shape.convolution {
        Convolution::Direct => 0,
        Convolution::Depthwise => channel_out,
    };
    let per_output = shape.channels_per_output();
    let inside = |at: u64, tap: u64, extent: u64| (at + tap).checked_sub(1).filter(|&i| i < extent);
    let (mut sum, mut magnitude) = (0.0, 0.0);
    for c in 0..per_output {
        let plane = (batch * shape.channels_in + first_channel + c) * shape.volume();
        for tap in 0..TAPS {
            let (tz, ty, tx) = (tap / 9, tap / 3 % 3, tap % 3);
            let (Some(iz), Some(iy), Some(ix)) = (inside(z, tz, depth), inside(y, ty, height), inside(x, tx, width)) else {
                continue;
            };
            let value = f64::from(input(plane + (iz * height + iy) * width + ix));
            let product = value * f64::from(weights((channel_out * per_output + c) * TAPS + tap));
            sum += product;
            magnitude += product.abs();
        }
    }
    (sum, magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(text: &str) -> Result<Case, PlanError> {
        Conv3d.case(&CaseId::new(text), &Facts::HOST)
    }

    #[test]
    fn bytes_count_each_input_weight_and_output_once() {
        let c = case("conv3d/direct/f32/16x16").unwrap();
        let volume = 32 * 32 * 32;
        assert_eq!(c.bytes.requested_read, (16 * volume + 16 * 16 * 27) * 4);
        assert_eq!(c.bytes.requested_write, 16 * volume * 4);
        assert_eq!(c.flops, 2 * 27 * 16 * 16 * volume);
    }

    #[test]
    fn a_depthwise_output_sums_one_channel() {
        let c = case("conv3d/depthwise/f32/32x32").unwrap();
        assert_eq!(c.flops, 2 * 27 * 32 * 32 * 32 * 32);
        assert!(case("conv3d/depthwise/f32/32x16").is_err());
    }

    #[test]
    fn a_volume_is_written_depth_height_width() {
        let c = case("conv3d/direct/f32/1x16@5x6x7").unwrap();
        assert_eq!(c.parameters["extent"], serde_json::json!([5, 6, 7]));
        for bad in ["@5x6", "@5x6x0", "@axbxc", "@99999999999x99999999999x9999999999"] {
            assert!(case(&format!("conv3d/direct/f32/1x16{bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_reference_of_a_constant_volume_counts_the_taps_inside() {
        let shape = Shape { batch: 1, channels_in: 1, channels_out: 1, extent: [3, 3, 3], convolution: Convolution::Direct };
        let at = |output| reference(&shape, output, |_| 1.0, |_| 1.0).0;
        assert_eq!(at(13), 27.0); // centre
        assert_eq!(at(0), 8.0); // corner
        assert_eq!(at(1), 12.0); // edge
    }

    #[test]
    fn the_reference_applies_each_channels_own_filter() {
        let shape = Shape { batch: 1, channels_in: 2, channels_out: 2, extent: [1, 1, 1], convolution: Convolution::Direct };
        // One voxel: only the centre tap (13) of each filter is inside.
        let weights = |i: u64| if i % 27 == 13 { (i / 27 + 1) as f32 } else { 100.0 };
        let out: Vec<f64> = (0..2).map(|o| reference(&shape, o, |c| (c + 1) as f32, weights).0).collect();
        assert_eq!(out, [1.0 * 1.0 + 2.0 * 2.0, 1.0 * 3.0 + 2.0 * 4.0]);
        let shape = Shape { convolution: Convolution::Depthwise, ..shape };
        let out: Vec<f64> = (0..2).map(|o| reference(&shape, o, |c| (c + 1) as f32, weights).0).collect();
        assert_eq!(out, [1.0, 4.0]);
    }
}
