//! The management library of a card that is not there, beside the fake driver; `tests/common` builds it.
//!
//! It has the functions that hbmark reads while a case runs, and some of those that it reads once;
//! what it lacks is as with an older driver. The environment says what it shows:
//!
//! - `FAKE_NVML_REASONS`: the bits of reasons for lower clocks, 0 unless said;
//! - `FAKE_NVML_PIDS`: the processes on the card, `self` for this one, which alone is there unless said;
//! - `FAKE_NVML_HANGS`: when set, asking for a clock never returns;
//! - `FAKE_NVML_FAULT`: `<name> <code>`: every function whose name begins so answers with this code alone;
//! - `FAKE_NVML_TEXT`: the part number of the card and the version of its firmware, which it does not tell unless said.

use std::env;
use std::ffi::{c_char, c_void};

const INSUFFICIENT_SIZE: u32 = 7;
const NOT_SUPPORTED: u32 = 3;
/// Fields: temperature of the memory, power now.
const MEMORY_TEMPERATURE: u32 = 82;
const POWER_INSTANT: u32 = 186;
const UNSIGNED_INT: u32 = 1;

#[repr(C)]
pub struct FieldValue {
    field: u32,
    scope: u32,
    timestamp: i64,
    latency_us: i64,
    value_type: u32,
    result: u32,
    value: u64,
}

#[repr(C)]
pub struct Process {
    pid: u32,
    memory_bytes: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

type Device = *mut c_void;

macro_rules! nvml {
    ($($name:ident($($argument:ident: $type:ty),*) => $body:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) -> u32 {
            match fault(stringify!($name)) {
                0 => $body,
                code => code,
            }
        })*
    };
}

/// The code that a function answers with instead of doing anything; 0 for none.
fn fault(function: &str) -> u32 {
    let fault = env::var("FAKE_NVML_FAULT").unwrap_or_default();
    fault.split_once(' ').filter(|(name, _)| function.starts_with(name)).map_or(0, |(_, code)| code.parse().unwrap())
}

nvml! {
    nvmlInit_v2() => 0;
    nvmlShutdown() => 0;
    nvmlSystemGetDriverVersion(text: &mut [u8; 80], _length: u32) => {
        text[..10].copy_from_slice(b"580.159.04");
        0
    };
    nvmlDeviceGetHandleByPciBusId_v2(_address: *const c_char, device: &mut usize) => give(device, 1);

    nvmlDeviceGetClockInfo(_device: Device, kind: u32, mhz: &mut u32) => {
        while env::var_os("FAKE_NVML_HANGS").is_some() {
            std::thread::park();
        }
        give(mhz, if kind == 2 { 3201 } else { 1980 })
    };
    nvmlDeviceGetPerformanceState(_device: Device, state: &mut u32) => give(state, 0);
    nvmlDeviceGetCurrentClocksThrottleReasons(_device: Device, bits: &mut u64) => {
        give(bits, env::var("FAKE_NVML_REASONS").ok().and_then(|text| text.parse().ok()).unwrap_or(0))
    };
    nvmlDeviceGetTemperature(_device: Device, _sensor: u32, celsius: &mut u32) => give(celsius, 41);
    nvmlDeviceGetFieldValues(_device: Device, _count: i32, field: &mut FieldValue) => {
        let value = match field.field {
            MEMORY_TEMPERATURE => Some(52),
            POWER_INSTANT => Some(600_000),
            _ => None,
        };
        (field.value_type, field.result, field.value) = (UNSIGNED_INT, value.map_or(NOT_SUPPORTED, |_| 0), value.unwrap_or(0));
        0
    };
    nvmlDeviceGetTotalEnergyConsumption(_device: Device, _millijoules: &mut u64) => NOT_SUPPORTED;
    nvmlDeviceGetCurrPcieLinkGeneration(_device: Device, generation: &mut u32) => give(generation, 5);
    nvmlDeviceGetCurrPcieLinkWidth(_device: Device, lanes: &mut u32) => give(lanes, 16);
    nvmlDeviceGetComputeRunningProcesses_v3(_device: Device, count: &mut u32, processes: *mut Process) => {
        let text = env::var("FAKE_NVML_PIDS").unwrap_or("self".into());
        let pids: Vec<u32> = text.split(',').filter_map(|pid| if pid == "self" { Some(std::process::id()) } else { pid.parse().ok() }).collect();
        let room = *count as usize;
        *count = pids.len() as u32;
        if room < pids.len() {
            INSUFFICIENT_SIZE
        } else {
            for (n, pid) in pids.into_iter().enumerate() {
                // SAFETY: the caller has room for `room` of them.
                unsafe { processes.add(n).write(Process { pid, memory_bytes: 0, gpu_instance: u32::MAX, compute_instance: u32::MAX }) };
            }
            0
        }
    };

    nvmlDeviceGetBoardPartNumber(_device: Device, text: *mut u8, length: u32) => tell(text, length);
    nvmlDeviceGetVbiosVersion(_device: Device, text: *mut u8, length: u32) => tell(text, length);
    nvmlDeviceGetMigMode(_device: Device, current: &mut u32, pending: &mut u32) => give(current, 0) | give(pending, 0);
    nvmlDeviceGetEccMode(_device: Device, current: &mut u32, pending: &mut u32) => give(current, 1) | give(pending, 1);
    nvmlDeviceGetPowerManagementDefaultLimit(_device: Device, milliwatts: &mut u32) => give(milliwatts, 700_000);
    nvmlDeviceGetPowerManagementLimit(_device: Device, milliwatts: &mut u32) => give(milliwatts, 650_000);
    nvmlDeviceGetEnforcedPowerLimit(_device: Device, milliwatts: &mut u32) => give(milliwatts, 650_000);
}

fn give<T>(place: &mut T, value: T) -> u32 {
    *place = value;
    0
}

/// `FAKE_NVML_TEXT`, with the zero that ends it.
fn tell(text: *mut u8, length: u32) -> u32 {
    let Ok(told) = env::var("FAKE_NVML_TEXT") else { return NOT_SUPPORTED };
    if told.len() >= length as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: the caller has room for `length` bytes.
    unsafe {
        text.copy_from_nonoverlapping(told.as_ptr(), told.len());
        text.add(told.len()).write(0);
    }
    0
}
