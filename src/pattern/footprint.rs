//! `footprint`: reads and copies over a footprint of any size, from what the nearest cache
//! holds to most of the memory. The curve shows what the caches deliver and where they end.
//!
//! The footprint is all that a pass touches: of a copy, source and destination together,
//! half each. Small footprints are passed over many times in one execution, so that its start
//! costs nothing: requested bytes are footprint x passes, compulsory ones the footprint alone.
//! Random order: lines of 128 bytes in the order of [`Order`], each once a pass; it is computed
//! in registers, and no index is read.

use serde_json::json;

use super::plan::{Arg, Body, Buffer, LINE_BYTES, Launch, Plan, Work};
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, PlanError, Profile};

/// Footprints are multiples of this, so that every kernel's tiles and lines divide them.
pub const GRANULE_BYTES: u64 = 64 << 10;

/// One execution moves about this many bytes for each multiprocessor: 1 ms at the 40 GB/s or so
/// that each gets from the L2 caches of today's cards.
const CUDA_BYTES_PER_UNIT: u64 = 40_000_000;
/// And on a host for each worker: 0.8 ms at 10 GB/s.
const HOST_BYTES_PER_UNIT: u64 = 8_000_000;

const SEED: u32 = 0x5EED_F007;
const BLOCK: u32 = 256;
const VECTOR_BYTES: u32 = 16;
/// Blocks that a read launches for each multiprocessor: many times what fits, so that the last
/// to end leaves little idle, and few enough that each has some ten tiles to sum.
const BLOCKS_PER_UNIT: u32 = 64;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Footprints of the profile `standard`: where the last caches of cards end, from 2 to 192 MiB, two for
/// each doubling; the last is many times any of them.
fn standard() -> Vec<u64> {
    let close = sweep().into_iter().filter(|bytes| (2 * MIB..=256 * MIB).contains(bytes));
    [64 * KIB, MIB].into_iter().chain(close).chain([GIB, 8 * GIB]).collect()
}

/// A host takes a second to fill a GiB, and its caches are no larger.
const HOST_MOST: u64 = 8 * GIB;
const HOST_STANDARD_MOST: u64 = GIB;

/// Footprints of the profile `full`: every doubling of 64 KiB up to 192 GiB, and the middle
/// between two where caches end and where memory does.
fn sweep() -> Vec<u64> {
    let doublings = (0..=21).map(|k| GRANULE_BYTES << k);
    let with_middle = doublings.flat_map(|bytes| [Some(bytes), is_close(bytes).then_some(bytes / 2 * 3)]);
    with_middle.flatten().collect()
}

fn is_close(bytes: u64) -> bool {
    (MIB..512 * MIB).contains(&bytes) || bytes >= 8 * GIB
}

/// In which order a pass goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    Sequential,
    Random,
}

/// What the id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Operation {
    copies: bool,
    walk: Walk,
}

impl Operation {
    const ALL: [Self; 4] = [
        Self { copies: false, walk: Walk::Sequential },
        Self { copies: true, walk: Walk::Sequential },
        Self { copies: false, walk: Walk::Random },
        Self { copies: true, walk: Walk::Random },
    ];

    const fn name(self) -> &'static str {
        match (self.copies, self.walk) {
            (false, Walk::Sequential) => "read",
            (true, Walk::Sequential) => "copy",
            (false, Walk::Random) => "read-random",
            (true, Walk::Random) => "copy-random",
        }
    }

    /// The kernel, and vectors of 16 bytes that each of its threads has in flight.
    const fn kernel(self) -> (&'static str, u32) {
        match (self.copies, self.walk) {
            // As many as stream_read.
            (false, Walk::Sequential) => ("footprint_read", 16),
            // Four blocks a multiprocessor instead of three: as many bytes in flight, with room for the lines' places.
            (false, Walk::Random) => ("footprint_read_random", 8),
            // As stream_copy: what helps is that the blocks walk the memory in order.
            (true, Walk::Sequential) => ("footprint_copy", 1),
            // There is no order to keep, so latency is hidden by more in flight.
            (true, Walk::Random) => ("footprint_copy_random", 4),
        }
    }

    const fn body(self) -> Body {
        let bytes = self.kernel().1 * VECTOR_BYTES;
        Body { load_bytes: bytes, store_bytes: if self.copies { bytes } else { 0 } }
    }
}

