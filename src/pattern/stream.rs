//! `stream`: contiguous passes over arrays too large for any cache.
//!
//! | operation | does | reads | writes | flops an element |
//! |---|---|---|---|---|
//! | read | checksum of `a` | 1 | 0 | 0 |
//! | write | `a[i] = f(i)` | 0 | 1 | 0 |
//! | copy | `a[i] = b[i]` | 1 | 1 | 0 |
//! | triad | `a[i] = b[i] + 3 c[i]` | 2 | 1 | 2 |
//!
//! The checksum and `f` are integer operations of [`super::data`] and count no flops.

use serde_json::json;

use super::plan::{Arg, Body, Buffer, Launch, Plan, Work};
use super::size::size_of;
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, Pipe, PlanError, Profile, data};

/// What a pass does with each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Sums every word into a checksum.
    Read,
    /// Stores a function of the position.
    Write,
    /// Copies one array to another.
    Copy,
    /// Adds a multiple of one array to another.
    Triad,
}

/// Threads in a block. 256 divides the resident threads of every architecture.
const BLOCK: u32 = 256;

/// Blocks that a grid-stride kernel launches for each multiprocessor: many times what
/// fits, so that the last to end leaves little idle. Of the peak of an H200 that was
/// 0.971 with 48 and 96 blocks and 0.969 with 24 (2026-12; METHOD.md has the table).
pub(super) const BLOCKS_PER_UNIT: u32 = 128;

/// One CUDA kernel of an operation.
struct Kernel {
    entry: &'static str,
    check: &'static str,
    /// Bytes of one vector access.
    vector_bytes: u32,
    /// Vectors that a thread handles in one pass through the body.
    unroll: u32,
    /// Whether blocks walk the array in strides of the whole grid, or take one tile each.
    grid_stride: bool,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Copy, Self::Triad];

    /// The part of the id.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Triad => "triad",
        }
    }

    const fn arrays_read(self) -> u64 {
        match self {
            Self::Read | Self::Copy => 1,
            Self::Write => 0,
            Self::Triad => 2,
        }
    }

    const fn arrays_written(self) -> u64 {
        match self {
            Self::Read => 0,
            Self::Write | Self::Copy | Self::Triad => 1,
        }
    }

    const fn flops_per_element(self) -> u64 {
        match self {
            Self::Triad => 2,
            Self::Read | Self::Write | Self::Copy => 0,
        }
    }

    const fn kernel(self) -> Kernel {
        match self {
            // The sum lives across tiles, so blocks stay and stride.
            Self::Read => Kernel { entry: "stream_read", check: "check_stream_read", vector_bytes: 16, unroll: 16, grid_stride: true },
            // One vector a thread and one tile a block, in order: on an H200 (2026-12)
            // 0.968, 0.880 and 0.910 of the peak, and less with 2, 4 or 8 vectors.
            Self::Write => Kernel { entry: "stream_write", check: "check_stream_write", vector_bytes: 16, unroll: 1, grid_stride: false },
            Self::Copy => Kernel { entry: "stream_copy", check: "check_words", vector_bytes: 16, unroll: 1, grid_stride: false },
            Self::Triad => Kernel { entry: "stream_triad", check: "check_stream_triad", vector_bytes: 16, unroll: 1, grid_stride: false },
        }
    }

    /// What one thread of the CUDA kernel loads and stores in one pass through its body.
    const fn body(self) -> Body {
        let kernel = self.kernel();
        let bytes = kernel.vector_bytes * kernel.unroll;
        Body { load_bytes: bytes * self.arrays_read() as u32, store_bytes: bytes * self.arrays_written() as u32 }
    }
}

/// The seeds of the arrays that an operation reads.
const SEED_B: u32 = 0x5EED_000B;
const SEED_C: u32 = 0x5EED_000C;
/// Of the sum of both terms' magnitudes: one rounding of the f32 result, or two where a
/// compiler splits the multiply-add, is half a unit in the last place of each term.
const TRIAD_TOLERANCE: f32 = 1.0 / 8_388_608.0;
/// Where the written sequence starts.
const SEED_A: u32 = 0x5EED_000A;

/// The stream pattern.
pub struct Stream;

impl Pattern for Stream {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn summary(&self) -> &'static str {
        "contiguous read, write, copy and triad over arrays too large for any cache"
    }

    fn ids(&self, _profile: Profile, _kind: DeviceKind) -> Vec<String> {
        Operation::ALL.iter().map(|o| format!("stream/{}/f32", o.name())).collect()
    }

    fn trials(&self) -> &'static [&'static str] {
        &["stream/read/f32@1000004", "stream/write/f32@1000004", "stream/copy/f32@1000004", "stream/triad/f32@1000004"]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let unknown = || PlanError::Unknown(format!("'{id}' is not stream/<read|write|copy|triad>/f32"));
        let [operation, "f32"] = id.parts()[..] else { return Err(unknown()) };
        let operation = Operation::ALL.into_iter().find(|o| o.name() == operation).ok_or_else(unknown)?;

        let arrays = operation.arrays_read() + operation.arrays_written();
        let sizing = size_of(id, facts, arrays, 4)?;
        let array = sizing.bytes_each;
        let elements = array / 4;

        let mut parameters = Parameters::new();
        parameters.insert("array_bytes".into(), json!(array));
        parameters.insert("elements".into(), json!(elements));

        Ok(Case {
            id: id.clone(),
            level: Level::of(array * arrays, facts.cache_bytes),
            parameters,
            bytes: Bytes::contiguous(array * operation.arrays_read(), array * operation.arrays_written()),
            flops: elements * operation.flops_per_element(),
            compute_pipe: (operation.flops_per_element() > 0).then_some(Pipe::FmaF32),
            accesses: None,
            report: None,
            notes: sizing.notes,
            plan: plan(operation, array, facts),
        })
    }
}

