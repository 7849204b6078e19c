//! `gather`: reads from places that an index names.
//!
//! | case | reads |
//! |---|---|
//! | `gather/read/<chunk bytes>` | chunks in a random order, each once |
//! | `gather/kv/<page bytes>` | the key and the value cache of a language model, page by page through a block table |
//!
//! An index of 32-bit places says where each chunk is: a random order of all of them. It is
//! no part of the requested bytes; the compulsory ones count it once, the issued ones as
//! often as it is loaded. A page holds the keys, or the values, of 16 tokens in one layer
//! (heads x their length x bytes of an element x 16): a server gives pages to many sequences
//! as they grow, so that those of one lie anywhere. All of them are read as one step of
//! decoding reads them, but summed and not multiplied: this is the traffic of attention
//! without its arithmetic.

use serde_json::json;

use super::chunks::{self, Chunks, DefaultSize};
use super::plan::{Arg, Body, Buffer, Launch, Plan, Work};
use super::stream::BLOCKS_PER_UNIT;
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Pattern, PlanError, Profile};

/// Array `a` holds the sequence with this seed and `a`.
const SEED: u32 = 0x5EED_06A7;
const ORDER_SEED: u32 = 0x5EED_0BDE;

/// Tokens of a page, by the default of vLLM (`block_size`).
const TOKENS_PER_PAGE: u64 = 16;
/// 16 tokens x 1, 4 and 16 heads of 128 elements of 2 bytes: what one of 8 cards, or one
/// alone, reads of models with 8 to 16 heads of keys.
const PAGES: [u64; 3] = [4096, 16384, 65536];

const BLOCK: u64 = 256;
/// Accesses that a thread of `gather_read` has in flight.
const READ_UNROLL: u64 = 8;
/// Vectors that a thread of `gather_kv` has in flight of each array.
const KV_UNROLL: u64 = 8;
const VECTOR_BYTES: u64 = 16;
/// What a block reads with one vector a thread: pages consist of them.
const SLAB_BYTES: u64 = BLOCK * VECTOR_BYTES;

/// The gather pattern.
pub struct Gather;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Kv,
}

impl Operation {
    const fn arrays(self) -> u64 {
        match self {
            Self::Read => 1,
            Self::Kv => 2,
        }
    }

    /// The CUDA kernel, the bytes of its accesses, and those that a thread has in flight.
    const fn kernel(self, chunk_bytes: u64) -> (&'static str, u64, u64) {
        match (self, chunk_bytes) {
            (Self::Read, 4) => ("gather_read_4", 4, READ_UNROLL),
            (Self::Read, 8) => ("gather_read_8", 8, READ_UNROLL),
            (Self::Read, _) => ("gather_read_16", VECTOR_BYTES, READ_UNROLL),
            (Self::Kv, _) => ("gather_kv", VECTOR_BYTES, KV_UNROLL),
        }
    }
}

