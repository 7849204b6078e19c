//! The clock of the multiprocessors during the very work that is timed: each stamps its
//! time and its cycle count before and after, which needs no privilege and no polling.

use std::ffi::c_void;

use cust::function::Function;
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::Stream;

use super::CudaDevice;
use super::error::{at_work, raw};
use super::modules;
use crate::device::DeviceError;

/// The module that stamps.
pub(super) const MODULE: &str = "clock";

/// Words of a stamp: time in nanoseconds, cycles.
const STAMP: usize = 2;

/// Which end of the work is stamped.
#[derive(Clone, Copy)]
pub(super) enum End {
    Before = 0,
    After = 1,
}

/// A place for each multiprocessor's stamp at each end.
pub(super) struct Clock<'a> {
    function: Function<'a>,
    units: u32,
    stamps: DeviceBuffer<u64>,
}

impl<'a> Clock<'a> {
    /// Places for a device with so many multiprocessors, on which [`MODULE`] is loaded.
    pub fn new(device: &'a CudaDevice, units: u32) -> Result<Self, DeviceError> {
        let function = device.modules.get(MODULE)?.get_function("clock_stamp").map_err(at_work("looking up the kernel 'clock_stamp'"))?;
        let length = 2 * units as usize * STAMP;
        // SAFETY: any bit pattern is a valid u64, and `clear` comes before the stamps.
        let stamps = unsafe { DeviceBuffer::uninitialized(length) }.map_err(at_work("allocating the clock stamps"))?;
        Ok(Self { function, units, stamps })
    }

    /// Forgets earlier stamps, in the stream's order.
    pub fn clear(&self, stream: &Stream) -> Result<(), DeviceError> {
        let (address, halves) = (self.stamps.as_device_ptr().as_raw(), self.stamps.len() * 2);
        // SAFETY: the buffer holds twice as many 32-bit words as 64-bit ones.
        raw("clearing the clock stamps", unsafe { cust::sys::cuMemsetD32Async(address, 0, halves, stream.as_inner()) })
    }

    /// Has each multiprocessor that is free stamp, in the stream's order.
    pub fn stamp(&self, stream: &Stream, end: End) -> Result<(), DeviceError> {
        let places = self.stamps.as_device_ptr().as_raw() + (end as usize * self.units as usize * STAMP * size_of::<u64>()) as u64;
        // Eight bytes each, of which the driver reads as many as the signature says.
        let arguments = [places, u64::from(self.units)];
        let arguments: [*mut c_void; 2] = arguments.each_ref().map(|argument| std::ptr::from_ref(argument).cast_mut().cast());
        // One block for each multiprocessor; those that get none leave their place clear.
        // SAFETY: the arguments are those of the signature, and the kernel writes only the
        // `units` places from `places` on.
        let launched = unsafe { stream.launch(&self.function, self.units, 32, 0, &arguments) };
        launched.map_err(at_work("launching 'clock_stamp'"))
    }

    /// The mean clock between the two ends in MHz: the median of all multiprocessors that
    /// stamped both. The stream must have come to its end.
    pub fn mhz(&self) -> Result<Option<f64>, DeviceError> {
        let mut stamps = vec![0; self.stamps.len()];
        self.stamps.copy_to(&mut stamps[..]).map_err(at_work("reading the clock stamps"))?;
        Ok(mean_mhz(&stamps))
    }
}

/// How often the timer is read to see it step: some milliseconds, also where it stands still.
const STEP_READS: u64 = 20_000;

/// The smallest step of the time that is stamped, in nanoseconds.
///
/// # Errors
/// A reason, when the device shows none.
pub(super) fn resolution_ns(device: &CudaDevice) -> Result<f64, String> {
    let ns = smallest_step(device).map_err(|error| error.to_string())?;
    // No timer that is of any use steps more rarely than once a second.
    if (1..1_000_000_000).contains(&ns) { Ok(ns as f64) } else { Err("the device's timer was not seen to step".into()) }
}

fn smallest_step(device: &CudaDevice) -> Result<u64, DeviceError> {
    let (_, module) = modules::load(MODULE, device.capability)?;
    let function = module.get_function("clock_step").map_err(at_work("looking up the kernel 'clock_step'"))?;
    // SAFETY: any bit pattern is a valid u64, and the kernel writes it.
    let step = unsafe { DeviceBuffer::<u64>::uninitialized(1) }.map_err(at_work("allocating 8 bytes on the device"))?;
    let arguments = [step.as_device_ptr().as_raw(), STEP_READS];
    let pointers = arguments.each_ref().map(|argument| std::ptr::from_ref(argument).cast_mut().cast());
    // SAFETY: the arguments are those of the signature, and the kernel writes one word.
    unsafe { device.stream.launch(&function, 1, 1, 0, &pointers) }.map_err(at_work("launching 'clock_step'"))?;
    device.stream.synchronize().map_err(at_work("reading the device's timer"))?;
    let mut ns = [0];
    step.copy_to(&mut ns).map_err(at_work("reading the timer's step"))?;
    Ok(ns[0])
}

/// From the stamps of all multiprocessors before, then of all after.
fn mean_mhz(stamps: &[u64]) -> Option<f64> {
    let (before, after) = stamps.split_at(stamps.len() / 2);
    let mut clocks: Vec<f64> = before
        .chunks_exact(STAMP)
        .zip(after.chunks_exact(STAMP))
        .filter(|(before, after)| before[0] > 0 && after[0] > before[0] && after[1] > before[1])
        .map(|(before, after)| (after[1] - before[1]) as f64 / (after[0] - before[0]) as f64 * 1e3)
        .collect();
    clocks.sort_by(f64::total_cmp);
    clocks.get(clocks.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_cycles_over_time() {
        assert_eq!(mean_mhz(&[1_000, 50, 2_001_000, 50 + 3_960_000]), Some(1980.0));
    }

    #[test]
    fn multiprocessors_without_both_stamps_do_not_count() {
        let clocks = mean_mhz(&[5, 5, 0, 0, 7, 7, 0, 0, 9, 9, 1007, 2007]);
        assert_eq!(clocks, Some(2000.0));
        assert_eq!(mean_mhz(&[0; 8]), None);
        assert_eq!(mean_mhz(&[]), None);
    }
}
