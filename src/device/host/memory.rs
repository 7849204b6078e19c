//! The memory that plans run in: one mapping, kept from case to case, so that the
//! system hands out (and clears) its pages once.

use std::ops::Range;

use memmap2::{MmapMut, MmapOptions};

use crate::device::{DeviceError, GUARD_WORDS};
use crate::pattern::Plan;

/// The smallest page of all systems that matter: buffers begin at multiples of it.
const PAGE: u64 = 4 << 10;
/// A huge page of x86-64 and of aarch64 with 4 KiB pages.
const HUGE_PAGE: u64 = 2 << 20;
const GUARD_BYTES: u64 = GUARD_WORDS * 4;
/// Mappings have multiples of this, so that cases of about one size, with buffers in
/// other numbers, share one: clearing the pages of 2 GiB takes up to 3 s.
const GRANULE: u64 = 64 << 20;

/// A mapping that grows when a plan needs more.
#[derive(Default)]
pub(super) struct Arena {
    map: Option<MmapMut>,
    /// The part that plans have used: the rest holds no pages yet.
    used_bytes: u64,
    huge_pages: bool,
}

impl Arena {
    /// Bytes of memory held now.
    pub fn held_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Whether the system was asked for huge pages and did not refuse.
    pub fn huge_pages(&self) -> bool {
        self.huge_pages
    }

    /// The regions of a plan's buffers, in its order. Their contents are whatever was there.
    ///
    /// `available_bytes` is what could be mapped on top of what is held. The system
    /// promises more memory than there is and ends programs that use it: a plan
    /// beyond that is refused here.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when the mapping fails or would be larger than that.
    pub fn carve(&mut self, plan: &Plan, available_bytes: u64) -> Result<Vec<Region>, DeviceError> {
        let (offsets, end) = layout(plan.buffers.iter().map(|b| b.bytes));
        // One more huge page, so that the first buffer can begin at a multiple of it.
        let needed = end.saturating_add(HUGE_PAGE);
        let room = available_bytes.saturating_add(self.used_bytes);
        if needed > room {
            return Err(refusal(needed, room, ""));
        }
        if needed > self.map.as_ref().map_or(0, |map| map.len() as u64) {
            self.grow(needed, room)?;
        }
        self.used_bytes = self.used_bytes.max(needed);
        let map = self.map.as_mut().ok_or_else(|| DeviceError::Failed("no memory was mapped".into()))?;
        let start = map.as_mut_ptr();
        let first = start.wrapping_add(start.align_offset(HUGE_PAGE as usize));
        let regions = plan.buffers.iter().zip(offsets);
        Ok(regions
            .map(|(buffer, offset)| Region { start: first.wrapping_add(offset as usize).cast(), words: (buffer.bytes / 4) as usize })
            .collect())
    }

    fn grow(&mut self, needed: u64, room: u64) -> Result<(), DeviceError> {
        // The old mapping goes first: both together might not fit.
        *self = Self::default();
        let length = usize::try_from(needed.next_multiple_of(GRANULE)).map_err(|e| refusal(needed, room, &format!("; {e}")))?;
        let map = MmapOptions::new().len(length).map_anon().map_err(|e| refusal(needed, room, &format!("; the system says: {e}")))?;
        #[cfg(target_os = "linux")]
        {
            self.huge_pages = map.advise(memmap2::Advice::HugePage).is_ok();
        }
        self.map = Some(map);
        Ok(())
    }
}

fn refusal(needed: u64, room: u64, why: &str) -> DeviceError {
    let mib = 1 << 20;
    DeviceError::OutOfMemory(format!("{} MiB of main memory are needed and {} MiB are free{why}", needed.div_ceil(mib), room / mib))
}

/// Where buffers of these lengths begin, with a guard on both sides of each, and where
/// the last guard ends.
fn layout(lengths: impl Iterator<Item = u64>) -> (Vec<u64>, u64) {
    let mut end = 0u64;
    let offsets = lengths
        .map(|length| {
            let align = if length >= HUGE_PAGE { HUGE_PAGE } else { PAGE };
            let offset = end.saturating_add(GUARD_BYTES).div_ceil(align).saturating_mul(align);
            end = offset.saturating_add(length).saturating_add(GUARD_BYTES);
            offset
        })
        .collect();
    (offsets, end)
}

/// One buffer of the plan that is loaded, or a guard beside one. The arena outlives it, and the arena is not
/// carved anew meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    start: *mut u32,
    words: usize,
}