/// Lines in random order, each once: a mixing of `k` bits that can be undone, where 2^`k` is the next
/// power of two, repeated until it gives a line that there is (Black and Rogaway, "Ciphers with arbitrary
/// finite domains", 2002, call that cycle walking). `kernels/footprint.cu` has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    lines: u32,
    mask: u32,
    shift: u32,
}

impl Order {
    /// Odd, so that multiplying by them modulo a power of two can be undone.
    const FACTORS: [u32; 2] = [0x9E37_79B1, 0x21F0_AAAD];

    /// The order of two lines or more.
    pub const fn new(lines: u32) -> Self {
        let bits = u32::BITS - (lines - 1).leading_zeros();
        // At least half of the bits: a second shift then undoes the first.
        Self { lines, mask: u32::MAX >> (u32::BITS - bits), shift: bits.div_ceil(2) }
    }

    /// The line that is visited at a position.
    #[inline(always)]
    pub const fn line(self, position: u32) -> u32 {
        let mut x = position;
        loop {
            x = x.wrapping_mul(Self::FACTORS[0]) & self.mask;
            x ^= x >> self.shift;
            x = x.wrapping_mul(Self::FACTORS[1]) & self.mask;
            x ^= x >> self.shift;
            if x < self.lines {
                return x;
            }
        }
    }

    /// The position at which a line is visited.
    #[inline(always)]
    pub const fn position(self, line: u32) -> u32 {
        const UNDO: [u32; 2] = [inverse(Order::FACTORS[0]), inverse(Order::FACTORS[1])];
        let mut x = line;
        loop {
            x ^= x >> self.shift;
            x = x.wrapping_mul(UNDO[1]) & self.mask;
            x ^= x >> self.shift;
            x = x.wrapping_mul(UNDO[0]) & self.mask;
            if x < self.lines {
                return x;
            }
        }
    }
}

/// What an odd number times which is 1 modulo 2^32: each step of Newton's doubles the bits that are right.
const fn inverse(odd: u32) -> u32 {
    let (mut x, mut step) = (odd, 0);
    while step < 4 {
        x = x.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(x)));
        step += 1;
    }
    x
}

/// The footprint pattern.
pub struct Footprint;

/// Of passes that follow each other at once the last cache may serve the share that it holds: a sixteenth
/// leaves a bandwidth that is the memory's, and not quite a quarter lifted one above the peak of the bus (H200, 2026-12).
const DRAM_MULTIPLE: u64 = 16;

fn level(footprint_bytes: u64, cache_bytes: Option<u64>) -> Level {
    match (Level::of(footprint_bytes, cache_bytes), cache_bytes) {
        (Level::Dram, Some(cache)) if footprint_bytes < cache.saturating_mul(DRAM_MULTIPLE) => Level::Mixed,
        (level, _) => level,
    }
}

