//! Where the chunks of `gather` and `scatter` lie: how large they are, how far apart,
//! how many, and what the index costs that says where each is.

use super::size::{Sizing, default_size, room_bytes, size_of};
use super::{CaseId, DeviceKind, Facts, Parameters, PlanError};

/// A place in an index.
const PLACE_BYTES: u64 = 4;
/// The most that such places can tell apart.
const COUNT_MAX: u64 = 1 << 32;
/// What a GPU's chunks take together when the user names no size: on every card the same,
/// so that the reach of its address translation is put to one test, and several times the
/// last cache of any card yet.
const CUDA_ARRAY_BYTES: u64 = 1 << 30;
/// The size that is half of the free memory, with the index.
const HALF: &str = "half";
/// Larger chunks are a contiguous pass.
const CHUNK_BYTES_MAX: u64 = 1 << 30;

/// Chunks in each of one or more arrays, all of them ordered by one index.
///
/// Each chunk has sectors of its own: those smaller than a sector lie one in each, at its
/// beginning. So every sector of an array is touched by one chunk, and what a cache kept
/// of it would serve no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks {
    /// What a chunk holds.
    pub chunk_bytes: u64,
    /// From the beginning of one chunk to that of the next in memory.
    pub pitch_bytes: u64,
    /// How many there are in each array.
    pub count: u64,
    sector_bytes: u64,
    arrays: u64,
}

/// The length of arrays when the user names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultSize {
    /// 1 GiB on CUDA.
    OneGib,
    /// As of contiguous passes, to be compared with them.
    AsStreams,
}

impl Chunks {
    /// The chunks of `chunk_bytes`, a power of two, in so many arrays of the case's size, and
    /// what bounds the trust in that size.
    ///
    /// # Errors
    /// When the size cannot be, or arrays and index do not fit.
    pub fn new(id: &CaseId, facts: &Facts, arrays: u64, chunk_bytes: u64, default: DefaultSize) -> Result<(Self, Vec<String>), PlanError> {
        let sector_bytes = facts.kind.sector_bytes();
        let pitch_bytes = chunk_bytes.max(sector_bytes);
        // Chunks for which there is room, with their places.
        let room_for = |bytes: u64| bytes / (arrays * pitch_bytes + PLACE_BYTES);
        let enough = room_for(facts.free_bytes / 10 * 6) >= CUDA_ARRAY_BYTES / pitch_bytes;
        let sizing = match (id.size(), default) {
            (Some(HALF), _) => {
                let bytes_each = to_five_bits(room_for(facts.free_bytes / 2).min(COUNT_MAX) * pitch_bytes);
                let capped = room_for(facts.free_bytes / 2) > COUNT_MAX;
                let note = || format!("less than half of the memory: {bytes_each} bytes are all chunks that places of 32 bits tell apart");
                Sizing { bytes_each, notes: capped.then(note).into_iter().collect() }
            }
            (None, DefaultSize::OneGib) if facts.kind == DeviceKind::Cuda && enough => {
                Sizing { bytes_each: CUDA_ARRAY_BYTES, notes: Vec::new() }
            }
            (None, _) => default_size(facts, arrays)?,
            (Some(_), _) => size_of(id, facts, arrays, pitch_bytes)?,
        };
        let count = sizing.bytes_each / pitch_bytes;
        if count == 0 {
            return Err(PlanError::Invalid(format!("'{id}': no chunk of {pitch_bytes} bytes fits into {} bytes", sizing.bytes_each)));
        }
        if count > COUNT_MAX {
            return Err(PlanError::Invalid(format!(
                "'{id}': an index of 32-bit places orders up to 2^32 chunks and these are {count}; @{} would be the most",
                COUNT_MAX * pitch_bytes
            )));
        }
        if count > room_for(room_bytes(facts)) {
            return Err(PlanError::TooLarge(format!(
                "'{id}' needs {} MiB with the index, and {} MiB are free, of which a tenth is left to others; choose a smaller size after '@', or none for the default",
                (count * (arrays * pitch_bytes + PLACE_BYTES)) >> 20,
                facts.free_bytes >> 20
            )));
        }
        Ok((Self { chunk_bytes, pitch_bytes, count, sector_bytes, arrays }, sizing.notes))
    }

    /// The length of each array.
    pub fn array_bytes(&self) -> u64 {
        self.count * self.pitch_bytes
    }

    /// The length of the index.
    pub fn index_bytes(&self) -> u64 {
        self.count * PLACE_BYTES
    }

    /// What all chunks of all arrays hold.
    pub fn requested_bytes(&self) -> u64 {
        self.count * self.chunk_bytes * self.arrays
    }

    /// What must cross the memory bus: all sectors of the arrays, and those of the index.
    pub fn compulsory_bytes(&self) -> u64 {
        self.array_bytes() * self.arrays + self.index_bytes().next_multiple_of(self.sector_bytes)
    }

