//! `stride`: one 4-byte element at every S bytes, and what that costs.
//!
//! Memory moves whole sectors (see [`DeviceKind::sector_bytes`]). From one sector
//! up, the walk touches each sector of the buffer exactly once: access `i` goes to
//! `(i mod m) S + (i div m) sector` with `m = bytes / S`. So every stride moves the
//! whole buffer once, and the ratio of compulsory to requested bytes is the
//! amplification that the stride causes. Below one sector the accesses are plain
//! multiples of S. A copy walks source and destination alike; what the memory
//! must read to complete the partly written sectors is not counted.

use serde_json::json;

use super::plan::{Arg, Body, Buffer, Launch, Plan, Work};
use super::size::size_of;
use super::stream::BLOCKS_PER_UNIT;
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, PlanError, Profile};

const ELEMENT_BYTES: u64 = 4;
const SEED: u32 = 0x5EED_057D;

const QUICK: [u64; 3] = [4, 32, 256];
const STANDARD: [u64; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Where the accesses of one strided pass go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// How many accesses the pass makes.
    pub accesses: u64,
    /// Accesses until the walk comes back to the start of the buffer.
    pub lap: u64,
    /// Words between two accesses of one lap.
    pub stride_words: u64,
    /// Words by which each lap starts later than the one before.
    pub shift_words: u64,
}

impl Walk {
    /// The walk over `bytes` (a multiple of stride and sector).
    pub fn new(bytes: u64, stride_bytes: u64, sector_bytes: u64) -> Self {
        let lap = bytes / stride_bytes;
        let accesses = if stride_bytes >= sector_bytes { bytes / sector_bytes } else { lap };
        Self { accesses, lap, stride_words: stride_bytes / ELEMENT_BYTES, shift_words: sector_bytes / ELEMENT_BYTES }
    }

    /// The word that access `i` goes to: the rule that tests hold kernels to.
    #[cfg(test)]
    pub fn word(&self, i: u64) -> u64 {
        (i % self.lap) * self.stride_words + (i / self.lap) * self.shift_words
    }

    /// Whether any access goes to this word.
    #[cfg(test)]
    pub fn touches(&self, word: u64) -> bool {
        let step = if self.accesses > self.lap { self.shift_words } else { self.stride_words };
        word.is_multiple_of(step)
    }
}

/// The stride pattern.
pub struct Stride;

impl Pattern for Stride {
    fn name(&self) -> &'static str {
        "stride"
    }

    fn summary(&self) -> &'static str {
        "one 4-byte element at every S bytes, each sector touched once"
    }

    fn ids(&self, profile: Profile, _kind: DeviceKind) -> Vec<String> {
        let strides: &[u64] = if profile == Profile::Quick { &QUICK } else { &STANDARD };
        ["read", "copy"].iter().flat_map(|operation| strides.iter().map(move |s| format!("stride/{operation}/{s}"))).collect()
    }

    fn trials(&self) -> &'static [&'static str] {
        &["stride/read/8@640000", "stride/read/64@640000", "stride/copy/8@640000", "stride/copy/64@640000"]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let unknown = || PlanError::Unknown(format!("'{id}' is not stride/<read|copy>/<stride bytes>"));
        let [operation @ ("read" | "copy"), stride] = id.parts()[..] else { return Err(unknown()) };
        let stride: u64 = stride.parse().ok().filter(|n: &u64| n.to_string() == stride).ok_or_else(unknown)?;
        if !stride.is_power_of_two() || stride < ELEMENT_BYTES {
            let next = stride.checked_next_power_of_two().map(|next| format!("; {} would be", next.max(ELEMENT_BYTES)));
            return Err(PlanError::Invalid(format!(
                "'{id}': a stride is a power of two of at least {ELEMENT_BYTES} bytes{}",
                next.unwrap_or_default()
            )));
        }
        let sector = facts.kind.sector_bytes();
        let copies = operation == "copy";
        let sizing = size_of(id, facts, if copies { 2 } else { 1 }, stride.max(sector))?;
        let array = sizing.bytes_each / stride * stride;
        if array == 0 {
            return Err(PlanError::Invalid(format!("'{id}': the stride exceeds the buffer of {} bytes", sizing.bytes_each)));
        }
        let walk = Walk::new(array, stride, sector);
        let requested = walk.accesses * ELEMENT_BYTES;
        let directions = if copies { 2 } else { 1 };

        let mut parameters = Parameters::new();
        parameters.insert("stride_bytes".into(), json!(stride));
        parameters.insert("array_bytes".into(), json!(array));
        parameters.insert("accesses".into(), json!(walk.accesses));
        parameters.insert("sector_bytes".into(), json!(sector));

        Ok(Case {
            id: id.clone(),
            level: Level::of(array * directions, facts.cache_bytes),
            parameters,
            bytes: Bytes {
                requested_read: requested,
                requested_write: if copies { requested } else { 0 },
                compulsory: array * directions,
                issued: Some(requested * directions),
                dram: None,
            },
            flops: 0,
            compute_pipe: None,
            notes: sizing.notes,
            plan: plan(copies, array, walk, facts).ok_or_else(|| PlanError::Invalid(format!("'{id}': the stride makes too many laps")))?,
            ways: None,
        })
    }
}