impl Pattern for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn summary(&self) -> &'static str {
        "reads from random places: chunks, and the pages of a key-value cache"
    }

    fn ids(&self, profile: Profile, kind: DeviceKind) -> Vec<String> {
        let pages = PAGES.iter().filter(|_| profile != Profile::Quick).map(|page| format!("gather/kv/{page}"));
        chunks::ids("gather/read", profile, kind).into_iter().chain(pages).collect()
    }

    fn trials(&self) -> &'static [&'static str] {
        &["gather/read/4@640000", "gather/read/8@640000", "gather/read/16@640000", "gather/read/256@640000", "gather/kv/4096@409600"]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let unknown = || PlanError::Unknown(format!("'{id}' is not gather/read/<chunk bytes> or gather/kv/<page bytes>"));
        let (operation, chunk) = match id.parts()[..] {
            ["read", chunk] => (Operation::Read, chunks::power_of_two(id, chunk, "a chunk", 4)),
            ["kv", page] => (Operation::Kv, chunks::power_of_two(id, page, "a page", SLAB_BYTES)),
            _ => return Err(unknown()),
        };
        let chunk_bytes = chunk.ok_or_else(unknown)??;
        let default = if operation == Operation::Kv { DefaultSize::AsStreams } else { DefaultSize::OneGib };
        let (chunks, notes) = Chunks::new(id, facts, operation.arrays(), chunk_bytes, default)?;

        let mut parameters = match operation {
            Operation::Read => chunks.parameters("chunk_bytes", "chunks"),
            Operation::Kv => chunks.parameters("page_bytes", "pages"),
        };
        if operation == Operation::Kv {
            parameters.insert("tokens".into(), json!(chunks.count * TOKENS_PER_PAGE));
        }
        let access_bytes = match facts.kind {
            DeviceKind::Cuda => chunks::access_bytes(chunk_bytes),
            DeviceKind::Host => chunk_bytes,
        };
        Ok(Case {
            id: id.clone(),
            level: Level::of(chunks.footprint_bytes(), facts.cache_bytes),
            parameters,
            bytes: Bytes {
                requested_read: chunks.requested_bytes(),
                requested_write: 0,
                compulsory: chunks.compulsory_bytes(),
                issued: Some(chunks.issued_bytes(access_bytes)),
                dram: None,
            },
            flops: 0,
            compute_pipe: None,
            accesses: None,
            report: None,
            ways: None,
            notes,
            plan: plan(operation, chunks, facts),
        })
    }
}