    /// What all buffers hold together.
    pub fn footprint_bytes(&self) -> u64 {
        self.array_bytes() * self.arrays + self.index_bytes()
    }

    /// What is loaded or stored where each access of `access_bytes` to each array comes with the
    /// load of a place.
    pub fn issued_bytes(&self, access_bytes: u64) -> u64 {
        let accesses = self.count * (self.chunk_bytes / access_bytes);
        accesses * (self.arrays * access_bytes + PLACE_BYTES)
    }

    /// The parameters that fix them; `chunk` and `chunks` are what the pattern calls them.
    pub fn parameters(&self, chunk: &str, chunks: &str) -> Parameters {
        let named = [
            (chunk, self.chunk_bytes),
            (chunks, self.count),
            ("array_bytes", self.array_bytes()),
            ("index_bytes", self.index_bytes()),
            ("sector_bytes", self.sector_bytes),
        ];
        named.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
}

/// Rounded down to five significant bits: the free memory of a card changes a little from
/// run to run, and the size of a case should not.
fn to_five_bits(bytes: u64) -> u64 {
    let low = bytes.checked_ilog2().unwrap_or_default().saturating_sub(4);
    bytes >> low << low
}

/// A size among the parts of an id: a power of two of at least `least` bytes.
///
/// # Errors
/// [`PlanError::Invalid`] for another number, with one that would do; none for other text.
pub fn power_of_two(id: &CaseId, text: &str, what: &str, least: u64) -> Option<Result<u64, PlanError>> {
    let bytes: u64 = text.parse().ok().filter(|n: &u64| n.to_string() == text)?;
    let valid = bytes.is_power_of_two() && (least..=CHUNK_BYTES_MAX).contains(&bytes);
    let next = bytes.clamp(least, CHUNK_BYTES_MAX).next_power_of_two();
    Some(if valid {
        Ok(bytes)
    } else {
        Err(PlanError::Invalid(format!("'{id}': {what} is a power of two from {least} to {CHUNK_BYTES_MAX} bytes; {next} would be")))
    })
}

/// The bytes of one access to chunks of this size: 16, or the whole chunk.
pub fn access_bytes(chunk_bytes: u64) -> u64 {
    chunk_bytes.min(16)
}

/// Chunks that the profile `standard` measures, and `full` in half of the memory too: one
/// element, one sector, and what lies on the way to a page.
pub const STANDARD: [u64; 6] = [4, 32, 64, 128, 512, 4096];

/// The ids of a sweep of chunks.
pub fn ids(name: &str, profile: super::Profile, kind: DeviceKind) -> Vec<String> {
    let of = |chunks: &[u64], size: &str| chunks.iter().map(|chunk| format!("{name}/{chunk}{size}")).collect::<Vec<_>>();
    match profile {
        super::Profile::Quick => Vec::new(),
        super::Profile::Standard => of(&STANDARD, ""),
        super::Profile::Full => {
            let mut ids = of(&(2..=12).map(|log| 1 << log).collect::<Vec<_>>(), "");
            // A quarter of an hour on a host.
            if kind == DeviceKind::Cuda {
                ids.extend(of(&STANDARD, &format!("@{HALF}")));
            }
            ids
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::permutation::Permutation;
    use proptest::prelude::*;

    fn chunks(id: &str, facts: &Facts, chunk_bytes: u64) -> Result<Chunks, PlanError> {
        Chunks::new(&CaseId::new(id), facts, 1, chunk_bytes, DefaultSize::OneGib).map(|(chunks, _)| chunks)
    }

    #[test]
    fn a_gpus_chunks_lie_in_one_gib_and_each_has_sectors_of_its_own() {
        for chunk in [4, 16, 32, 64, 4096] {
            let c = chunks("gather/read/1", &Facts::H200, chunk).unwrap();
            assert_eq!(c.array_bytes(), 1 << 30);
            assert_eq!(c.count, (1 << 30) / chunk.max(32));
            assert_eq!(c.requested_bytes(), c.count * chunk);
            assert_eq!(c.compulsory_bytes(), (1 << 30) + c.count * 4);
        }
    }

    #[test]
    fn each_lane_of_a_chunk_loads_its_place() {
        let c = chunks("gather/read/64", &Facts::H200, 64).unwrap();
        assert_eq!(c.issued_bytes(16), c.requested_bytes() / 16 * 20);
        let c = chunks("gather/read/4", &Facts::H200, 4).unwrap();
        assert_eq!(c.issued_bytes(4), c.requested_bytes() + c.index_bytes());
    }

    #[test]
    fn half_is_arrays_and_index_together_and_the_same_from_run_to_run() {
        for chunk in STANDARD {
            let c = chunks("gather/read/1@half", &Facts::H200, chunk).unwrap();
            let fraction = c.footprint_bytes() as f64 / Facts::H200.free_bytes as f64;
            assert!((0.46..=0.5).contains(&fraction), "{chunk}: {fraction}");
            let a_little_less = Facts { free_bytes: Facts::H200.free_bytes - (50 << 20), ..Facts::H200 };
            assert_eq!(chunks("gather/read/1@half", &a_little_less, chunk), Ok(c));
        }
    }

    #[test]
    fn a_card_without_room_for_one_gib_gets_less() {
        let small = Facts { free_bytes: 1 << 30, cache_bytes: Some(2 << 20), ..Facts::H200 };
        let c = chunks("gather/read/4", &small, 4).unwrap();
        assert!(c.array_bytes() < 1 << 30 && c.footprint_bytes() <= (1 << 30) / 10 * 9);
    }

    #[test]
    fn more_chunks_than_a_place_has_bits_are_refused_with_the_most_that_can_be() {
        let large = Facts { free_bytes: 1 << 40, ..Facts::H200 };
        assert_eq!(chunks("gather/read/4@137438953472", &large, 4).unwrap().count, 1 << 32);
        let e = chunks("gather/read/4@137438953504", &large, 4).unwrap_err().to_string();
        assert!(e.contains("@137438953472 would be the most"), "{e}");
    }

    #[test]
    fn an_array_that_fits_only_without_its_index_is_refused() {
        let facts = Facts { free_bytes: 1 << 30, ..Facts::H200 };
        let bytes = (1u64 << 30) / 10 * 9 / 32 * 32;
        assert!(
            matches!(chunks(&format!("gather/read/4@{bytes}"), &facts, 4), Err(PlanError::TooLarge(why)) if why.contains("with the index"))
        );
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_with_one_that_can() {
        let id = CaseId::new("gather/read/48");
        let refused = |text, least| power_of_two(&id, text, "a chunk", least).unwrap().unwrap_err().to_string();
        assert!(refused("48", 4).contains("64 would be"));
        assert!(refused("0", 4).contains("; 4 would be"));
        assert!(refused("2", 4).contains("; 4 would be"));
        assert!(refused("18446744073709551615", 4).contains("; 1073741824 would be"));
        assert_eq!(power_of_two(&id, "064", "a chunk", 4), None);
        assert_eq!(power_of_two(&id, "64", "a chunk", 4), Some(Ok(64)));
    }

    /// Places that `place_of` of `kernels/common.cuh` gave, compiled for a processor.
    #[test]
    fn the_order_is_that_of_the_kernels() {
        let of = |places: u64| [0, 1, places - 2, places - 1].map(|index| Permutation::new(places, 3).place(index));
        assert_eq!(of(1000), [878, 234, 444, 186]);
        assert_eq!(of(1 << 32), [1_716_062_512, 1_350_061_648, 3_498_627_185, 1_161_532_204]);
        assert_eq!(of((1 << 32) + 5), [2_228_782_314, 4_238_841_847, 176_702_292, 2_201_993_364]);
    }

    #[test]
    fn the_order_has_no_constant_stride_and_asks_for_every_part_of_the_memory_all_the_time() {
        for places in [100_003u64, 1 << 18] {
            let order = Permutation::new(places, 0x5EED_0001);
            let all: Vec<u64> = (0..places).map(|index| order.place(index)).collect();
            // A stride shows as a distance that comes often: by chance one comes ten times or so.
            let mut distances = std::collections::HashMap::<u64, u32>::new();
            all.windows(2).for_each(|pair| *distances.entry((pair[1] + places - pair[0]) % places).or_default() += 1);
            assert!(distances.values().all(|n| *n < 16), "{:?}", distances.values().max());
            for window in all.chunks_exact(4096) {
                let (mut parts, mut channels) = ([0u32; 16], [0u32; 16]);
                for place in window {
                    parts[(place * 16 / places) as usize] += 1;
                    channels[(place % 16) as usize] += 1;
                }
                // 256 each, with a deviation of 15.5.
                assert!(parts.iter().chain(&channels).all(|n| (170..345).contains(n)), "{parts:?} {channels:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn chunks_and_their_index_fit_the_memory_or_are_refused(free in 1u64 << 20..1 << 40, log_chunk in 2u32..30, size in prop::option::of(1u64..1 << 40)) {
            let facts = Facts { free_bytes: free, ..Facts::H200 };
            let id = size.map_or("gather/read/1".to_owned(), |size| format!("gather/read/1@{size}"));
            if let Ok(c) = chunks(&id, &facts, 1 << log_chunk) {
                prop_assert!(c.footprint_bytes() <= free / 10 * 9);
                prop_assert!((1..=1 << 32).contains(&c.count));
                prop_assert!(c.pitch_bytes.is_multiple_of(32));
            }
        }
    }
}