/// One CUDA kernel: 256 threads, each with so many accesses in flight.
struct Kernel {
    entry: &'static str,
    unroll: u64,
    /// Whether blocks take turns on tiles, as a sum that lives across them needs, or have
    /// one tile each, in order.
    turns: bool,
}

const BLOCK: u64 = 256;
const READ: Kernel = Kernel { entry: "stride_read", unroll: 16, turns: true };
/// Where several accesses fall into one sector. In one run on an H200 (2026-12; METHOD.md)
/// four in flight moved 0.86 of the peak at a stride of 4 bytes, and one 0.44.
const COPY_DENSE: Kernel = Kernel { entry: "stride_copy_x4", unroll: 4, turns: false };
/// Where each access has its own sector: 0.44 with one in flight and 0.40 with four at 64 bytes.
const COPY_SPARSE: Kernel = Kernel { entry: "stride_copy_x1", unroll: 1, turns: false };

impl Kernel {
    /// The kernel for a walk.
    fn of(copies: bool, walk: Walk) -> Self {
        match copies {
            false => READ,
            true if walk.stride_words < walk.shift_words => COPY_DENSE,
            true => COPY_SPARSE,
        }
    }

    /// Blocks for a walk, of whose tiles none spans two laps; none when they cannot be counted.
    fn grid(&self, walk: Walk, units: u32) -> Option<u32> {
        let tiles = (walk.accesses / walk.lap).checked_mul(walk.lap.div_ceil(BLOCK * self.unroll))?;
        let tiles = i32::try_from(tiles).ok()?.cast_unsigned();
        Some(if self.turns { tiles.min(units.saturating_mul(BLOCKS_PER_UNIT)) } else { tiles })
    }

    fn body(&self, copies: bool) -> Body {
        let bytes = (self.unroll * ELEMENT_BYTES) as u32;
        Body { load_bytes: bytes, store_bytes: if copies { bytes } else { 0 } }
    }
}

