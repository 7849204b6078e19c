//! CUDA devices: plans carried out by the shipped PTX kernels through `cust`.

mod clock;
mod copies;
pub mod driver;
mod error;
mod identity;
mod memory;
mod modules;
mod nvml;
mod program;

use std::sync::{Arc, Once, Weak};

use cust::CudaApiVersion;
use cust::context::{Context, CurrentContext};
use cust::device::{Device as CustDevice, DeviceAttribute};
use cust::memory::mem_get_info;
use cust::stream::{Stream, StreamFlags};

use self::error::{at_work, unusable};
use self::modules::Modules;
pub use self::modules::{Kernels, kernels};
pub use self::nvml::driver_version;
use super::{Device, DeviceError, Program, Sensors, machine};
use crate::pattern::{DeviceKind, Facts, Plan};
use crate::record;

/// Whether CUDA can be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// There is no NVIDIA driver on this machine; the text says what was looked for.
    Absent(String),
    /// There is one, and it works as far as starting it shows.
    Working {
        /// How many devices it shows.
        devices: u32,
    },
}

/// The CUDA version that the driver implements, such as `13.0`.
///
/// # Errors
/// When there is no driver that tells.
pub fn cuda_version() -> Result<String, String> {
    let (major, minor) = driver_cuda()?;
    Ok(format!("{major}.{minor}"))
}

fn driver_cuda() -> Result<(i32, i32), String> {
    driver::library()?;
    let version = CudaApiVersion::get().map_err(unusable("asking the driver's version")).map_err(|error| error.to_string())?;
    Ok((version.major(), version.minor()))
}

/// Starts the driver and counts its devices.
///
/// # Errors
/// [`DeviceError::Unusable`] when a driver is there but fails, or shows no device.
pub fn presence() -> Result<Presence, DeviceError> {
    order_by_bus();
    match driver::state() {
        driver::DriverState::Missing { searched } => return without_library(&searched.join(", ")),
        driver::DriverState::Unloadable { path, reason } => {
            return Err(DeviceError::Unusable(format!(
                "the NVIDIA driver library {path} cannot be loaded: {reason}; reinstall the driver, or correct {} if it names this file",
                driver::DRIVER_VARIABLE
            )));
        }
        driver::DriverState::Loaded { .. } => {}
    }
    cust::init(cust::CudaFlags::empty()).map_err(unusable("starting the NVIDIA driver"))?;
    let devices = CustDevice::num_devices().map_err(unusable("counting CUDA devices"))?;
    if devices == 0 {
        return Err(unusable("looking for CUDA devices")(cust::error::CudaError::NoDevice));
    }
    // No driver shows more; a negative count comes as a very large one.
    const MOST_DEVICES: u32 = 1024;
    if devices > MOST_DEVICES {
        return Err(DeviceError::Unusable(format!(
            "the NVIDIA driver counts {} devices, which cannot be: reinstall the driver",
            devices.cast_signed()
        )));
    }
    Ok(Presence::Working { devices })
}

/// What it means that no driver library was found where it was looked for.
fn without_library(searched: &str) -> Result<Presence, DeviceError> {
    let variable = driver::DRIVER_VARIABLE;
    match std::env::var(variable).unwrap_or_default().as_str() {
        "" => {}
        driver::NO_DRIVER => return Ok(Presence::Absent(format!("no NVIDIA driver is used ({variable}=none)"))),
        named => {
            return Err(DeviceError::Unusable(format!(
                "{variable} names the driver library {named}, which is not there: correct it, or leave it out"
            )));
        }
    }
    match driver::kernel_driver_present() {
        None => Ok(Presence::Absent(format!(
            "no NVIDIA driver was found (looked for {searched}, which comes with the driver of the card, not with a CUDA toolkit)"
        ))),
        Some(evidence) => Err(DeviceError::Unusable(format!(
            "this machine has an NVIDIA driver ({evidence}), but its library is not visible here (looked for {searched}): \
             in a container, start it with the 'compute' capability (NVIDIA_DRIVER_CAPABILITIES=compute,utility); \
             otherwise install the driver's libcuda package"
        ))),
    }
}

/// Makes the driver count devices as nvidia-smi does, unless the user chose otherwise.
fn order_by_bus() {
    const ORDER: &str = "CUDA_DEVICE_ORDER";
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os(ORDER).is_none() {
            // SAFETY: once, before the driver starts and before this program starts any
            // thread that reads the environment past Rust's own lock on it.
            unsafe { std::env::set_var(ORDER, "PCI_BUS_ID") };
        }
    });
}

/// One CUDA device with its primary context.
pub struct CudaDevice {
    index: u32,
    device: CustDevice,
    // Fields drop in this order: modules and stream before the context.
    modules: Modules,
    stream: Stream,
    driver_cuda: (i32, i32),
    capability: (i32, i32),
    /// Alive as long as somebody has the sensors.
    lent: Weak<()>,
    context: Context,
}

/// What can be said of a device without putting it to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The name that the driver gives.
    pub name: String,
    /// All of its memory.
    pub memory_bytes: u64,
    /// The driver's unique id.
    pub uuid: String,
}

