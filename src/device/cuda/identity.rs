//! Who a CUDA device is, from the driver and from NVML.

use cust::device::DeviceAttribute;
use cust::memory::{DeviceBuffer, mem_get_info};

use super::CudaDevice;
use super::error::{at_work, raw};
use super::nvml::Card;
use crate::device::{DeviceError, machine};
use crate::pattern::DeviceKind;
use crate::record::{self, Memory, Missing, known, slug};

pub(super) fn identity(cuda: &CudaDevice) -> Result<record::Device, DeviceError> {
    let name = cuda.device.name().map_err(at_work("asking for the device's name"))?;
    let address = pci_address(cuda);
    let card = Card::at(&address);
    let mut missing = Missing::new();
    let (major, minor) =
        (cuda.attribute(DeviceAttribute::ComputeCapabilityMajor)?, cuda.attribute(DeviceAttribute::ComputeCapabilityMinor)?);
    let sliced = card.is_sliced();
    let mut virtualization = machine::virtualization();
    virtualization.vgpu = known(&mut virtualization.missing, "vgpu", card.virtualization());
    virtualization.mig_profile = known(
        &mut virtualization.missing,
        "mig_profile",
        sliced.and_then(|sliced| if sliced { Err(format!("a slice; its name is '{name}'")) } else { Ok("none".into()) }),
    );
    for (field, value) in [("vgpu", &virtualization.vgpu), ("mig_profile", &virtualization.mig_profile)] {
        if value.is_some() {
            virtualization.missing.remove(field);
        }
    }
    Ok(record::Device {
        kind: DeviceKind::Cuda,
        card: slug(&name),
        index: Some(cuda.index),
        uuid: known(&mut missing, "uuid", uuid(cuda).map_err(|e| e.to_string())),
        pci_device_id: known(&mut missing, "pci_device_id", card.pci_device_id()),
        pci_address: known(&mut missing, "pci_address", address),
        serial: known(&mut missing, "serial", card.serial()),
        part_number: known(&mut missing, "part_number", card.part_number()),
        vbios: known(&mut missing, "vbios", card.vbios()),
        driver_version: known(&mut missing, "driver_version", card.driver_version()),
        cuda_version: Some(format!("{}.{}", cuda.driver_cuda.0, cuda.driver_cuda.1)),
        compute_capability: Some(format!("{major}.{minor}")),
        units: cuda.attribute(DeviceAttribute::MultiprocessorCount)?.max(0) as u32,
        sm_clock_max_mhz: known(&mut missing, "sm_clock_max_mhz", cuda.positive(DeviceAttribute::ClockRate).map(|khz| khz as f64 / 1e3)),
        memory: memory(cuda)?,
        ecc: card.ecc(),
        remapped_rows: card.remapped_rows(),
        pcie: {
            let _busy = keep_busy(cuda)?;
            card.pcie()
        },
        virtualization,
        name,
        missing,
    })
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

fn pci_address(cuda: &CudaDevice) -> Result<String, String> {
    let number = |attribute| cuda.attribute(attribute).map_err(|e| e.to_string());
    Ok(format!(
        "{:08x}:{:02x}:{:02x}.0",
        number(DeviceAttribute::PciDomainId)?,
        number(DeviceAttribute::PciBusId)?,
        number(DeviceAttribute::PciDeviceId)?
    ))
}

/// The id of the device or, on a divided card, of the slice.
pub(super) fn uuid(cuda: &CudaDevice) -> Result<String, DeviceError> {
    let mut id = cust::sys::CUuuid { bytes: [0; 16] };
    // SAFETY: `id` is a variable of this function, and the device was opened.
    raw("asking for the device's id", unsafe { cust::sys::cuDeviceGetUuid_v2(&mut id, cuda.device.as_raw()) })?;
    let hex: String = id.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// Work that runs on the device while the guard lives, about 20 ms at 1 TB/s.
fn keep_busy(cuda: &CudaDevice) -> Result<Busy<'_>, DeviceError> {
    const BYTES: usize = 64 << 20;
    const PASSES: usize = 320;
    // SAFETY: any bit pattern is a valid u8, and nothing reads the buffer.
    let buffer = unsafe { DeviceBuffer::<u8>::uninitialized(BYTES) }.map_err(at_work("allocating 64 MiB on the device"))?;
    for pass in 0..PASSES {
        // SAFETY: the buffer holds BYTES bytes and outlives the work: the guard waits for it.
        let result = unsafe { cust::sys::cuMemsetD8Async(buffer.as_device_ptr().as_raw(), pass as u8, BYTES, cuda.stream.as_inner()) };
        raw("filling device memory", result)?;
    }
    Ok(Busy { cuda, _buffer: buffer })
}

struct Busy<'a> {
    cuda: &'a CudaDevice,
    _buffer: DeviceBuffer<u8>,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        // A failure here shows in the next call on the stream.
        let _ = self.cuda.stream.synchronize();
    }
}
