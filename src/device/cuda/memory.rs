//! The memory of a plan's buffers: the card's own, or main memory of the machine that is copied from and to.

use std::ops::Range;

use cust::memory::{DeviceBuffer, LockedBuffer};
use cust::stream::Stream;

use super::error::{at_work, raw};
use crate::device::{DeviceError, GUARD_WORDS};
use crate::pattern::data::POISON;
use crate::pattern::{Buffer, Content, Place};

/// Memory of one buffer. Each is an allocation of its own and of its exact length, so that tools which watch
/// memory see a step beyond it; outputs have guards within theirs.
pub(super) struct Memory {
    allocation: Allocation,
    /// Words before the buffer and after it.
    guard: usize,
    /// What kernels fill and check in place of a buffer in main memory, of its length; see [`Self::mirror`].
    mirror: Option<DeviceBuffer<u32>>,
}

enum Allocation {
    Device(DeviceBuffer<u32>),
    Pinned(LockedBuffer<u32>),
    Pageable(Vec<u32>),
}

impl Memory {
    /// Main memory is poisoned all over, the card's is as it was.
    pub fn new(buffer: &Buffer) -> Result<Self, DeviceError> {
        let guard = if buffer.content == Content::Poison { GUARD_WORDS } else { 0 };
        let words = usize::try_from(buffer.bytes / 4 + 2 * guard)
            .map_err(|_| DeviceError::OutOfMemory(format!("{} bytes exceed this machine's addresses", buffer.bytes)))?;
        let what = |whose: &str| format!("allocating {} MiB {whose}", buffer.bytes >> 20);
        let allocation = match buffer.place {
            // SAFETY: any bit pattern is a valid word, and `load` and `prepare` fill all of it.
            Place::Device => Allocation::Device(unsafe { DeviceBuffer::uninitialized(words) }.map_err(at_work(&what("on the device")))?),
            Place::Pinned => Allocation::Pinned(LockedBuffer::new(&POISON, words).map_err(at_work(&what("of pinned main memory")))?),
            Place::Pageable => {
                let mut pageable = Vec::new();
                let reserved = pageable.try_reserve_exact(words);
                reserved.map_err(|error| DeviceError::OutOfMemory(format!("{}: {error}", what("of main memory"))))?;
                pageable.resize(words, POISON);
                Allocation::Pageable(pageable)
            }
        };
        Ok(Self { allocation, guard: guard as usize, mirror: None })
    }

    /// Gives a buffer in main memory its mirror on the card: kernels fill that and it is copied down, or what lies in
    /// main memory is copied up and they check it. So all contents and checks are those of the card's own memory.
    pub fn mirror(&mut self) -> Result<(), DeviceError> {
        if !self.is_on_device() {
            let words = self.words();
            // SAFETY: any bit pattern is a valid word, and it is written before it is read.
            let mirror = unsafe { DeviceBuffer::uninitialized(words) };
            self.mirror = Some(mirror.map_err(at_work(&format!("allocating {} MiB to check main memory with", words >> 18)))?);
        }
        Ok(())
    }

    /// Whether it is the card's own.
    pub fn is_on_device(&self) -> bool {
        matches!(self.allocation, Allocation::Device(_))
    }

    /// Length of the buffer in words.
    fn words(&self) -> usize {
        self.allocation.words() - 2 * self.guard
    }

    /// The buffer's words within the allocation.
    pub fn whole(&self) -> Range<usize> {
        self.guard..self.guard + self.words()
    }

    /// Its words and those of the guard after it.
    pub fn with_guard(&self) -> Range<usize> {
        self.guard..self.allocation.words()
    }

    /// Words of the guards on both sides.
    pub fn guards(&self) -> [Range<usize>; 2] {
        [0..self.guard, self.whole().end..self.allocation.words()]
    }

    /// Where the buffer begins, in the addresses of its own memory.
    pub fn address(&self) -> u64 {
        self.allocation.address(self.guard)
    }

    /// Where kernels find it.
    pub fn address_for_kernels(&self) -> u64 {
        self.mirror.as_ref().map_or(self.address(), |mirror| mirror.as_device_ptr().as_raw())
    }

    /// Poisons a part of the allocation, on the card in the stream's order.
    pub fn poison(&mut self, part: Range<usize>, stream: &Stream) -> Result<(), DeviceError> {
        match self.allocation.main_mut() {
            Some(words) => {
                words[part].fill(POISON);
                Ok(())
            }
            None => poison(self.allocation.address(part.start), part.len(), stream),
        }
    }

