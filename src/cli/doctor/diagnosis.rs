//! What can be found out without measuring anything.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::device::cuda::{self, CudaDevice, Kernels, Presence};
use crate::device::{Device, DeviceError, Reading, machine};
use crate::record::{self, Host, Missing, PowerSource, Virtualization, known};

/// Variables that decide what CUDA finds.
const VARIABLES: [&str; 6] = [
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    cuda::driver::DRIVER_VARIABLE,
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
];

/// Everything that `doctor` tells.
#[derive(Debug, Serialize)]
pub(super) struct Diagnosis {
    /// Whether CUDA would work on some device.
    pub usable: bool,
    /// What is wrong or missing, each with cause and cure.
    pub problems: Vec<String>,
    /// The machine.
    pub host: Host,
    /// What is between this program and the machine.
    pub virtualization: Virtualization,
    /// The variables that decide what CUDA finds, where they are set.
    pub environment: BTreeMap<&'static str, String>,
    /// The NVIDIA driver.
    pub driver: Driver,
    /// This program's kernels, against that driver.
    pub kernels: Vec<Kernels>,
    /// Every device that CUDA shows.
    pub devices: Vec<Examined>,
}

/// The NVIDIA driver.
#[derive(Debug, Serialize)]
pub(super) struct Driver {
    /// The library that was loaded.
    pub library: Option<String>,
    /// Its version, by NVML.
    pub version: Option<String>,
    /// The CUDA version that it implements.
    pub cuda_version: Option<String>,
    /// Why fields above are null.
    pub missing: Missing,
}

/// One device, opened and asked.
#[derive(Debug, Serialize)]
pub(super) struct Examined {
    /// The driver's index.
    pub index: u32,
    /// Whether cases could be measured on it.
    pub usable: bool,
    /// What the document of a run would say of it.
    pub device: Option<record::Device>,
    /// What its sensors say.
    pub now: Option<Now>,
    /// Why fields above are null.
    pub missing: Missing,
}

/// One reading of a device's sensors, at rest.
#[derive(Debug, Serialize)]
pub(super) struct Now {
    pub sm_clock_mhz: Option<f64>,
    pub memory_clock_mhz: Option<f64>,
    pub performance_state: Option<u32>,
    pub throttle_reasons: Option<Vec<String>>,
    pub temperature_gpu_c: Option<f64>,
    pub temperature_memory_c: Option<f64>,
    pub power_w: Option<f64>,
    pub power_source: Option<PowerSource>,
    pub energy_counter_j: Option<f64>,
    pub pcie_generation: Option<u32>,
    pub pcie_width: Option<u32>,
    pub other_processes: Option<u32>,
    pub missing: Missing,
}

impl Diagnosis {
    /// Asks everything.
    pub fn of_this_machine() -> Self {
        // Before the driver is started: that sets a variable of its own.
        let environment = VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?.to_string_lossy().into_owned())));
        let environment = environment.collect();
        let mut problems = Vec::new();
        let (driver, mut devices) = (Driver::here(), Vec::new());
        match cuda::presence() {
            Ok(Presence::Working { devices: count }) => {
                devices = (0..count).map(|index| Examined::open(index, &mut problems)).collect();
                problems.extend(driver.missing.get("version").cloned());
            }
            Ok(Presence::Absent(why)) => {
                problems.push(format!("{why}: install the driver, or leave out the variable that hides it; until then only the RAM of this machine can be measured"))
            }
            Err(error) => problems.push(error.to_string()),
        }
        let of_a_device = || "a property of a device".to_owned();
        Self {
            usable: devices.iter().any(|device| device.usable),
            problems,
            host: machine::host(),
            virtualization: machine::virtualization(Err(of_a_device()), Err(of_a_device()), Err(of_a_device())),
            environment,
            driver,
            kernels: cuda::kernels(),
            devices,
        }
    }
}

impl Driver {
    fn here() -> Self {
        let mut missing = Missing::new();
        Self {
            library: known(&mut missing, "library", cuda::driver::library()),
            version: known(&mut missing, "version", cuda::driver_version()),
            cuda_version: known(&mut missing, "cuda_version", cuda::cuda_version()),
            missing,
        }
    }
}

impl Examined {
    /// Opens a device, has the driver compile every kernel for it, and asks it; what fails is a problem.
    fn open(index: u32, problems: &mut Vec<String>) -> Self {
        let mut missing = Missing::new();
        let mut opened = CudaDevice::open(index);
        let compiled = opened.as_mut().map_err(|error| error.clone()).and_then(CudaDevice::compile_kernels);
        let device =
            opened.as_ref().map_err(DeviceError::to_string).and_then(|device| device.identity().map_err(|error| error.to_string()));
        let problem = compiled.err().map(|error| error.to_string()).or_else(|| device.as_ref().err().cloned());
        let usable = problem.is_none();
        problems.extend(problem.map(|problem| format!("device {index}: {problem}")));
        let sensors = opened.as_mut().map_err(|error| error.to_string()).and_then(Device::sensors);
        Self {
            index,
            usable,
            device: known(&mut missing, "device", device),
            now: known(&mut missing, "now", sensors.map(|mut sensors| Now::from(sensors.read()))),
            missing,
        }
    }
}

impl From<Reading> for Now {
    fn from(reading: Reading) -> Self {
        let mut missing = Missing::new();
        let m = &mut missing;
        Self {
            sm_clock_mhz: known(m, "sm_clock_mhz", reading.sm_clock_mhz),
            memory_clock_mhz: known(m, "memory_clock_mhz", reading.memory_clock_mhz),
            performance_state: known(m, "performance_state", reading.performance_state),
            throttle_reasons: known(m, "throttle_reasons", reading.throttle_reasons),
            temperature_gpu_c: known(m, "temperature_gpu_c", reading.temperature_gpu_c),
            temperature_memory_c: known(m, "temperature_memory_c", reading.temperature_memory_c),
            power_source: known(m, "power_source", reading.power_w.clone().map(|(_, source)| source)),
            power_w: known(m, "power_w", reading.power_w.map(|(watts, _)| watts)),
            energy_counter_j: known(m, "energy_counter_j", reading.energy_counter_j),
            pcie_generation: known(m, "pcie_generation", reading.pcie_generation),
            pcie_width: known(m, "pcie_width", reading.pcie_width),
            other_processes: known(m, "other_processes", reading.other_processes),
            missing,
        }
    }
}
