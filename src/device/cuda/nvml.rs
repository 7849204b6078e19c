//! What NVML, the management library, knows of a card. Every field is a value or
//! a reason: containers, WSL, MIG and consumer cards each lack some.

mod processes;
mod reasons;
mod sensors;

pub(super) use sensors::NvmlSensors;

use std::ffi::c_uint;
use std::sync::OnceLock;

use nvml_wrapper::enum_wrappers::device::{EccCounter, GpuVirtualizationMode, MemoryError};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::record::{Ecc, Missing, Pcie, PowerLimits, RemappedRows, known};

/// Why a function that the library lacks gives nothing.
const CANNOT_TELL: &str = "NVML: this driver cannot tell";

/// The library's name for the loader.
const LIBRARY: &str = if cfg!(windows) { "nvml.dll" } else { "libnvidia-ml.so.1" };

/// The library, started on first use and kept for the process's life.
fn nvml() -> Result<&'static Nvml, String> {
    static NVML: OnceLock<Result<Nvml, String>> = OnceLock::new();
    let started = NVML.get_or_init(|| {
        Nvml::builder().lib_path(LIBRARY.as_ref()).init().map_err(|error| match error {
            NvmlError::LibloadingError(_) => {
                format!("{LIBRARY} was not found; in a container, add 'utility' to NVIDIA_DRIVER_CAPABILITIES")
            }
            other => format!("NVML does not start: {other}"),
        })
    });
    started.as_ref().map_err(Clone::clone)
}

/// The version of the driver, such as `580.159.03`, by NVML.
///
/// # Errors
/// Why NVML cannot be used here, and what to do.
pub fn driver_version() -> Result<String, String> {
    says(nvml()?.sys_driver_version())
}

fn says<T>(answer: Result<T, NvmlError>) -> Result<T, String> {
    answer.map_err(|error| match error {
        NvmlError::FailedToLoadSymbol(_) => CANNOT_TELL.to_owned(),
        other => format!("NVML: {other}"),
    })
}

/// Words that stand for a text that a card does not have, beside none at all.
const NO_TEXTS: [&str; 4] = ["n/a", "[n/a]", "unknown", "none"];

/// A text, unless it only says that there is none.
fn meant(text: String) -> Result<String, String> {
    let told = text.trim();
    let none = told.is_empty() || NO_TEXTS.contains(&told.to_lowercase().as_str());
    if none { Err(format!("NVML: the card says '{text}'")) } else { Ok(text) }
}