// SAFETY: a region is an address and a length; whoever makes a slice of it vouches
// that no other thread writes there.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Words it holds.
    pub fn words(self) -> u64 {
        self.words as u64
    }

    /// What lies before and after it.
    pub fn guards(self) -> [Self; 2] {
        let words = GUARD_WORDS as usize;
        [self.start.wrapping_sub(words), self.start.wrapping_add(self.words)].map(|start| Self { start, words })
    }

    /// Itself and the guard after it.
    pub fn with_guard(self) -> Self {
        Self { words: self.words + GUARD_WORDS as usize, ..self }
    }

    /// The address of the words in `range`.
    fn part(self, range: Range<u64>) -> (*mut u32, usize) {
        assert!(range.start <= range.end && range.end <= self.words(), "words {range:?} of a buffer of {} words", self.words);
        (self.start.wrapping_add(range.start as usize), (range.end - range.start) as usize)
    }

    /// The address of a word.
    pub fn address<T: Word>(self, word: u64) -> *mut T {
        self.part(word..self.words()).0.cast()
    }

    /// The values in `range`, counted in values from the beginning of the region, which is aligned to them.
    ///
    /// # Safety
    /// Nobody writes them while the slice lives.
    pub unsafe fn slice<'a, T: Word>(self, range: Range<u64>) -> &'a [T] {
        let (start, words) = self.part(range.start * T::WORDS..range.end * T::WORDS);
        let length = words / T::WORDS as usize;
        debug_assert!(start.cast::<T>().is_aligned());
        // SAFETY: `part` has checked the range, mapped pages are initialised,
        // any bits are a valid T, and the caller vouches that nobody writes.
        unsafe { std::slice::from_raw_parts(start.cast(), length) }
    }

    /// The values in `range`, to write.
    ///
    /// # Safety
    /// Nobody else reads or writes them while the slice lives.
    pub unsafe fn slice_mut<'a, T: Word>(self, range: Range<u64>) -> &'a mut [T] {
        let (start, words) = self.part(range.start * T::WORDS..range.end * T::WORDS);
        let length = words / T::WORDS as usize;
        debug_assert!(start.cast::<T>().is_aligned());
        // SAFETY: `part` has checked the range, mapped pages are initialised,
        // any bits are a valid T, and the caller vouches that nobody else is here.
        unsafe { std::slice::from_raw_parts_mut(start.cast(), length) }
    }
}

/// Types of whole words of which every bit pattern is a value.
pub(super) trait Word: Copy {
    /// Words of one value.
    const WORDS: u64;
}
impl Word for u32 {
    const WORDS: u64 = 1;
}
impl Word for f32 {
    const WORDS: u64 = 1;
}
impl Word for f64 {
    const WORDS: u64 = 2;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::host::testing;
    use crate::pattern::Buffer;
    use proptest::prelude::*;

    fn plan(lengths: &[u64]) -> Plan {
        let buffers = lengths.iter().map(|&bytes| Buffer::output(bytes)).collect();
        Plan { buffers, ..testing::plan("stream/copy/f32@64", 1) }
    }

    proptest! {
        #[test]
        fn buffers_begin_at_pages_and_do_not_overlap(lengths in prop::collection::vec(1u64..5 << 20, 1..6)) {
            let (offsets, end) = layout(lengths.iter().copied());
            let mut free_from = 0;
            for (offset, length) in offsets.iter().zip(&lengths) {
                prop_assert!(offset.is_multiple_of(PAGE) && *offset >= free_from + GUARD_BYTES);
                free_from = offset + length + GUARD_BYTES;
            }
            prop_assert_eq!(end, free_from);
        }
    }

    #[test]
    fn large_buffers_begin_at_huge_pages() {
        let mut arena = Arena::default();
        let regions = arena.carve(&plan(&[8, 4 << 20, 4 << 20]), 1 << 30).unwrap();
        assert!(regions[1].start.addr().is_multiple_of(2 << 20) && regions[2].start.addr().is_multiple_of(2 << 20));
        assert_eq!(regions[1].words(), 1 << 20);
    }

    #[test]
    fn a_plan_that_fits_keeps_the_mapping() {
        let mut arena = Arena::default();
        let first = arena.carve(&plan(&[8 << 20]), 1 << 30).unwrap()[0].start;
        let held = arena.held_bytes();
        assert!((8 << 20..GRANULE).contains(&held));
        assert_eq!(arena.carve(&plan(&[4 << 20]), 0).unwrap()[0].start, first);
        assert_eq!(arena.held_bytes(), held);
        // A little more than before, of what is mapped already.
        assert_eq!(arena.carve(&plan(&[16 << 20]), 1 << 30).unwrap()[0].start, first);
    }

    #[test]
    fn more_than_the_free_memory_is_refused_with_both_figures() {
        let e = Arena::default().carve(&plan(&[100 << 20]), 50 << 20).unwrap_err();
        assert_eq!(e, DeviceError::OutOfMemory("105 MiB of main memory are needed and 50 MiB are free".into()));
    }

    #[test]
    fn a_mapping_that_the_system_refuses_says_why() {
        let e = Arena::default().carve(&plan(&[1 << 60]), u64::MAX).unwrap_err().to_string();
        assert!(e.contains("the system says"), "{e}");
    }
}
