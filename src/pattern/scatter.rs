//! `scatter`: writes to places that an index names, a random order of all chunks.
//!
//! What is stored is a function of the position, so nothing but the index is read. It is no
//! part of the requested bytes; the compulsory ones count it once, the issued ones as often
//! as it is loaded. What the memory must read to complete partly written sectors is not counted.

use super::chunks::{self, Chunks, DefaultSize};
use super::plan::{Arg, Body, Buffer, Launch, Plan, Work};
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Pattern, PlanError, Profile};

const SEED: u32 = 0x5EED_05CA;
const ORDER_SEED: u32 = 0x5EED_0BDF;

const BLOCK: u64 = 256;
/// Accesses of a thread.
const UNROLL: u64 = 4;

/// The scatter pattern.
pub struct Scatter;

impl Pattern for Scatter {
    fn name(&self) -> &'static str {
        "scatter"
    }

    fn summary(&self) -> &'static str {
        "writes chunks to random places"
    }

    fn ids(&self, profile: Profile, kind: DeviceKind) -> Vec<String> {
        chunks::ids("scatter/write", profile, kind)
    }

    fn trials(&self) -> &'static [&'static str] {
        &["scatter/write/4@640000", "scatter/write/8@640000", "scatter/write/16@640000", "scatter/write/256@640000"]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let unknown = || PlanError::Unknown(format!("'{id}' is not scatter/write/<chunk bytes>"));
        let ["write", chunk] = id.parts()[..] else { return Err(unknown()) };
        let chunk_bytes = chunks::power_of_two(id, chunk, "a chunk", 4).ok_or_else(unknown)??;
        let (chunks, notes) = Chunks::new(id, facts, 1, chunk_bytes, DefaultSize::OneGib)?;
        let access_bytes = match facts.kind {
            DeviceKind::Cuda => chunks::access_bytes(chunk_bytes),
            DeviceKind::Host => chunk_bytes,
        };
        Ok(Case {
            id: id.clone(),
            level: Level::of(chunks.footprint_bytes(), facts.cache_bytes),
            parameters: chunks.parameters("chunk_bytes", "chunks"),
            bytes: Bytes {
                requested_read: 0,
                requested_write: chunks.requested_bytes(),
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
            plan: plan(chunks, facts).ok_or_else(|| {
                PlanError::Invalid(format!("'{id}' takes more blocks than a launch has; choose a smaller size after '@'"))
            })?,
        })
    }
}

/// The plan; none when there are more tiles than a launch has blocks.
fn plan(chunks: Chunks, facts: &Facts) -> Option<Plan> {
    let access_bytes = chunks::access_bytes(chunks.chunk_bytes);
    let (kernel, grid, body) = match facts.kind {
        DeviceKind::Host => ("scatter_write", facts.units, None),
        DeviceKind::Cuda => {
            let kernel = match access_bytes {
                4 => "scatter_write_4",
                8 => "scatter_write_8",
                _ => "scatter_write_16",
            };
            let tiles = chunks.requested_bytes().div_ceil(BLOCK * UNROLL * access_bytes);
            let body = Body { load_bytes: (UNROLL * 4) as u32, store_bytes: (UNROLL * access_bytes) as u32 };
            (kernel, i32::try_from(tiles).ok()?.cast_unsigned(), Some(body))
        }
    };
    let sizes = [chunks.count, chunks.chunk_bytes / 4, chunks.pitch_bytes / 4].map(Arg::U64);
    let launch = |kernel, grid, first: &[Arg], last: &[Arg], body| Launch {
        module: "scatter",
        kernel,
        grid,
        block: BLOCK as u32,
        args: [first, &sizes, last].concat(),
        body,
    };
    let check = [Arg::U32(ORDER_SEED), Arg::U32(SEED), Arg::Status];
    Some(Plan {
        buffers: vec![Buffer::output(chunks.array_bytes()), Buffer::permutation(chunks.count, ORDER_SEED)],
        work: Work::Kernel(launch(kernel, grid, &[Arg::Buffer(0), Arg::Buffer(1)], &[Arg::U32(SEED)], body)),
        check: launch("check_scatter", grid.min(facts.units.saturating_mul(8)), &[Arg::Buffer(0)], &check, None),
        compared: chunks.array_bytes() / 4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(id: &str) -> Case {
        Scatter.case(&CaseId::new(id), &Facts::H200).unwrap()
    }

    #[test]
    fn only_chunks_are_requested_and_the_index_is_read_beside_them() {
        let c = case("scatter/write/64");
        assert_eq!((c.bytes.requested_read, c.bytes.requested_write), (0, 1 << 30));
        assert_eq!(c.bytes.compulsory, (1 << 30) + (1 << 30) / 16);
        assert_eq!(c.bytes.issued, Some((1 << 30) / 16 * 20));
    }

    #[test]
    fn every_word_between_the_chunks_is_checked_too() {
        let c = case("scatter/write/4@3200");
        assert_eq!((c.bytes.requested(), c.plan.compared), (400, 800));
    }

    #[test]
    fn the_kernels_divide_by_the_same_numbers() {
        let source = include_str!("../../kernels/scatter.cu");
        assert!(source.contains(&format!("const u32 BLOCK = {BLOCK};")) && source.contains(&format!("const u32 UNROLL = {UNROLL};")));
    }

    /// Also of more than 2^32 words.
    #[test]
    fn one_tile_a_block_covers_every_access() {
        for id in ["scatter/write/4@32", "scatter/write/8@640000", "scatter/write/4@68719476736", "scatter/write/4096@68719476736"] {
            let c = case(id);
            let Work::Kernel(launch) = &c.plan.work else { unreachable!() };
            let tile_bytes = BLOCK * u64::from(launch.body.unwrap().store_bytes);
            assert_eq!(u64::from(launch.grid), c.bytes.requested().div_ceil(tile_bytes), "{id}");
        }
    }
}