    /// A part of the allocation, copied here.
    pub fn fetch(&self, part: Range<usize>) -> Result<Vec<u32>, DeviceError> {
        if let Some(words) = self.allocation.main() {
            return Ok(words[part].to_vec());
        }
        let mut copy = vec![0u32; part.len()];
        // SAFETY: `copy` has room for the words, and callers name a part of the allocation.
        let fetched = unsafe {
            cust::sys::cuMemcpyDtoH_v2(copy.as_mut_ptr().cast(), self.allocation.address(part.start), part.len() * size_of::<u32>())
        };
        raw("reading memory", fetched)?;
        Ok(copy)
    }

    /// Writes words into the allocation from `start` on, where [`Self::fetch`] had as many from.
    pub fn store(&mut self, start: usize, words: &[u32]) -> Result<(), DeviceError> {
        match self.allocation.main_mut() {
            Some(main) => {
                main[start..start + words.len()].copy_from_slice(words);
                Ok(())
            }
            None => {
                let address = self.allocation.address(start);
                // SAFETY: the words came from there.
                raw("writing memory", unsafe { cust::sys::cuMemcpyHtoD_v2(address, words.as_ptr().cast(), size_of_val(words)) })
            }
        }
    }

    /// Copies the mirror into main memory, where there is one, in the stream's order.
    pub fn copy_down(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        let whole = self.whole();
        let (Some(mirror), Some(words)) = (&self.mirror, self.allocation.main_mut()) else { return Ok(()) };
        let buffer = &mut words[whole];
        // SAFETY: the mirror is as long as the buffer, and both outlive the work of the stream.
        let copied = unsafe {
            cust::sys::cuMemcpyDtoHAsync_v2(
                buffer.as_mut_ptr().cast(),
                mirror.as_device_ptr().as_raw(),
                size_of_val(buffer),
                stream.as_inner(),
            )
        };
        raw("filling main memory", copied)
    }

    /// Copies main memory into the mirror, where there is one, in the stream's order. The mirror is poisoned first:
    /// a copy that did not happen is no pass.
    pub fn copy_up(&self, stream: &Stream) -> Result<(), DeviceError> {
        let (Some(mirror), Some(words)) = (&self.mirror, self.allocation.main()) else { return Ok(()) };
        let (buffer, address) = (&words[self.whole()], mirror.as_device_ptr().as_raw());
        poison(address, buffer.len(), stream)?;
        // SAFETY: the mirror is as long as the buffer, and both outlive the work of the stream.
        let copied = unsafe { cust::sys::cuMemcpyHtoDAsync_v2(address, buffer.as_ptr().cast(), size_of_val(buffer), stream.as_inner()) };
        raw("reading main memory", copied)
    }
}

impl Allocation {
    fn words(&self) -> usize {
        match self {
            Self::Device(memory) => memory.len(),
            Self::Pinned(_) | Self::Pageable(_) => self.main().map_or(0, <[u32]>::len),
        }
    }

    /// The address of a word.
    fn address(&self, word: usize) -> u64 {
        let start = match self {
            Self::Device(memory) => memory.as_device_ptr().as_raw(),
            Self::Pinned(memory) => memory.as_ptr() as u64,
            Self::Pageable(memory) => memory.as_ptr() as u64,
        };
        start + (word * size_of::<u32>()) as u64
    }

    /// The words, where they are main memory. No copy to or from them is under way when they are asked for.
    fn main(&self) -> Option<&[u32]> {
        match self {
            Self::Device(_) => None,
            Self::Pinned(memory) => Some(memory),
            Self::Pageable(memory) => Some(memory),
        }
    }

    /// As [`Self::main`].
    fn main_mut(&mut self) -> Option<&mut [u32]> {
        match self {
            Self::Device(_) => None,
            Self::Pinned(memory) => Some(memory),
            Self::Pageable(memory) => Some(memory),
        }
    }
}

/// Poisons so many words of the card's memory, in the stream's order.
pub(super) fn poison(address: u64, words: usize, stream: &Stream) -> Result<(), DeviceError> {
    // SAFETY: callers name memory of an allocation.
    raw("poisoning memory", unsafe { cust::sys::cuMemsetD32Async(address, POISON, words, stream.as_inner()) })
}