impl Pattern for Footprint {
    fn name(&self) -> &'static str {
        "footprint"
    }

    fn summary(&self) -> &'static str {
        "reads and copies over footprints from 64 KiB to most of the memory, sequential and in random order"
    }

    fn ids(&self, profile: Profile, kind: DeviceKind) -> Vec<String> {
        let most = match (kind, profile) {
            (DeviceKind::Cuda, _) => u64::MAX,
            (DeviceKind::Host, Profile::Full) => HOST_MOST,
            (DeviceKind::Host, _) => HOST_STANDARD_MOST,
        };
        let (operations, footprints) = match profile {
            Profile::Quick => (&[][..], Vec::new()),
            Profile::Standard => (&Operation::ALL[..1], standard()),
            Profile::Full => (&Operation::ALL[..], sweep()),
        };
        let of = |operation: &Operation| {
            let name = operation.name();
            footprints.iter().filter(|bytes| **bytes <= most).map(move |bytes| format!("footprint/{name}/{bytes}")).collect::<Vec<_>>()
        };
        operations.iter().flat_map(of).collect()
    }

    fn trials(&self) -> &'static [&'static str] {
        // Three, five and seven granules: no power of two, so the order must walk on.
        &["footprint/read/196608", "footprint/copy/327680", "footprint/read-random/458752", "footprint/copy-random/327680"]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let unknown = || PlanError::Unknown(format!("'{id}' is not footprint/<read|copy>[-random]/<bytes>"));
        let [operation, footprint] = id.parts()[..] else { return Err(unknown()) };
        let operation = Operation::ALL.into_iter().find(|o| o.name() == operation).ok_or_else(unknown)?;
        let footprint: u64 = footprint.parse().ok().filter(|n: &u64| n.to_string() == footprint).ok_or_else(unknown)?;
        if id.size().is_some() {
            return Err(PlanError::Invalid(format!("'{id}': the footprint stands in the id itself, so leave out '@' and what follows")));
        }
        if footprint == 0 || !footprint.is_multiple_of(GRANULE_BYTES) {
            let down = (footprint / GRANULE_BYTES * GRANULE_BYTES).max(GRANULE_BYTES);
            return Err(PlanError::Invalid(format!(
                "'{id}': a footprint is a positive multiple of {GRANULE_BYTES} bytes; {down} would be"
            )));
        }
        // Without the id, so that all that are too large for a card share one remark.
        if footprint > facts.free_bytes / 10 * 8 {
            return Err(PlanError::TooLarge(format!(
                "a footprint beyond 80 % of the free memory ({} MiB are free) is not measured: name a smaller one, or end other programs here",
                facts.free_bytes / MIB
            )));
        }
        let array = if operation.copies { footprint / 2 } else { footprint };
        if operation.walk == Walk::Random && u32::try_from(array / LINE_BYTES).is_err() {
            return Err(PlanError::TooLarge(format!("'{id}': there is no random order of 2^32 lines of {LINE_BYTES} bytes and more")));
        }
        let bytes_per_unit = if facts.kind == DeviceKind::Cuda { CUDA_BYTES_PER_UNIT } else { HOST_BYTES_PER_UNIT };
        let passes = (u64::from(facts.units) * bytes_per_unit).div_ceil(footprint) as u32;
        let requested = array * u64::from(passes);

        let mut parameters = Parameters::new();
        parameters.insert("footprint_bytes".into(), json!(footprint));
        parameters.insert("passes".into(), json!(passes));
        parameters.insert("order".into(), json!(if operation.walk == Walk::Random { "random" } else { "sequential" }));
        if operation.walk == Walk::Random {
            parameters.insert("line_bytes".into(), json!(LINE_BYTES));
        }

        Ok(Case {
            id: id.clone(),
            level: level(footprint, facts.cache_bytes),
            parameters,
            bytes: Bytes { compulsory: footprint, ..Bytes::contiguous(requested, if operation.copies { requested } else { 0 }) },
            flops: 0,
            compute_pipe: None,
            accesses: None,
            report: None,
            notes: Vec::new(),
            ways: None,
            plan: plan(operation, array, passes, facts)
                .ok_or_else(|| PlanError::TooLarge(format!("'{id}': the footprint has more tiles than a launch has blocks")))?,
        })
    }
}

