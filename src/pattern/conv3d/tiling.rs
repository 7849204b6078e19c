//! How the CUDA kernels divide a convolution, and what that makes them load.

use super::{Convolution, Shape, TAPS};
use crate::pattern::plan::Body;

// The numbers of kernels/conv3d.cu.
const LANES_WIDE: u64 = 8;
const LANES_HIGH: u64 = 4;
const WARPS: u64 = 8;
const ROWS: u64 = 2;
const CHANNELS: u64 = 8;
const PLANES: u64 = 32;

const ELEMENT_BYTES: u64 = 4;

/// The kernels count in 32 bits, with a sign where they step back by one.
const LIMIT: u64 = 1 << 31;

/// A convolution as warps with one tile each.
pub(super) struct Tiling<'a> {
    shape: &'a Shape,
    /// Columns of one thread: a vector of four where the width allows.
    pub vector: u64,
    /// Warps that have a tile.
    tiles: u64,
    /// Groups of output channels, each a block of its own.
    groups: u64,
}

/// Elements that segments of `segment` elements read along an axis with a halo of one:
/// every element once, and two more at each border between segments.
fn with_halos(extent: u64, segment: u64) -> u64 {
    extent + 2 * (extent.div_ceil(segment) - 1)
}

impl<'a> Tiling<'a> {
    /// The tiling of a shape; none when a count exceeds what the kernels can hold.
    pub(super) fn new(shape: &'a Shape) -> Option<Self> {
        let [depth, height, width] = shape.extent;
        let vector = if width.is_multiple_of(4) { 4 } else { 1 };
        let columns = match shape.convolution {
            Convolution::Direct => [depth, shape.batch],
            Convolution::Depthwise => [depth.div_ceil(PLANES), shape.batch.checked_mul(shape.channels_out)?],
        };
        let sides = [width.div_ceil(LANES_WIDE * vector), height.div_ceil(LANES_HIGH * ROWS)];
        let tiles = sides.into_iter().chain(columns).try_fold(1u64, u64::checked_mul)?;
        let groups = match shape.convolution {
            Convolution::Direct => shape.channels_out.div_ceil(CHANNELS),
            Convolution::Depthwise => 1,
        };
        let counts = [height.checked_mul(width)?, depth, shape.channels_in, shape.channels_out, tiles.div_ceil(WARPS).checked_mul(groups)?];
        // Tiles of the last block are counted too, whether there are any.
        let fits = counts.into_iter().chain([tiles + WARPS]).all(|count| count < LIMIT);
        fits.then_some(Self { shape, vector, tiles, groups })
    }

    /// Blocks of the launch.
    pub(super) fn grid(&self) -> u32 {
        // Both are under 2^31, as `new` has seen.
        (self.tiles.div_ceil(WARPS) * self.groups) as u32
    }

    /// Threads of a block.
    pub(super) fn block(&self) -> u32 {
        32 * WARPS as u32
    }

    /// What a thread loads, and in the depthwise kernel stores, for one plane of its patch.
    pub(super) fn body(&self) -> Body {
        let patch = (ROWS + 2) * (self.vector + 2) * ELEMENT_BYTES;
        let stored = match self.shape.convolution {
            Convolution::Direct => 0,
            Convolution::Depthwise => ROWS * self.vector * ELEMENT_BYTES,
        };
        Body { load_bytes: patch as u32, store_bytes: stored as u32 }
    }

