//! Reads by a known number of multiprocessors or workers, each of which leaves a record; the same
//! numbers stand in `kernels/reading.cuh`.

use super::plan::Body;

/// Threads of a block. One block runs on each multiprocessor: its registers are more than half of those there.
pub(super) const BLOCK: u32 = 1024;
/// Threads of a warp.
pub(super) const WARP: u32 = 32;
/// Vectors of 16 bytes that a thread has in flight.
const UNROLL: u32 = 8;
/// What a warp reads at a time, and a host worker too, in bytes.
pub const TILE_BYTES: u64 = (WARP * UNROLL * 16) as u64;
/// Words of a record: a 64-bit sum of what was read, then another 64-bit figure; lower halves first.
pub const RECORD_WORDS: u64 = 4;
/// What one thread loads in one pass.
pub(super) const BODY: Body = Body { load_bytes: UNROLL * 16, store_bytes: 0 };

/// The second figure of each record.
pub(super) fn figures(records: &[u32]) -> impl Iterator<Item = u64> {
    records.chunks_exact(RECORD_WORDS as usize).map(|record| u64::from(record[2]) | u64::from(record[3]) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_divide_by_the_same_numbers() {
        let source = include_str!("../../kernels/reading.cuh");
        assert!(source.contains(&format!("const u32 READING_BLOCK = {BLOCK};")));
        assert!(source.contains(&format!("const u32 READING_UNROLL = {UNROLL};")));
    }

    #[test]
    fn the_second_figure_of_a_record_has_64_bits() {
        assert_eq!(figures(&[9, 9, 7, 0, 9, 9, 1, 2]).collect::<Vec<_>>(), [7, (2 << 32) + 1]);
    }
}
