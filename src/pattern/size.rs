//! How large the buffers of a memory case are.

use super::{CaseId, DeviceKind, Facts, PlanError};

const MIB: u64 = 1 << 20;

/// Buffer lengths are multiples of this, so that every vector width and unroll
/// divides the default sizes.
const GRANULE: u64 = 64 << 10;

/// A GPU buffer of this many times L2 leaves the cache 1.6 % of the traffic at most.
const CUDA_CACHE_MULTIPLE: u64 = 64;
/// Below this many times L2 a bandwidth would be part cache: no default goes there.
const CUDA_CACHE_MULTIPLE_MIN: u64 = 8;
/// An L2 assumed where the driver names none: larger than any card's yet.
const CUDA_CACHE_ASSUMED: u64 = 128 * MIB;

/// All host buffers together, as a multiple of the last cache.
const HOST_CACHE_MULTIPLE: u64 = 4;
/// Virtual machines report caches of hundreds of MiB that they share with others:
/// beyond this the run would only become slow.
const HOST_TOTAL_MAX: u64 = 2048 * MIB;
/// Smaller than this and timer and thread start-up would be part of the figure.
const HOST_TOTAL_MIN: u64 = 64 * MIB;

/// The length of each buffer of a case, and what to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizing {
    /// Bytes of each of the equal buffers.
    pub bytes_each: u64,
    /// What bounds the trust in the figure, if anything does.
    pub notes: Vec<String>,
}

/// The length of each of `arrays` equal buffers when the user names none.
///
/// CUDA: 64 x L2 each, all together at most 60 % of the free memory, never under
/// 8 x L2. Host: 4 x the last cache all together, at most 2 GiB and a quarter of
/// the free memory.
///
/// # Errors
/// [`PlanError::TooLarge`] when the free memory does not hold the least useful size.
pub fn default_size(facts: &Facts, arrays: u64) -> Result<Sizing, PlanError> {
    let mut notes = Vec::new();
    // What each array should have, and what it can have.
    let (wanted, room) = match facts.kind {
        DeviceKind::Cuda => {
            let cache = facts.cache_bytes.unwrap_or_else(|| {
                notes.push(format!("L2 size unknown: {} MiB assumed", CUDA_CACHE_ASSUMED / MIB));
                CUDA_CACHE_ASSUMED
            });
            let room = facts.free_bytes / 10 * 6 / arrays;
            let least = cache * CUDA_CACHE_MULTIPLE_MIN;
            if room < least {
                return Err(too_little(facts.free_bytes, least * arrays * 10 / 6));
            }
            (cache * CUDA_CACHE_MULTIPLE, room)
        }
        DeviceKind::Host => {
            let room = (facts.free_bytes / 4).min(HOST_TOTAL_MAX);
            if room < HOST_TOTAL_MIN {
                return Err(too_little(facts.free_bytes, HOST_TOTAL_MIN * 4));
            }
            let wanted = facts.cache_bytes.map_or(room, |cache| cache.saturating_mul(HOST_CACHE_MULTIPLE).max(HOST_TOTAL_MIN));
            match facts.cache_bytes {
                Some(cache) if wanted > room => notes.push(format!(
                    "buffers capped at {} MiB beside a last-level cache of {} MiB: up to {:.0} % of the accesses may have been served from it",
                    room / MIB,
                    cache / MIB,
                    (cache as f64 / room as f64 * 100.0).min(100.0)
                )),
                _ => {}
            }
            (wanted.div_ceil(arrays), room / arrays)
        }
    };
    // Rounded up, so that the arrays together are no less than the multiple of the cache.
    let bytes_each = wanted.checked_next_multiple_of(GRANULE).unwrap_or(u64::MAX).min(room / GRANULE * GRANULE);
    Ok(Sizing { bytes_each, notes })
}

/// The length of each of `arrays` buffers: the id's own size, or the default.
///
/// # Errors
/// [`PlanError::Invalid`] when the id's size is not a positive multiple of
/// `element_bytes`; [`PlanError::TooLarge`] when the buffers do not fit.
pub fn size_of(id: &CaseId, facts: &Facts, arrays: u64, element_bytes: u64) -> Result<Sizing, PlanError> {
    let Some(text) = id.size() else {
        return default_size(facts, arrays);
    };
    let bytes: u64 = text.parse().map_err(|_| PlanError::Invalid(format!("'{id}': '{text}' is not a number of bytes")))?;
    if *text != bytes.to_string() {
        return Err(PlanError::Invalid(format!("'{id}': write the size as @{bytes}")));
    }
    if bytes == 0 || !bytes.is_multiple_of(element_bytes) {
        let down = (bytes / element_bytes * element_bytes).max(element_bytes);
        return Err(PlanError::Invalid(format!(
            "'{id}': {bytes} bytes are not a positive whole number of {element_bytes}-byte elements; @{down} would be"
        )));
    }
    let total = bytes
        .checked_mul(arrays)
        .ok_or_else(|| PlanError::Invalid(format!("'{id}': {arrays} buffers of {bytes} bytes overflow a 64-bit size")))?;
    // A tenth stays free for the context, the program itself and whoever else is here.
    if total > facts.free_bytes / 10 * 9 {
        return Err(PlanError::TooLarge(format!(
            "'{id}' needs {arrays} buffers of {bytes} bytes, {} MiB together, and {} MiB are free, of which a tenth is left to others; choose a smaller size after '@', or none for the default",
            total / MIB,
            facts.free_bytes / MIB
        )));
    }
    Ok(Sizing { bytes_each: bytes, notes: Vec::new() })
}