/// The plan; none when the tiles of all passes cannot be counted.
fn plan(operation: Operation, array: u64, passes: u32, facts: &Facts) -> Option<Plan> {
    let words = array / 4;
    let (kernel, unroll) = operation.kernel();
    let tile_bytes = u64::from(BLOCK * VECTOR_BYTES * unroll);
    let tiles = (array / tile_bytes).checked_mul(u64::from(passes)).and_then(|tiles| i32::try_from(tiles).ok())?.cast_unsigned();
    let grid = match facts.kind {
        DeviceKind::Host => facts.units,
        // The sum lives across tiles, so blocks take turns; a copy has one tile a block, in order.
        DeviceKind::Cuda if operation.copies => tiles,
        DeviceKind::Cuda => tiles.min(facts.units.saturating_mul(BLOCKS_PER_UNIT)),
    };
    let (n, passes) = (Arg::U64(words), Arg::U32(passes));
    let launch = |module, kernel, grid, args| Launch { module, kernel, grid, block: BLOCK, args, body: None };
    let (output, compared, check) = if operation.copies {
        let args = vec![Arg::Buffer(0), n, Arg::U32(SEED), Arg::Data, Arg::Status];
        let module = if facts.kind == DeviceKind::Host { "stream" } else { "stream_check" };
        (Buffer::output(array), words, launch(module, "check_words", grid.min(facts.units.saturating_mul(8)), args))
    } else {
        // Block by block, as the kernel summed them.
        let check = match operation.walk {
            Walk::Sequential => "check_footprint_read",
            Walk::Random => "check_footprint_read_random",
        };
        let args = vec![Arg::Buffer(0), n, passes, Arg::U32(SEED), Arg::Data, Arg::Status];
        (Buffer::output(u64::from(grid) * 8), u64::from(grid), launch("footprint", check, grid, args))
    };
    let body = (facts.kind == DeviceKind::Cuda).then_some(operation.body());
    let work = launch("footprint", kernel, grid, vec![Arg::Buffer(0), Arg::Buffer(1), n, passes]);
    Some(Plan { buffers: vec![output, Buffer::words(array, SEED)], work: Work::Kernel(Launch { body, ..work }), check, compared })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn case(text: &str, facts: &Facts) -> Result<Case, PlanError> {
        Footprint.case(&CaseId::new(text), facts)
    }

    /// A card with more memory than there is.
    const HUGE: Facts = Facts { free_bytes: 1 << 50, ..Facts::H200 };

    #[test]
    fn requested_bytes_are_all_passes_and_compulsory_ones_the_footprint() {
        for operation in Operation::ALL {
            let c = case(&format!("footprint/{}/1048576", operation.name()), &Facts::H200).unwrap();
            let passes = c.parameters["passes"].as_u64().unwrap();
            assert_eq!(c.bytes.requested(), passes << 20);
            assert_eq!(c.bytes.issued, Some(passes << 20));
            assert_eq!(c.bytes.compulsory, 1 << 20);
            assert_eq!(c.bytes.requested_write > 0, operation.copies);
        }
    }

    #[test]
    fn the_footprint_of_a_copy_is_source_and_destination_together() {
        let c = case("footprint/copy/1048576", &Facts::H200).unwrap();
        assert_eq!(c.plan.buffers.iter().map(|b| b.bytes).sum::<u64>(), 1 << 20);
        assert_eq!(c.bytes.requested_read, c.bytes.requested_write);
    }

    #[test]
    fn an_execution_moves_about_as_much_whatever_the_footprint_and_a_large_one_is_passed_once() {
        for bytes in sweep() {
            let Ok(c) = case(&format!("footprint/read/{bytes}"), &Facts::H200) else { continue };
            let aim = u64::from(Facts::H200.units) * CUDA_BYTES_PER_UNIT;
            assert!((aim..aim + bytes).contains(&c.bytes.requested()) || c.parameters["passes"] == 1, "{bytes}");
        }
        assert_eq!(case("footprint/read/103079215104", &Facts::H200).unwrap().parameters["passes"], 1);
    }

    #[test]
    fn only_footprints_beyond_the_cache_are_the_memorys() {
        let level = |bytes: u64| case(&format!("footprint/read/{bytes}"), &Facts::H200).unwrap().level;
        assert_eq!([level(32 * MIB), level(96 * MIB), level(256 * MIB)], [Level::Cache, Level::Mixed, Level::Mixed]);
        assert_eq!(level(960 * MIB), Level::Dram);
    }

    #[test]
    fn the_kernels_divide_by_the_same_numbers() {
        let source = include_str!("../../kernels/footprint.cu");
        assert!(source.contains(&format!("const u32 BLOCK = {BLOCK};")));
        for (name, operation) in ["READ", "COPY", "READ_RANDOM", "COPY_RANDOM"].iter().zip(Operation::ALL) {
            assert!(source.contains(&format!("const u32 {name}_UNROLL = {};", operation.kernel().1)), "{name}");
        }
        for factor in Order::FACTORS {
            assert!(source.contains(&format!("(x * 0x{factor:X}u) & mask")), "{factor:X}");
        }
        assert!(source.contains(&format!("const u32 LINE_WORDS = {};", LINE_BYTES / 4)));
    }

    #[test]
    fn profiles_have_no_some_and_all_footprints() {
        let count = |profile, kind| Footprint.ids(profile, kind).len();
        assert_eq!([Profile::Quick, Profile::Standard, Profile::Full].map(|p| count(p, DeviceKind::Cuda)), [0, 19, 4 * 36]);
        assert!(Footprint.ids(Profile::Full, DeviceKind::Host).iter().all(|id| !id.ends_with("/17179869184")));
        let full = Footprint.ids(Profile::Full, DeviceKind::Cuda);
        assert!(Footprint.ids(Profile::Standard, DeviceKind::Cuda).iter().all(|id| full.contains(id)));
        assert!(full.contains(&format!("footprint/copy-random/{}", 96 * GIB)));
    }

    #[test]
    fn a_footprint_beyond_80_percent_of_the_free_memory_is_too_large_in_the_same_words() {
        let small = Facts { free_bytes: 10 * GIB, ..Facts::H200 };
        assert!(case(&format!("footprint/read/{}", 8 * GIB), &small).is_ok());
        let [a, b] = [12 * GIB, 16 * GIB].map(|bytes| case(&format!("footprint/copy/{bytes}"), &small).unwrap_err());
        assert!(matches!(&a, PlanError::TooLarge(why) if why.contains("80 %") && why.contains("10240 MiB")), "{a}");
        assert_eq!(a, b);
    }

    #[test]
    fn what_is_no_footprint_is_refused_with_the_next_one() {
        for (id, told) in [
            ("footprint/read/0", "65536 would be"),
            ("footprint/read/100000", "65536 would be"),
            ("footprint/copy/200000", "196608 would be"),
            ("footprint/read/65536@4096", "leave out"),
        ] {
            let e = case(id, &Facts::H200).unwrap_err();
            assert!(matches!(&e, PlanError::Invalid(why) if why.contains(told) && why.contains(id)), "{e}");
        }
        for id in ["footprint", "footprint/read", "footprint/write/65536", "footprint/read/064", "footprint/read/18446744073709551616"] {
            assert!(matches!(case(id, &Facts::H200), Err(PlanError::Unknown(why)) if why.contains(id)), "{id}");
        }
    }

    #[test]
    fn a_random_order_counts_its_lines_in_32_bits() {
        let lines = |n: u64| format!("footprint/read-random/{}", n * LINE_BYTES);
        assert!(case(&lines((1 << 32) - 512), &HUGE).is_ok());
        assert!(matches!(case(&lines(1 << 32), &HUGE), Err(PlanError::TooLarge(_))));
        assert!(case(&format!("footprint/read/{}", 128u64 << 32), &HUGE).is_ok());
    }

    #[test]
    fn tiles_that_cannot_be_counted_are_refused() {
        assert!(case(&format!("footprint/copy/{}", 15u64 << 40), &HUGE).is_ok());
        assert!(matches!(case(&format!("footprint/copy/{}", 17u64 << 40), &HUGE), Err(PlanError::TooLarge(_))));
    }

    #[test]
    fn the_order_is_right_where_lines_need_all_32_bits() {
        for lines in [1 << 31, (1 << 31) + 512, u32::MAX - 511] {
            let order = Order::new(lines);
            for position in (0..lines).step_by(7_654_321).chain([1, lines - 1]) {
                let line = order.line(position);
                assert!(line < lines && order.position(line) == position, "{position} of {lines}");
            }
        }
    }

    #[test]
    fn lines_that_follow_each_other_are_seldom_in_one_page() {
        for lines in [1 << 13, 3 << 19] {
            let order = Order::new(lines);
            let per_page = 4096 / LINE_BYTES as u32;
            let near = (1..lines).filter(|&i| order.line(i) / per_page == order.line(i - 1) / per_page).count();
            assert!(near as u32 <= lines / 64, "{near} of {lines}");
        }
    }

    /// Where `turn` goes, as `tile_of` in the kernels has it.
    fn tile_of(turn: u32, tiles: u32) -> u32 {
        let begins = (u64::from(super::super::data::mix(turn / tiles)) * u64::from(tiles)) >> 32;
        ((u64::from(turn % tiles) + begins) % u64::from(tiles)) as u32
    }

    proptest! {
        #[test]
        fn each_line_is_visited_once(lines in 2u32..20_000) {
            let order = Order::new(lines);
            let mut seen = vec![false; lines as usize];
            for position in 0..lines {
                let line = order.line(position);
                prop_assert!(!std::mem::replace(&mut seen[line as usize], true));
                prop_assert_eq!(order.position(line), position);
            }
        }

        #[test]
        fn each_pass_has_each_tile_once(tiles in 1u32..500, passes in 1u32..6) {
            for pass in 0..passes {
                let mut seen: Vec<u32> = (0..tiles).map(|k| tile_of(pass * tiles + k, tiles)).collect();
                seen.sort_unstable();
                prop_assert!(seen.into_iter().eq(0..tiles));
            }
        }

        /// Also around 2^31 and 2^32 words, where 32-bit arithmetic would wrap.
        #[test]
        fn a_copys_blocks_are_the_tiles_of_all_passes(base in prop::sample::select(vec![0u64, 1 << 33, 1 << 34]), granules in 1u64..3000) {
            let footprint = base + granules * GRANULE_BYTES;
            for operation in Operation::ALL.into_iter().filter(|operation| operation.copies) {
                let case = case(&format!("footprint/{}/{footprint}", operation.name()), &HUGE).unwrap();
                let Work::Kernel(launch) = &case.plan.work else { unreachable!() };
                let tile = u64::from(BLOCK * VECTOR_BYTES * operation.kernel().1);
                prop_assert_eq!(u64::from(launch.grid) * tile * 2, case.bytes.requested());
            }
        }
    }
}
