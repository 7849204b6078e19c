//! Who was measured: identity and state of one device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Missing;
use crate::pattern::DeviceKind;

/// Why a document lacks a field that came later.
const NOT_READ: &str = "the version of the program that wrote this document did not read it";

/// Gives the null of a field that came later its reason, unless it has one.
pub(super) fn explain_absent<T>(missing: &mut Missing, field: &str, value: Option<&T>) {
    if value.is_none() {
        missing.entry(field.to_owned()).or_insert_with(|| NOT_READ.to_owned());
    }
}

/// One physical device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// GPU, or the memory of the machine.
    pub kind: DeviceKind,
    /// The product's id in the catalog; of a device that it does not know, the name in lower case with dashes.
    pub card: String,
    /// The name that the driver or the processor gives.
    pub name: String,
    /// The driver's index when the run started; changes between boots.
    pub index: Option<u32>,
    /// The driver's unique id.
    pub uuid: Option<String>,
    /// Bus address, `domain:bus:device.function`.
    pub pci_address: Option<String>,
    /// Device id on the bus, without the vendor, such as `0x2335`.
    pub pci_device_id: Option<String>,
    /// Serial number of the board.
    pub serial: Option<String>,
    /// Part number of the board.
    pub part_number: Option<String>,
    /// Version of the board's firmware.
    pub vbios: Option<String>,
    /// Version of the driver, such as `580.159.03`.
    pub driver_version: Option<String>,
    /// The CUDA version that the driver implements, such as `13.0`.
    pub cuda_version: Option<String>,
    /// Compute capability, such as `9.0`.
    pub compute_capability: Option<String>,
    /// Multiprocessors of a GPU; worker threads of the host.
    pub units: u32,
    /// Highest clock of the multiprocessors, MHz.
    pub sm_clock_max_mhz: Option<f64>,
    /// The smallest step of the time that the multiprocessors stamp, ns.
    #[serde(default)]
    pub timer_resolution_ns: Option<f64>,
    /// The memory and its last cache.
    pub memory: Memory,
    /// Error correction.
    pub ecc: Ecc,
    /// Memory rows taken out of use.
    pub remapped_rows: RemappedRows,
    /// How much power the card may draw.
    #[serde(default = "PowerLimits::not_read")]
    pub power_limits: PowerLimits,
    /// The link to the processor.
    pub pcie: Pcie,
    /// Other processes on the card when the run started.
    #[serde(default)]
    pub other_processes: Option<u32>,
    /// What lies between this program and the hardware.
    pub virtualization: Virtualization,
    /// Why fields above are null.
    pub missing: Missing,
}

impl Device {
    /// Gives the nulls of a document that is older than their fields a reason.
    pub(super) fn explain_absent(&mut self) {
        explain_absent(&mut self.missing, "timer_resolution_ns", self.timer_resolution_ns.as_ref());
        explain_absent(&mut self.missing, "other_processes", self.other_processes.as_ref());
        explain_absent(&mut self.virtualization.missing, "mig_enabled", self.virtualization.mig_enabled.as_ref());
    }
}

/// Memory and last cache of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// All of it, in bytes.
    pub total_bytes: u64,
    /// What could be allocated when the run started, in bytes.
    pub free_bytes: u64,
    /// L2 of a GPU, L3 of a processor, in bytes.
    pub cache_bytes: Option<u64>,
    /// Width of the memory bus, in bits.
    pub bus_width_bits: Option<u32>,
    /// Command clock, MHz; data moves at twice this rate.
    pub clock_mhz: Option<f64>,
    /// Why fields above are null.
    pub missing: Missing,
}

/// Error correction and what it has seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ecc {
    /// Whether it is on.
    pub enabled: Option<bool>,
    /// Corrected errors since the last boot.
    pub corrected: Option<u64>,
    /// Uncorrected errors since the last boot.
    pub uncorrected: Option<u64>,
    /// Why fields above are null.
    pub missing: Missing,
}

/// Memory rows that the card has replaced by spares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemappedRows {
    /// Because of corrected errors.
    pub corrected: Option<u32>,
    /// Because of uncorrected errors.
    pub uncorrected: Option<u32>,
    /// Whether a remapping waits for a reset.
    pub pending: Option<bool>,
    /// Whether a remapping has failed.
    pub failed: Option<bool>,
    /// Why fields above are null.
    pub missing: Missing,
}

/// How much power a card may draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PowerLimits {
    /// The limit that the card is sold with, W.
    pub default_w: Option<f64>,
    /// The limit that somebody asked for, W.
    pub requested_w: Option<f64>,
    /// The limit that holds, the lowest of all there are, W.
    pub enforced_w: Option<f64>,
    /// Why fields above are null.
    pub missing: Missing,
}

impl PowerLimits {
    /// None of them, for one reason.
    pub fn unknown(reason: &str) -> Self {
        let missing = ["default_w", "requested_w", "enforced_w"].map(|field| (field.to_owned(), reason.to_owned())).into();
        Self { default_w: None, requested_w: None, enforced_w: None, missing }
    }

    fn not_read() -> Self {
        Self::unknown(NOT_READ)
    }
}

/// The link between processor and device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pcie {
    /// Generation while the device was busy; idle links slow down.
    pub generation_under_load: Option<u32>,
    /// Lanes while the device was busy.
    pub width_under_load: Option<u32>,
    /// Highest generation that device and slot allow.
    pub generation_max: Option<u32>,
    /// Most lanes that device and slot allow.
    pub width_max: Option<u32>,
    /// Why fields above are null.
    pub missing: Missing,
}

/// Layers between this program and the hardware.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Virtualization {
    /// Whether a hypervisor is underneath.
    pub virtual_machine: Option<bool>,
    /// Kind of container, when in one; `none` otherwise.
    pub container: Option<String>,
    /// Whether this is Linux under Windows.
    pub wsl: Option<bool>,
    /// How the GPU is shared between virtual machines; `none` when it is not.
    pub vgpu: Option<String>,
    /// Whether the card is set to be divided into slices.
    #[serde(default)]
    pub mig_enabled: Option<bool>,
    /// Profile of the GPU slice; `none` when the GPU is whole.
    pub mig_profile: Option<String>,
    /// Why fields above are null.
    pub missing: Missing,
}