/// One card, found by its bus address; or why it is not known here.
pub(super) struct Card(Result<Device<'static>, String>);

impl Card {
    /// Looks a card up by `domain:bus:device.function`.
    pub fn at(pci_address: &Result<String, String>) -> Self {
        Self(pci_address.clone().and_then(|address| says(nvml()?.device_by_pci_bus_id(address))))
    }

    fn ask<T>(&self, question: impl FnOnce(&Device) -> Result<T, NvmlError>) -> Result<T, String> {
        says(question(self.0.as_ref().map_err(Clone::clone)?))
    }

    /// Device id without the vendor, from the combined 32 bits that NVML gives.
    pub fn pci_device_id(&self) -> Result<String, String> {
        self.ask(|card| card.pci_info()).map(|pci| format!("0x{:04x}", pci.pci_device_id >> 16))
    }

    pub fn serial(&self) -> Result<String, String> {
        self.ask(|card| card.serial()).and_then(meant)
    }

    pub fn part_number(&self) -> Result<String, String> {
        self.ask(|card| card.board_part_number()).and_then(meant)
    }

    pub fn vbios(&self) -> Result<String, String> {
        self.ask(|card| card.vbios_version()).and_then(meant)
    }

    pub fn ecc(&self) -> Ecc {
        let mut missing = Missing::new();
        let count = |kind| self.ask(|card| card.total_ecc_errors(kind, EccCounter::Volatile));
        Ecc {
            enabled: known(&mut missing, "enabled", self.ask(|card| card.is_ecc_enabled()).map(|ecc| ecc.currently_enabled)),
            corrected: known(&mut missing, "corrected", count(MemoryError::Corrected)),
            uncorrected: known(&mut missing, "uncorrected", count(MemoryError::Uncorrected)),
            missing,
        }
    }

    pub fn remapped_rows(&self) -> RemappedRows {
        let mut missing = Missing::new();
        let rows = self.remapped();
        let field = |index: usize| rows.clone().map(|rows| rows[index]);
        RemappedRows {
            corrected: known(&mut missing, "corrected", field(0)),
            uncorrected: known(&mut missing, "uncorrected", field(1)),
            pending: known(&mut missing, "pending", field(2).map(|n| n != 0)),
            failed: known(&mut missing, "failed", field(3).map(|n| n != 0)),
            missing,
        }
    }

    /// Corrected, uncorrected, pending, failed: a call that the wrapper has no safe form of.
    fn remapped(&self) -> Result<[c_uint; 4], String> {
        let card = self.0.as_ref().map_err(Clone::clone)?;
        let get = nvml()?.lib().nvmlDeviceGetRemappedRows.as_ref().map_err(|_| CANNOT_TELL.to_owned())?;
        let mut rows = [0; 4];
        let [corrected, uncorrected, pending, failed] = &mut rows;
        // SAFETY: the handle belongs to the NVML that stays started, and the four
        // addresses are of this function's array.
        let code = unsafe { get(card.handle(), corrected, uncorrected, pending, failed) };
        match code {
            0 => Ok(rows),
            3 => Err("NVML: this card does not remap rows".into()),
            other => Err(format!("NVML: error {other}")),
        }
    }

    /// The link, read while `busy` keeps the card at work: an idle link slows down.
    pub fn pcie<T>(&self, busy: impl FnOnce() -> Result<T, String>) -> Pcie {
        let mut missing = Missing::new();
        let work = busy();
        let under_load = |question: fn(&Device) -> Result<u32, NvmlError>| {
            work.as_ref().map_err(|error| format!("the card could not be put to work: {error}"))?;
            self.ask(question)
        };
        Pcie {
            generation_under_load: known(&mut missing, "generation_under_load", under_load(|card| card.current_pcie_link_gen())),
            width_under_load: known(&mut missing, "width_under_load", under_load(|card| card.current_pcie_link_width())),
            generation_max: known(&mut missing, "generation_max", self.ask(|card| card.max_pcie_link_gen())),
            width_max: known(&mut missing, "width_max", self.ask(|card| card.max_pcie_link_width())),
            missing,
        }
    }

    pub fn power_limits(&self) -> PowerLimits {
        let mut missing = Missing::new();
        let watts = |question: fn(&Device) -> Result<u32, NvmlError>| self.ask(question).map(|milliwatts| f64::from(milliwatts) / 1e3);
        PowerLimits {
            default_w: known(&mut missing, "default_w", watts(|card| card.power_management_limit_default())),
            requested_w: known(&mut missing, "requested_w", watts(|card| card.power_management_limit())),
            enforced_w: known(&mut missing, "enforced_w", watts(|card| card.enforced_power_limit())),
            missing,
        }
    }

    /// Whether the card is set to be divided into slices.
    pub fn mig_enabled(&self) -> Result<bool, String> {
        self.ask(|card| card.mig_mode()).map(|mode| mode.current != 0)
    }

    /// Other processes with work on the card, on which this one must have a context.
    pub fn other_processes(&self) -> Result<u32, String> {
        let compute = self.ask(|card| card.running_compute_processes())?;
        // Drawing programs where there are any; cards that cannot draw refuse the question.
        let drawing = self.ask(|card| card.running_graphics_processes()).unwrap_or_default();
        processes::others(compute.into_iter().chain(drawing).map(|process| process.pid), std::process::id())
    }

    pub fn virtualization(&self) -> Result<String, String> {
        let mode = self.ask(|card| card.virtualization_mode())?;
        Ok(match mode {
            GpuVirtualizationMode::Bare => "none",
            GpuVirtualizationMode::PassThrough => "pass-through",
            GpuVirtualizationMode::Vgpu => "vgpu",
            GpuVirtualizationMode::HostVgpu => "host-vgpu",
            GpuVirtualizationMode::HostVsga => "host-vsga",
        }
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_says_that_there_is_none_is_a_reason_and_any_other_stays_as_it_is() {
        for none in ["", " ", "N/A", "[N/A]", "Unknown", "none"] {
            assert_eq!(meant(none.into()), Err(format!("NVML: the card says '{none}'")));
        }
        for text in ["0", "900-21010-0040-000", "96.00.A5.00.03"] {
            assert_eq!(meant(text.into()), Ok(text.into()));
        }
    }
}
