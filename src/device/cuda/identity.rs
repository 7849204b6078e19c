//! Who a CUDA device is, from the driver and from NVML.

use std::sync::Arc;

use cust::device::{Device as CustDevice, DeviceAttribute};
use cust::memory::{DeviceBuffer, mem_get_info};

use super::CudaDevice;
use super::clock;
use super::error::{at_work, raw};
use super::nvml::{self, Card, NvmlSensors};
use crate::catalog;
use crate::device::{DeviceError, machine};
use crate::pattern::DeviceKind;
use crate::record::{self, Memory, Missing, known, slug};

pub(super) fn identity(cuda: &CudaDevice) -> Result<record::Device, DeviceError> {
    let name = cuda.device.name().map_err(at_work("asking for the device's name"))?;
    let address = pci_address(cuda);
    let card = Card::at(&address);
    let mut missing = Missing::new();
    let mut device = record::Device {
        kind: DeviceKind::Cuda,
        card: slug(&name),
        index: Some(cuda.index),
        uuid: known(&mut missing, "uuid", uuid(cuda.device).map_err(|e| e.to_string())),
        pci_device_id: known(&mut missing, "pci_device_id", card.pci_device_id()),
        pci_address: known(&mut missing, "pci_address", address),
        serial: known(&mut missing, "serial", card.serial()),
        part_number: known(&mut missing, "part_number", card.part_number()),
        vbios: known(&mut missing, "vbios", card.vbios()),
        driver_version: known(&mut missing, "driver_version", nvml::driver_version()),
        cuda_version: Some(format!("{}.{}", cuda.driver_cuda.0, cuda.driver_cuda.1)),
        compute_capability: Some(format!("{}.{}", cuda.capability.0, cuda.capability.1)),
        units: cuda.attribute(DeviceAttribute::MultiprocessorCount)?.max(0) as u32,
        sm_clock_max_mhz: known(&mut missing, "sm_clock_max_mhz", cuda.positive(DeviceAttribute::ClockRate).map(|khz| khz as f64 / 1e3)),
        timer_resolution_ns: known(&mut missing, "timer_resolution_ns", clock::resolution_ns(cuda)),
        memory: memory(cuda)?,
        ecc: card.ecc(),
        remapped_rows: card.remapped_rows(),
        power_limits: card.power_limits(),
        other_processes: known(&mut missing, "other_processes", card.other_processes()),
        pcie: card.pcie(|| Busy::start(cuda).map_err(|error| error.to_string())),
        virtualization: machine::virtualization(card.virtualization(), card.mig_enabled(), Ok(slice(&name).unwrap_or("none").to_owned())),
        name,
        missing,
    };
    if let Some(card) = catalog::of_device(&device) {
        device.card.clone_from(&card.id);
    }
    Ok(device)
}

/// The profile in the name that the driver gives a slice of a divided card.
fn slice(name: &str) -> Option<&str> {
    name.split_once(" MIG ").map(|(_, profile)| profile)
}

fn memory(cuda: &CudaDevice) -> Result<Memory, DeviceError> {
    let (free, total) = mem_get_info().map_err(at_work("asking for the free memory"))?;
    let mut missing = Missing::new();
    Ok(Memory {
        total_bytes: total as u64,
        free_bytes: free as u64,
        cache_bytes: known(&mut missing, "cache_bytes", cuda.positive(DeviceAttribute::L2CacheSize)),
        bus_width_bits: known(&mut missing, "bus_width_bits", cuda.positive(DeviceAttribute::GlobalMemoryBusWidth).map(|bits| bits as u32)),
        clock_mhz: known(&mut missing, "clock_mhz", cuda.positive(DeviceAttribute::MemoryClockRate).map(|khz| khz as f64 / 1e3)),
        missing,
    })
}

/// The sensors of the device's card; `lent` lives as long as they do.
pub(super) fn sensors(cuda: &CudaDevice, lent: Arc<()>) -> Result<NvmlSensors, String> {
    let name = cuda.device.name().map_err(|error| format!("the driver does not tell the device's name: {error}"))?;
    NvmlSensors::of(Card::at(&pci_address(cuda)), slice(&name).is_some(), lent)
}

pub(super) fn pci_address(cuda: &CudaDevice) -> Result<String, String> {
    let number = |attribute| cuda.attribute(attribute).map_err(|e| e.to_string());
    Ok(format!(
        "{:08x}:{:02x}:{:02x}.0",
        number(DeviceAttribute::PciDomainId)?,
        number(DeviceAttribute::PciBusId)?,
        number(DeviceAttribute::PciDeviceId)?
    ))
}

/// The id of the device or, on a divided card, of the slice.
pub(super) fn uuid(device: CustDevice) -> Result<String, DeviceError> {
    let mut id = cust::sys::CUuuid { bytes: [0; 16] };
    // SAFETY: `id` is a variable of this function, and the driver has counted the device.
    raw("asking for the device's id", unsafe { cust::sys::cuDeviceGetUuid_v2(&mut id, device.as_raw()) })?;
    let prefix = if device.name().is_ok_and(|name| slice(&name).is_some()) { "MIG" } else { "GPU" };
    let hex: String = id.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{prefix}-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// Work that runs on the device while the guard lives, about 5 ms at 4 TB/s.
struct Busy<'a> {
    cuda: &'a CudaDevice,
    buffer: DeviceBuffer<u8>,
}

impl<'a> Busy<'a> {
    fn start(cuda: &'a CudaDevice) -> Result<Self, DeviceError> {
        const BYTES: usize = 64 << 20;
        const PASSES: u8 = 200;
        // SAFETY: any bit pattern is a valid u8, and nothing reads the buffer.
        let buffer = unsafe { DeviceBuffer::uninitialized(BYTES) }.map_err(at_work("allocating 64 MiB on the device"))?;
        let busy = Self { cuda, buffer };
        for pass in 0..PASSES {
            // SAFETY: the buffer holds BYTES bytes and is freed only after `drop` has waited for the stream.
            let result = unsafe { cust::sys::cuMemsetD8Async(busy.buffer.as_device_ptr().as_raw(), pass, BYTES, cuda.stream.as_inner()) };
            raw("filling device memory", result)?;
        }
        Ok(busy)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        // A failure here shows in the next call on the stream.
        let _ = self.cuda.stream.synchronize();
    }
}

#[cfg(test)]
mod tests {
    use super::slice;

    #[test]
    fn the_name_of_a_slice_holds_its_profile() {
        assert_eq!(slice("NVIDIA A100-SXM4-40GB MIG 3g.20gb"), Some("3g.20gb"));
        assert_eq!(slice("NVIDIA H200"), None);
    }
}