fn plan(operation: Operation, chunks: Chunks, facts: &Facts) -> Plan {
    let (entry, access_bytes, unroll) = operation.kernel(chunks.chunk_bytes);
    let arrays = operation.arrays();
    let tile_bytes = BLOCK * access_bytes * unroll;
    let name = if operation == Operation::Kv { "gather_kv" } else { "gather_read" };
    let (kernel, grid, body) = match facts.kind {
        DeviceKind::Host => (name, facts.units, None),
        DeviceKind::Cuda => {
            let tiles = (chunks.count * chunks.chunk_bytes).div_ceil(tile_bytes);
            let grid = tiles.min(u64::from(facts.units) * u64::from(BLOCKS_PER_UNIT)) as u32;
            let load_bytes = unroll * (4 + arrays * access_bytes);
            (entry, grid, Some(Body { load_bytes: load_bytes as u32, store_bytes: 0 }))
        }
    };
    let count = Arg::U64(chunks.count);
    let [chunk_words, pitch_words, tile_words] = [chunks.chunk_bytes, chunks.pitch_bytes, tile_bytes].map(|bytes| Arg::U64(bytes / 4));
    // Sums, arrays, index.
    let mut buffers = vec![Buffer::output(u64::from(grid) * 8)];
    buffers.extend((0..arrays).map(|a| Buffer::words(chunks.array_bytes(), SEED + a as u32)));
    buffers.push(Buffer::permutation(chunks.count, ORDER_SEED));
    let mut args: Vec<Arg> = (0..buffers.len()).map(Arg::Buffer).collect();
    args.extend([count, chunk_words]);
    // Pages follow each other without a gap.
    args.extend((operation == Operation::Read).then_some(pitch_words));
    let launch = |kernel, args, body| Launch { module: "gather", kernel, grid, block: BLOCK as u32, args, body };
    let check = vec![
        Arg::Buffer(0),
        count,
        chunk_words,
        pitch_words,
        tile_words,
        Arg::U32(arrays as u32),
        Arg::U32(ORDER_SEED),
        Arg::U32(SEED),
        Arg::Data,
        Arg::Status,
    ];
    Plan {
        // Block by block, as the kernel summed them.
        compared: u64::from(grid),
        work: Work::Kernel(launch(kernel, args, body)),
        check: launch("check_gather", check, None),
        buffers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(id: &str) -> Case {
        Gather.case(&CaseId::new(id), &Facts::H200).unwrap()
    }

    fn work(case: &Case) -> &Launch {
        let Work::Kernel(launch) = &case.plan.work else { unreachable!() };
        launch
    }

    #[test]
    fn a_chunk_below_a_sector_costs_a_whole_one() {
        let c = case("gather/read/4");
        assert_eq!((c.bytes.requested(), c.parameters["index_bytes"].as_u64()), ((1 << 30) / 8, Some((1 << 30) / 8)));
        assert_eq!(c.bytes.compulsory, (1 << 30) + (1 << 30) / 8);
        assert_eq!(case("gather/read/32").bytes.requested(), 1 << 30);
    }

    #[test]
    fn the_key_value_cache_is_as_large_as_the_arrays_of_streams_and_counts_both() {
        let c = case("gather/kv/16384");
        let array = 64 * (60 << 20);
        assert_eq!(c.bytes.requested(), 2 * array);
        assert_eq!(c.parameters["pages"], array / 16384);
        assert_eq!(c.parameters["tokens"], array / 16384 * 16);
        assert_eq!(c.bytes.compulsory, 2 * array + array / 16384 * 4);
    }

    #[test]
    fn what_is_issued_is_the_body_as_often_as_threads_pass_through_it() {
        for id in Gather.ids(Profile::Full, DeviceKind::Cuda) {
            let c = case(&id);
            let launch = work(&c);
            let (_, access, unroll) = if id.contains("/kv/") {
                Operation::Kv.kernel(0)
            } else {
                Operation::Read.kernel(c.parameters["chunk_bytes"].as_u64().unwrap())
            };
            let arrays = if id.contains("/kv/") { 2 } else { 1 };
            let passes = c.bytes.requested_read as f64 / (access * unroll * arrays) as f64;
            assert_eq!(c.bytes.issued.unwrap() as f64, passes * f64::from(launch.body.unwrap().load_bytes), "{id}");
        }
    }

    #[test]
    fn the_kernels_divide_by_the_same_numbers() {
        let source = include_str!("../../kernels/gather.cu");
        for (name, value) in [("BLOCK", BLOCK), ("READ_UNROLL", READ_UNROLL), ("KV_UNROLL", KV_UNROLL)] {
            assert!(source.contains(&format!("const u32 {name} = {value};")), "{name}");
        }
        assert!(source.contains("SLAB_WORDS = BLOCK * 4;"));
    }

    /// Also of more than 2^32 words.
    #[test]
    fn every_block_has_a_tile_and_every_tile_a_block() {
        for id in [
            "gather/read/4@32",
            "gather/read/64@640000",
            "gather/read/32@68719476736",
            "gather/kv/4096@4096",
            "gather/kv/65536@34359738368",
        ] {
            let c = case(id);
            let launch = work(&c);
            let Arg::U64(tile_words) = c.plan.check.args[4] else { unreachable!() };
            let tiles = (c.bytes.requested() / 4 / if id.contains("/kv/") { 2 } else { 1 }).div_ceil(tile_words);
            assert!(launch.grid >= 1 && u64::from(launch.grid) <= tiles, "{id}");
            assert_eq!((launch.grid, u64::from(launch.grid)), (c.plan.check.grid, c.plan.compared), "{id}");
        }
    }

    #[test]
    fn ids_of_nothing_and_sizes_that_cannot_be_are_told_apart() {
        let refused = |id: &str| Gather.case(&CaseId::new(id), &Facts::H200).unwrap_err();
        for id in ["gather", "gather/read", "gather/write/4", "gather/read/x", "gather/kv/4096/2"] {
            assert!(matches!(refused(id), PlanError::Unknown(_)), "{id}");
        }
        assert!(matches!(refused("gather/kv/2048"), PlanError::Invalid(why) if why.contains("4096 would be")));
        assert!(matches!(refused("gather/read/64@100"), PlanError::Invalid(why) if why.contains("@64 would be")));
        assert!(matches!(refused("gather/read/64@most"), PlanError::Invalid(_)));
    }

    #[test]
    fn only_full_measures_half_of_the_memory_and_only_of_a_card() {
        let halves = |profile, kind| Gather.ids(profile, kind).iter().filter(|id| id.ends_with("@half")).count();
        assert_eq!(halves(Profile::Full, DeviceKind::Cuda), chunks::STANDARD.len());
        assert_eq!(halves(Profile::Standard, DeviceKind::Cuda) + halves(Profile::Full, DeviceKind::Host), 0);
        assert!(Gather.ids(Profile::Quick, DeviceKind::Cuda).is_empty());
    }
}
