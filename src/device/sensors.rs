//! What a device can be asked about itself while it works.

use crate::record::PowerSource;

/// What the sensors said at one moment: each a value, or why it is not told.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Clock of the multiprocessors, MHz.
    pub sm_clock_mhz: Result<f64, String>,
    /// Clock of the memory, MHz.
    pub memory_clock_mhz: Result<f64, String>,
    /// Performance state: 0 is P0, the fastest.
    pub performance_state: Result<u32, String>,
    /// Why the clocks are held below their highest, by NVML's names for clock-event reasons.
    pub throttle_reasons: Result<Vec<String>, String>,
    /// Temperature of the chip, °C.
    pub temperature_gpu_c: Result<f64, String>,
    /// Temperature of the memory, °C.
    pub temperature_memory_c: Result<f64, String>,
    /// Power, W, and over which time.
    pub power_w: Result<(f64, PowerSource), String>,
    /// A counter of energy, J; only differences mean something.
    pub energy_counter_j: Result<f64, String>,
    /// Generation of the link to the processor.
    pub pcie_generation: Result<u32, String>,
    /// Lanes of that link.
    pub pcie_width: Result<u32, String>,
    /// Processes on the device beside this one.
    pub other_processes: Result<u32, String>,
}

#[cfg(test)]
impl Reading {
    /// A reading in which nothing is told, for one reason.
    pub(crate) fn untold(reason: &str) -> Self {
        fn untold<T>(reason: &str) -> Result<T, String> {
            Err(reason.to_owned())
        }
        Self {
            sm_clock_mhz: untold(reason),
            memory_clock_mhz: untold(reason),
            performance_state: untold(reason),
            throttle_reasons: untold(reason),
            temperature_gpu_c: untold(reason),
            temperature_memory_c: untold(reason),
            power_w: untold(reason),
            energy_counter_j: untold(reason),
            pcie_generation: untold(reason),
            pcie_width: untold(reason),
            other_processes: untold(reason),
        }
    }
}

/// The sensors of a device, for a thread of their own.
pub trait Sensors: Send {
    /// Asks all of them once.
    fn read(&mut self) -> Reading;
}
