//! The few numbers of a device that sizes, geometry and byte counts depend on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What sort of device a case runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// An NVIDIA GPU, through its driver.
    Cuda,
    /// The memory of this machine, through its processor cores.
    Host,
}

impl DeviceKind {
    /// The unit, in bytes, in which the memory moves data into the cache: a
    /// 32-byte sector on NVIDIA GPUs (CUDA C++ Programming Guide, "Device Memory
    /// Accesses"), a 64-byte line on x86-64 and most Arm processors.
    pub const fn sector_bytes(self) -> u64 {
        match self {
            Self::Cuda => 32,
            Self::Host => 64,
        }
    }
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cuda => "cuda",
            Self::Host => "host",
        })
    }
}

/// A device as the patterns see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Which kernels it runs.
    pub kind: DeviceKind,
    /// Size of the last cache before memory (L2 of a GPU, L3 of a processor), in bytes.
    pub cache_bytes: Option<u64>,
    /// Memory that can be allocated now, in bytes.
    pub free_bytes: u64,
    /// Main memory of the machine that can be allocated now, in bytes; that of the device itself where it is the host.
    pub main_free_bytes: u64,
    /// Multiprocessors of a GPU; worker threads of the host device.
    pub units: u32,
    /// Resident threads that one unit can hold.
    pub threads_per_unit: u32,
    /// Compute capability of a GPU, major and minor.
    pub capability: Option<(u32, u32)>,
    /// Whether the driver ends a kernel that runs for some seconds, as on cards that drive a display.
    pub launch_limited: bool,
    /// Bytes that the memory can move in one clock of the multiprocessors, at the highest clocks of both by the
    /// attributes of a GPU; none where these are not told.
    pub peak_bytes_per_clock: Option<u32>,
}

#[cfg(test)]
impl Facts {
    /// An H200 with all of its memory free.
    pub(crate) const H200: Self = Self {
        kind: DeviceKind::Cuda,
        cache_bytes: Some(60 << 20),
        free_bytes: 139 << 30,
        main_free_bytes: 1 << 40,
        units: 132,
        threads_per_unit: 2048,
        capability: Some((9, 0)),
        launch_limited: false,
        peak_bytes_per_clock: Some(2431),
    };

    /// A small server.
    pub(crate) const HOST: Self = Self {
        kind: DeviceKind::Host,
        cache_bytes: Some(32 << 20),
        free_bytes: 16 << 30,
        main_free_bytes: 16 << 30,
        units: 2,
        threads_per_unit: 1,
        capability: None,
        launch_limited: false,
        peak_bytes_per_clock: None,
    };
}