/// The numbers of a text such as `3x4x5`; none when one is not written as numbers are: one
/// spelling for one case, so no signs and no leading zeros.
pub(super) fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split('x').map(|part| part.parse::<u64>().ok().filter(|n| n.to_string() == part)).collect()
}

fn too_little(free: u64, needed: u64) -> PlanError {
    PlanError::TooLarge(format!(
        "too little free memory for a meaningful figure: {} MiB are free and {} MiB are needed; end other programs here, raise the limit of the container, or name a smaller size after '@' (the row then shows the cache)",
        free / MIB,
        needed.div_ceil(MIB)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200(free_gib: u64) -> Facts {
        Facts { free_bytes: free_gib << 30, ..Facts::H200 }
    }

    fn host(cache: Option<u64>, free: u64) -> Facts {
        Facts { cache_bytes: cache, free_bytes: free, ..Facts::HOST }
    }

    #[test]
    fn a_gpu_buffer_is_64_times_l2() {
        assert_eq!(default_size(&h200(139), 3).unwrap().bytes_each, 3840 * MIB);
    }

    #[test]
    fn gpu_buffers_shrink_to_60_percent_of_the_free_memory() {
        let each = default_size(&h200(10), 3).unwrap().bytes_each;
        assert!(each * 3 <= (10 << 30) / 10 * 6);
        assert!(each >= 8 * 60 * MIB);
    }

    #[test]
    fn a_gpu_buffer_is_never_under_eight_times_l2() {
        assert!(matches!(default_size(&h200(2), 3), Err(PlanError::TooLarge(_))));
    }

    #[test]
    fn host_buffers_together_are_four_times_the_cache() {
        let s = default_size(&host(Some(32 * MIB), 64 << 30), 2).unwrap();
        assert_eq!(s.bytes_each, 64 * MIB);
        assert!(s.notes.is_empty());
    }

    #[test]
    fn uncapped_host_buffers_are_never_less_than_the_multiple_of_the_cache() {
        for cache_mib in [1, 3, 7, 32, 33, 105, 480] {
            for arrays in 1..=3 {
                let s = default_size(&host(Some(cache_mib * MIB), 64 << 30), arrays).unwrap();
                assert!(s.notes.is_empty() && s.bytes_each * arrays >= 4 * cache_mib * MIB, "{cache_mib} MiB, {arrays} arrays");
            }
        }
    }

    #[test]
    fn a_capped_host_buffer_says_how_much_the_cache_may_have_served() {
        let s = default_size(&host(Some(1024 * MIB), 64 << 30), 2).unwrap();
        assert_eq!(s.bytes_each * 2, 2048 * MIB);
        assert!(s.notes[0].contains("50 %"), "{:?}", s.notes);
    }

    #[test]
    fn an_unknown_host_cache_takes_all_the_room_there_is() {
        let s = default_size(&host(None, 4 << 30), 2).unwrap();
        assert_eq!(s.bytes_each * 2, 1024 * MIB);
    }

    #[test]
    fn too_little_memory_is_refused_with_both_figures() {
        let e = default_size(&host(None, 100 * MIB), 2).unwrap_err().to_string();
        assert!(e.contains("100 MiB are free") && e.contains("256 MiB are needed"), "{e}");
    }

    #[test]
    fn a_size_that_splits_an_element_is_refused_with_the_next_lower_one() {
        let e = size_of(&CaseId::new("stream/copy/f32@1003"), &host(None, 4 << 30), 2, 4).unwrap_err().to_string();
        assert!(e.contains("@1000 would be"), "{e}");
    }

    #[test]
    fn sizes_beyond_four_gib_and_64_bits_are_handled() {
        let facts = h200(139);
        let id = CaseId::new("stream/copy/f32@8589934596");
        assert_eq!(size_of(&id, &facts, 2, 4).unwrap().bytes_each, 8_589_934_596);
        let id = CaseId::new("stream/copy/f32@18446744073709551612");
        assert!(matches!(size_of(&id, &facts, 2, 4), Err(PlanError::Invalid(_))));
        let id = CaseId::new("stream/copy/f32@184467440737095516160");
        assert!(matches!(size_of(&id, &facts, 2, 4), Err(PlanError::Invalid(_))));
    }

    #[test]
    fn a_named_size_must_leave_a_tenth_of_the_memory_free() {
        let id = CaseId::new(&format!("stream/copy/f32@{}", 2u64 << 30));
        assert!(matches!(size_of(&id, &host(None, 4 << 30), 2, 4), Err(PlanError::TooLarge(_))));
    }
}