/// Asks the driver about the device with this index; makes no context on it.
///
/// # Errors
/// When the driver does not answer; [`presence`] must have found the device.
pub fn summary(index: u32) -> Result<Summary, DeviceError> {
    let device = CustDevice::get_device(index).map_err(unusable(&format!("opening CUDA device {index}")))?;
    Ok(Summary {
        name: device.name().map_err(at_work("asking for the device's name"))?,
        memory_bytes: device.total_memory().map_err(at_work("asking for the device's memory"))? as u64,
        uuid: identity::uuid(device)?,
    })
}

impl CudaDevice {
    /// Opens the device with this index.
    ///
    /// # Errors
    /// When it cannot be used, or card or driver are too old for the kernels;
    /// [`presence`] must have found it.
    pub fn open(index: u32) -> Result<Self, DeviceError> {
        let device = CustDevice::get_device(index).map_err(unusable(&format!("opening CUDA device {index}")))?;
        let version = CudaApiVersion::get().map_err(unusable("asking the driver's version"))?;
        let driver_cuda = (version.major(), version.minor());
        let attribute = |attribute| device.get_attribute(attribute).map_err(unusable("asking for the compute capability"));
        let capability = (attribute(DeviceAttribute::ComputeCapabilityMajor)?, attribute(DeviceAttribute::ComputeCapabilityMinor)?);
        modules::check_support(driver_cuda, capability)?;
        let context = Context::new(device).map_err(unusable(&format!("creating a context on CUDA device {index}")))?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None).map_err(unusable("creating a stream"))?;
        Ok(Self { index, device, modules: Modules::default(), stream, driver_cuda, capability, lent: Weak::new(), context })
    }

    /// Has the driver compile every kernel that ships with the program.
    ///
    /// # Errors
    /// When it cannot, which measuring would show case by case.
    pub fn compile_kernels(&mut self) -> Result<(), DeviceError> {
        self.activate()?;
        modules::names().into_iter().try_for_each(|name| self.modules.ensure(name, self.capability))
    }

    /// Makes this device the one that the thread's next calls mean.
    fn activate(&self) -> Result<(), DeviceError> {
        CurrentContext::set_current(&self.context).map_err(at_work("making the context current"))
    }

    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32, DeviceError> {
        self.device.get_attribute(attribute).map_err(at_work(&format!("asking the device attribute {attribute:?}")))
    }

    /// How many multiprocessors there are.
    fn units(&self) -> Result<u32, DeviceError> {
        Ok(self.attribute(DeviceAttribute::MultiprocessorCount)?.max(1) as u32)
    }

    /// Whether the driver ends kernels that run for some seconds.
    fn launch_limited(&self) -> Result<bool, DeviceError> {
        Ok(self.attribute(DeviceAttribute::KernelExecTimeout)? != 0)
    }

    /// 2 x memory clock x bus width / 8, over the clock of the multiprocessors.
    fn peak_bytes_per_clock(&self) -> Option<u32> {
        let [memory_khz, bus_bits, units_khz] =
            [DeviceAttribute::MemoryClockRate, DeviceAttribute::GlobalMemoryBusWidth, DeviceAttribute::ClockRate]
                .map(|a| self.positive(a).ok());
        u32::try_from(memory_khz? * 2 * (bus_bits? / 8) / units_khz?).ok().filter(|&bytes| bytes > 0)
    }

    /// An attribute that some drivers and virtual machines report as zero.
    fn positive(&self, attribute: DeviceAttribute) -> Result<u64, String> {
        match self.device.get_attribute(attribute) {
            Ok(value) if value > 0 => Ok(value as u64),
            Ok(value) => Err(format!("the driver reports {value}")),
            Err(error) => Err(format!("the driver does not say: {error}")),
        }
    }
}

impl Device for CudaDevice {
    fn facts(&self) -> Result<Facts, DeviceError> {
        self.activate()?;
        let (free, _) = mem_get_info().map_err(at_work("asking for the free memory"))?;
        Ok(Facts {
            kind: DeviceKind::Cuda,
            cache_bytes: self.positive(DeviceAttribute::L2CacheSize).ok(),
            free_bytes: free as u64,
            main_free_bytes: machine::memory().available_bytes,
            units: self.units()?,
            threads_per_unit: self.attribute(DeviceAttribute::MaxThreadsPerMultiprocessor)?.max(1) as u32,
            capability: Some((self.capability.0.cast_unsigned(), self.capability.1.cast_unsigned())),
            launch_limited: self.launch_limited()?,
            peak_bytes_per_clock: self.peak_bytes_per_clock(),
        })
    }

    fn identity(&self) -> Result<record::Device, DeviceError> {
        self.activate()?;
        identity::identity(self)
    }

    fn sensors(&mut self) -> Result<Box<dyn Sensors>, String> {
        // Whoever still has them waits for NVML, and so might this thread if it asked.
        if self.lent.strong_count() > 0 {
            return Err("the sensors have not answered since an earlier case".into());
        }
        let lent = Arc::new(());
        self.lent = Arc::downgrade(&lent);
        Ok(Box::new(identity::sensors(self, lent)?))
    }

    fn load<'a>(&'a mut self, plan: &'a Plan) -> Result<Box<dyn Program + 'a>, DeviceError> {
        self.activate()?;
        Ok(Box::new(program::CudaProgram::load(self, plan)?))
    }
}