fn plan(operation: Operation, array: u64, facts: &Facts) -> Plan {
    let kernel = operation.kernel();
    let words = array / 4;
    let tile_bytes = u64::from(kernel.vector_bytes * kernel.unroll * BLOCK);
    let tiles = array.div_ceil(tile_bytes).max(1);
    let grid = match facts.kind {
        DeviceKind::Host => facts.units,
        DeviceKind::Cuda if kernel.grid_stride => tiles.min(u64::from(facts.units) * u64::from(BLOCKS_PER_UNIT)) as u32,
        // 2^32 tiles of 4 KiB are 16 TiB: more than any card holds.
        DeviceKind::Cuda => u32::try_from(tiles).unwrap_or(u32::MAX),
    };
    let launch = |name, grid, args| Launch { module: "stream", kernel: name, grid, block: BLOCK, args, body: None };
    let body = (facts.kind == DeviceKind::Cuda).then_some(operation.body());
    let n = Arg::U64(words);
    // Checks walk the array in strides of the grid, whatever its size.
    let check = |args| launch(kernel.check, grid.min(facts.units.saturating_mul(8)), args);
    let (buffers, args, check) = match operation {
        Operation::Read => (
            vec![Buffer::words(array, SEED_B), Buffer::output(u64::from(grid) * 8)],
            vec![Arg::Buffer(0), Arg::Buffer(1), n],
            // Block by block, as the kernel summed them.
            launch(kernel.check, grid, vec![Arg::Buffer(1), n, Arg::U32(SEED_B), Arg::Data, Arg::Status]),
        ),
        Operation::Write => (
            vec![Buffer::output(array)],
            vec![Arg::Buffer(0), n, Arg::U32(SEED_A)],
            check(vec![Arg::Buffer(0), n, Arg::U32(SEED_A), Arg::Status]),
        ),
        Operation::Copy => (
            vec![Buffer::output(array), Buffer::words(array, SEED_B)],
            vec![Arg::Buffer(0), Arg::Buffer(1), n],
            check(vec![Arg::Buffer(0), n, Arg::U32(SEED_B), Arg::Data, Arg::Status]),
        ),
        Operation::Triad => (
            vec![Buffer::output(array), Buffer::numbers(array, SEED_B), Buffer::numbers(array, SEED_C)],
            vec![Arg::Buffer(0), Arg::Buffer(1), Arg::Buffer(2), n, Arg::F32(data::TRIAD_SCALAR)],
            check(vec![
                Arg::Buffer(0),
                n,
                Arg::U32(SEED_B),
                Arg::U32(SEED_C),
                Arg::F32(data::TRIAD_SCALAR),
                Arg::Data,
                Arg::Tolerance(TRIAD_TOLERANCE),
                Arg::Status,
            ]),
        ),
    };
    let compared = if operation == Operation::Read { u64::from(grid) } else { words };
    Plan { compared, buffers, work: Work::Kernel(Launch { body, ..launch(kernel.entry, grid, args) }), check }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn case(text: &str) -> Case {
        Stream.case(&CaseId::new(text), &Facts::H200).unwrap()
    }

    #[test]
    fn achieved_bytes_count_reads_and_writes() {
        let array = 64 * (60 << 20);
        assert_eq!(case("stream/read/f32").bytes.requested(), array);
        assert_eq!(case("stream/write/f32").bytes.requested(), array);
        assert_eq!(case("stream/copy/f32").bytes.requested(), 2 * array);
        assert_eq!(case("stream/triad/f32").bytes.requested(), 3 * array);
        assert_eq!(case("stream/triad/f32").flops, 2 * array / 4);
    }

    #[test]
    fn the_kernels_divide_by_the_same_numbers() {
        let source = include_str!("../../kernels/stream.cu");
        let unroll = Operation::Read.kernel().unroll;
        assert!(source.contains(&format!("const u32 BLOCK = {BLOCK};")) && source.contains(&format!("const u32 READ_UNROLL = {unroll};")));
    }

    #[test]
    fn a_copy_moves_no_flops_through_any_pipe() {
        assert_eq!(case("stream/copy/f32").flops, 0);
        assert_eq!(case("stream/copy/f32").compute_pipe, None);
    }

    #[test]
    fn a_size_within_the_cache_is_not_called_dram() {
        assert_eq!(case("stream/copy/f32@1048576").level, Level::Cache);
        assert_eq!(case("stream/copy/f32").level, Level::Dram);
    }

    #[test]
    fn other_operations_and_types_are_refused_by_name() {
        for id in ["stream/fly/f32", "stream/copy/f33", "stream", "stream/copy"] {
            let e = Stream.case(&CaseId::new(id), &Facts::H200).unwrap_err();
            assert!(matches!(&e, PlanError::Unknown(m) if m.contains(id)), "{e}");
        }
    }

    proptest! {
        /// Also around 2^31 and 2^32 elements, where 32-bit arithmetic would wrap.
        #[test]
        fn one_tile_a_block_covers_every_element(base in prop::sample::select(vec![0u64, 1 << 20, 1 << 31, 1 << 32]), extra in 1u64..100_000) {
            let elements = base + extra;
            let array = elements * 4;
            for operation in [Operation::Write, Operation::Copy, Operation::Triad] {
                let plan = plan(operation, array, &Facts::H200);
                let Work::Kernel(launch) = &plan.work else { unreachable!() };
                let tile = u64::from(operation.kernel().vector_bytes * operation.kernel().unroll * BLOCK);
                prop_assert!(u64::from(launch.grid) * tile >= array);
                prop_assert!((u64::from(launch.grid) - 1) * tile < array);
            }
        }
    }
}