    /// Bytes of all loads and stores of global memory: each thread's patches with their
    /// halos inside the volume, the weights of each block or thread, each output once.
    pub(super) fn issued_bytes(&self) -> u64 {
        let Shape { batch, channels_in, channels_out, extent: [depth, height, width], convolution } = *self.shape;
        let plane = with_halos(height, ROWS) * with_halos(width, self.vector);
        let (inputs, weights) = match convolution {
            Convolution::Direct => (
                batch * channels_in * self.groups * with_halos(depth, 1) * plane,
                self.tiles.div_ceil(WARPS) * channels_out * channels_in * TAPS,
            ),
            Convolution::Depthwise => (batch * channels_in * with_halos(depth, PLANES) * plane, self.tiles * 32 * TAPS),
        };
        (inputs + weights + self.shape.outputs()) * ELEMENT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Loads counted one by one, in the order of the kernels' loops.
    fn counted(tiling: &Tiling) -> u64 {
        let Shape { batch, channels_in, channels_out, extent: [depth, height, width], convolution } = *tiling.shape;
        let inside = |at: u64, extent: u64| u64::from((1..=extent).contains(&at));
        // Positions are one higher here, so that the one before the first is 0.
        let mut patch = 0;
        for (y, x) in (0..height).step_by(ROWS as usize).flat_map(|y| (0..width).step_by(tiling.vector as usize).map(move |x| (y, x))) {
            for row in 0..ROWS + 2 {
                let columns: u64 = (0..tiling.vector + 2).map(|column| inside(x + column, width)).sum();
                patch += inside(y + row, height) * columns;
            }
        }
        let planes: u64 = match convolution {
            Convolution::Direct => (0..depth).flat_map(|z| (0..3).map(move |tap| inside(z + tap, depth))).sum::<u64>() * tiling.groups,
            Convolution::Depthwise => (0..depth)
                .step_by(PLANES as usize)
                .flat_map(|begin| (begin..(begin + PLANES).min(depth) + 2).map(|at| inside(at, depth)))
                .sum(),
        };
        let weights = match convolution {
            Convolution::Direct => u64::from(tiling.grid()) / tiling.groups * channels_out * channels_in * TAPS,
            Convolution::Depthwise => tiling.tiles * 32 * TAPS,
        };
        (batch * channels_in * planes * patch + weights + tiling.shape.outputs()) * ELEMENT_BYTES
    }

    #[test]
    fn the_kernels_divide_by_the_same_numbers() {
        let source = include_str!("../../../kernels/conv3d.cu");
        for (name, value) in [
            ("LANES_WIDE", LANES_WIDE),
            ("LANES_HIGH", LANES_HIGH),
            ("WARPS", WARPS),
            ("ROWS", ROWS),
            ("CHANNELS", CHANNELS),
            ("PLANES", PLANES),
        ] {
            assert!(source.contains(&format!("const u32 {name} = {value};")), "{name}");
        }
    }

    #[test]
    fn a_thread_takes_four_columns_where_the_width_allows() {
        let shape = |width| Shape { batch: 1, channels_in: 1, channels_out: 1, extent: [1, 1, width], convolution: Convolution::Direct };
        assert_eq!([4, 6, 7, 8].map(|width| Tiling::new(&shape(width)).unwrap().vector), [4, 1, 1, 4]);
    }

    #[test]
    fn what_the_kernels_cannot_count_is_refused() {
        let shape = |extent| Shape { batch: 1, channels_in: 1, channels_out: 1, extent, convolution: Convolution::Direct };
        assert!(Tiling::new(&shape([1, 1 << 15, 1 << 15])).is_some());
        for extent in [[1, 1 << 16, 1 << 15], [1 << 31, 1, 1], [1 << 40, 1 << 40, 1]] {
            assert!(Tiling::new(&shape(extent)).is_none(), "{extent:?}");
        }
    }

    proptest! {
        #[test]
        fn issued_bytes_are_those_of_the_loops(
            extent in prop::array::uniform3(1u64..80), batch in 1u64..4, channels in prop::array::uniform2(1u64..20), depthwise: bool,
        ) {
            let convolution = if depthwise { Convolution::Depthwise } else { Convolution::Direct };
            let channels_out = if depthwise { channels[0] } else { channels[1] };
            let shape = Shape { batch, channels_in: channels[0], channels_out, extent, convolution };
            let tiling = Tiling::new(&shape).unwrap();
            prop_assert_eq!(tiling.issued_bytes(), counted(&tiling));
        }
    }
}