/// The plan; none when the walk has more laps than a launch has blocks.
fn plan(copies: bool, array: u64, walk: Walk, facts: &Facts) -> Option<Plan> {
    let words = array / ELEMENT_BYTES;
    let (work, grid, block, body) = match facts.kind {
        DeviceKind::Host => (if copies { "stride_copy" } else { "stride_read" }, facts.units, 1, None),
        DeviceKind::Cuda => {
            let kernel = Kernel::of(copies, walk);
            (kernel.entry, kernel.grid(walk, facts.units)?, BLOCK as u32, Some(kernel.body(copies)))
        }
    };
    let walk_args = [Arg::U64(words), Arg::U64(walk.accesses), Arg::U64(walk.stride_words), Arg::U64(walk.shift_words)];
    let launch = |kernel, grid, first: Vec<Arg>, last: Vec<Arg>, body| {
        let args = [first, walk_args.to_vec(), last].concat();
        Launch { module: "stride", kernel, grid, block, args, body }
    };
    let (output, check, check_grid, compared) = if copies {
        (Buffer::output(array), "check_stride_copy", grid.min(facts.units.saturating_mul(8)), words)
    } else {
        // Block by block, as the kernel summed them.
        (Buffer::output(u64::from(grid) * 8), "check_stride_read", grid, u64::from(grid))
    };
    Some(Plan {
        compared,
        buffers: vec![output, Buffer::words(array, SEED)],
        work: Work::Kernel(launch(work, grid, vec![Arg::Buffer(0), Arg::Buffer(1)], vec![], body)),
        check: launch(check, check_grid, vec![Arg::Buffer(0)], vec![Arg::U32(SEED), Arg::Data, Arg::Status], None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn case(text: &str) -> Case {
        Stride.case(&CaseId::new(text), &Facts::HOST).unwrap()
    }

    #[test]
    fn a_stride_of_one_sector_or_more_moves_the_whole_buffer_for_4_bytes_a_sector() {
        for stride in [64, 128, 256, 1024] {
            let c = case(&format!("stride/read/{stride}"));
            assert_eq!(c.bytes.compulsory, 128 << 20);
            assert_eq!(c.bytes.requested() * 16, c.bytes.compulsory);
        }
    }

    #[test]
    fn below_one_sector_the_amplification_is_the_stride_in_elements() {
        let c = case("stride/read/32");
        assert_eq!(c.bytes.compulsory, c.bytes.requested() * 8);
        let c = case("stride/read/4");
        assert_eq!(c.bytes.compulsory, c.bytes.requested());
    }

    #[test]
    fn a_copy_counts_source_and_destination() {
        let c = case("stride/copy/256");
        assert_eq!(c.bytes.requested_read, c.bytes.requested_write);
        assert_eq!(c.bytes.compulsory, 128 << 20);
    }

    #[test]
    fn the_kernels_divide_by_the_same_numbers() {
        let source = include_str!("../../kernels/stride.cu");
        assert!(
            source.contains(&format!("const u32 BLOCK = {BLOCK};"))
                && source.contains(&format!("const u32 READ_UNROLL = {};", READ.unroll))
        );
        assert!(
            source.contains(&format!("copy<{}>(dst", COPY_DENSE.unroll)) && source.contains(&format!("copy<{}>(dst", COPY_SPARSE.unroll))
        );
    }

    #[test]
    fn a_stride_that_is_no_power_of_two_is_refused_with_the_next_one() {
        let e = Stride.case(&CaseId::new("stride/read/48"), &Facts::HOST).unwrap_err().to_string();
        assert!(e.contains("64 would be"), "{e}");
        for stride in ["0", "1", "3", "18446744073709551615", "9223372036854775808"] {
            assert!(Stride.case(&CaseId::new(&format!("stride/read/{stride}")), &Facts::HOST).is_err(), "{stride}");
        }
    }

    proptest! {
        #[test]
        fn each_sector_is_touched_exactly_once(log_stride in 2u32..12, laps in 1u64..40, sector in prop::sample::select(vec![32u64, 64])) {
            let stride = 1u64 << log_stride;
            let bytes = stride.max(sector) * laps;
            let walk = Walk::new(bytes, stride, sector);
            let mut seen = vec![0u32; (bytes / sector) as usize];
            let mut words = std::collections::HashSet::new();
            for i in 0..walk.accesses {
                let word = walk.word(i);
                prop_assert!(word * 4 < bytes);
                prop_assert!(walk.touches(word));
                prop_assert!(words.insert(word), "word {} twice", word);
                seen[(word * 4 / sector) as usize] += 1;
            }
            let each = if stride >= sector { 1 } else { (sector / stride) as u32 };
            prop_assert!(seen.iter().all(|&n| n == each));
            let touched = (0..bytes / 4).filter(|&w| walk.touches(w)).count() as u64;
            prop_assert_eq!(touched, walk.accesses);
        }
    }
}
