//! A driver without a GPU, for tests of the whole program; `tests/common` builds it.
//!
//! It answers what hbmark asks and computes nothing: its memory holds poison, and each launch
//! takes 3 ms of its clock unless said otherwise: the default sizes then stay under the peak of its memory. Checks of
//! writes and copies find everything right; those of reads and arithmetic, of which a launch
//! does not tell how much they compare, find too little compared.
//! The environment says what the driver shows:
//!
//! - `FAKE_DEVICES`: how many devices, 1 unless said;
//! - `FAKE_NAME`: the name of each;
//! - `FAKE_CUDA`: the CUDA version, as `cuDriverGetVersion` gives it;
//! - `FAKE_CAPABILITY`: the major compute capability of each device, 9 unless said;
//! - `FAKE_LAUNCH_MS`: the milliseconds that a launch takes;
//! - `FAKE_WRONG`: `<compared> <wrong> <first>`: each check that compares so many results finds so many wrong,
//!   the first of them at this index;
//! - `FAKE_ROOM`: the largest allocation in bytes that succeeds;
//! - `FAKE_FAULT`: `<function> <n> <what>`: from the n-th call of this function in a process on, every call
//!   that means device 0 returns the code `what`, as after an error from which a context does not recover.
//!   In place of a code, `hang` never returns and `crash` ends the process;
//! - `FAKE_ONCE`: a file that the fault makes when it strikes, and that keeps it from striking again:
//!   later processes find the device well;
//! - `FAKE_AFTERWARDS`: or they get this code from every call that means device 0.

use std::env;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};

const TOTAL_BYTES: usize = 141 << 30;
const FREE_BYTES: usize = 140 << 30;

/// What calls mean that concern no device.
const NO_DEVICE: i32 = -1;

/// The device of the current context.
static CURRENT: AtomicI32 = AtomicI32::new(0);
/// Milliseconds.
static CLOCK: AtomicU64 = AtomicU64::new(0);
/// How many results the last kernel compared, if it was a check of writes or copies.
static COMPARED: AtomicU64 = AtomicU64::new(0);
/// What has been allocated and not freed.
static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);

fn setting<T: FromStr>(name: &str, default: T) -> T {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What a call of `function` that means `device` returns instead of doing anything; 0 for nothing.
fn fault(function: &str, device: i32) -> u32 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    static LOST: AtomicU32 = AtomicU32::new(0);
    if device != 0 {
        return 0;
    }
    let lost = LOST.load(SeqCst);
    let once = env::var("FAKE_ONCE").unwrap_or_default();
    if lost != 0 {
        return lost;
    } else if !once.is_empty() && Path::new(&once).exists() {
        return setting("FAKE_AFTERWARDS", 0);
    }
    let fault = env::var("FAKE_FAULT").unwrap_or_default();
    if let [name, nth, what] = fault.split(' ').collect::<Vec<_>>()[..]
        && name == function
        && (CALLS.fetch_add(1, SeqCst) + 1).to_string() == nth
    {
        if !once.is_empty() {
            std::fs::write(once, "").unwrap();
        }
        match what {
            "hang" => loop {
                std::thread::park();
            },
            "crash" => std::process::abort(),
            code => LOST.store(code.parse().unwrap(), SeqCst),
        }
    }
    LOST.load(SeqCst)
}

/// Defines functions of the driver: each with the device that it means and the code that it returns.
macro_rules! driver {
    ($($name:ident($($argument:ident: $type:ty),*) on $device:expr => $body:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) -> u32 {
            match fault(stringify!($name), $device) {
                0 => $body,
                code => code,
            }
        })*
    };
}

driver! {
    // Device 0 stands for the whole driver here, so that it can be told to fail from the start.
    cuInit(_flags: u32) on 0 => 0;
    cuDriverGetVersion(version: &mut i32) on NO_DEVICE => give(version, setting("FAKE_CUDA", 12020));
    cuDeviceGetCount(count: &mut i32) on NO_DEVICE => give(count, setting("FAKE_DEVICES", 1));

    cuDeviceGet(device: &mut i32, ordinal: i32) on ordinal => give(device, ordinal);
    cuDeviceGetName(name: &mut [u8; 128], _length: i32, device: i32) on device => {
        let text = setting("FAKE_NAME", "NVIDIA Fake".to_owned());
        name[..text.len()].copy_from_slice(text.as_bytes());
        give(&mut name[text.len()], 0)
    };
    cuDeviceGetUuid_v2(uuid: &mut [u8; 16], device: i32) on device => give(uuid, [device as u8; 16]);
    cuDeviceTotalMem_v2(bytes: &mut usize, device: i32) on device => give(bytes, TOTAL_BYTES);
    cuDeviceGetAttribute(value: &mut i32, attribute: i32, device: i32) on device => give(value, match attribute {
        13 => 1_980_000,  // clock, kHz
        16 => 132,        // multiprocessors
        33 => device + 1, // bus
        36 => 3_201_000,  // memory clock, kHz
        37 => 6016,       // width of the memory bus, bits
        38 => 60 << 20,   // L2, bytes
        39 => 2048,       // threads a multiprocessor
        75 => setting("FAKE_CAPABILITY", 9),
        _ => 0,
    });

    cuDevicePrimaryCtxRetain(context: &mut usize, device: i32) on device => give(context, device as usize + 1);
    cuDevicePrimaryCtxRelease_v2(device: i32) on device => 0;
    cuCtxSetCurrent(context: usize) on select(context) => 0;

    cuModuleLoadDataEx(module: &mut usize, _image: usize, _n: u32, _options: usize, _values: usize) on current() => give(module, 1);
    cuModuleUnload(_module: usize) on current() => 0;
    cuModuleGetFunction(function: &mut usize, _module: usize, _name: usize) on current() => give(function, 1);
    cuLaunchKernel(
        _function: usize, _grid: u32, _grid_y: u32, _grid_z: u32, _block: u32, _block_y: u32, _block_z: u32,
        _shared: u32, _stream: usize, arguments: &[&u64; 2], _extra: usize
    ) on current() => {
        COMPARED.store(*arguments[1], SeqCst);
        tick()
    };

    cuMemGetInfo_v2(free: &mut usize, total: &mut usize) on current() => {
        give(free, FREE_BYTES - HELD_BYTES.load(SeqCst));
        give(total, TOTAL_BYTES)
    };
    cuMemAlloc_v2(pointer: &mut u64, bytes: usize) on current() => {
        if bytes > setting("FAKE_ROOM", FREE_BYTES) {
            return 2;
        }
        // The size can be told from the pointer, which lies beyond all that a card has.
        HELD_BYTES.fetch_add(bytes, SeqCst);
        give(pointer, (bytes as u64) << 8 | 1 << 63)
    };
    cuMemFree_v2(pointer: u64) on current() => {
        HELD_BYTES.fetch_sub((pointer << 1 >> 9) as usize, SeqCst);
        0
    };
    cuMemsetD8Async(_to: u64, _value: u8, _count: usize, _stream: usize) on current() => 0;
    cuMemsetD32Async(_to: u64, _value: u32, _count: usize, _stream: usize) on current() => 0;
    cuMemcpyDtoDAsync_v2(_to: u64, _from: u64, _bytes: usize, _stream: usize) on current() => tick();
    cuMemcpyHtoDAsync_v2(_to: u64, _from: usize, _bytes: usize, _stream: usize) on current() => tick();
    cuMemcpyDtoHAsync_v2(_to: usize, _from: u64, _bytes: usize, _stream: usize) on current() => tick();
    cuMemAllocHost_v2(pointer: &mut *mut u64, bytes: usize) on current() => give(pointer, Vec::leak(vec![0; bytes.div_ceil(8)]).as_mut_ptr());
    cuMemFreeHost(_pointer: usize) on current() => 0;
    cuMemcpyDtoH_v2(to: *mut u32, _from: u64, bytes: usize) on current() => read(to, bytes);

    cuStreamCreateWithPriority(stream: &mut usize, _flags: u32, _priority: i32) on current() => give(stream, 1);
    cuStreamSynchronize(_stream: usize) on current() => 0;
    cuStreamWaitEvent(_stream: usize, _event: &AtomicU64, _flags: u32) on current() => 0;
    cuStreamDestroy_v2(_stream: usize) on current() => 0;

    cuEventCreate(event: &mut &AtomicU64, _flags: u32) on current() => give(event, Box::leak(Box::default()));
    cuEventRecord(event: &AtomicU64, _stream: usize) on current() => {
        event.store(CLOCK.load(SeqCst), SeqCst);
        0
    };
    cuEventSynchronize(_event: &AtomicU64) on current() => 0;
    cuEventElapsedTime(milliseconds: &mut f32, start: &AtomicU64, end: &AtomicU64) on current() => {
        give(milliseconds, (end.load(SeqCst) - start.load(SeqCst)) as f32)
    };
    cuEventDestroy_v2(_event: &AtomicU64) on current() => 0;
}

/// The four status words of a check, or poison.
fn read(to: *mut u32, bytes: usize) -> u32 {
    // SAFETY: the caller has room for so many bytes.
    let words = unsafe { std::slice::from_raw_parts_mut(to, bytes / 4) };
    match words {
        [status @ ..] if status.len() == 8 => {
            let compared = COMPARED.load(SeqCst);
            let wrong = env::var("FAKE_WRONG").unwrap_or_default();
            let (mismatches, first) = match wrong.split(' ').map(|n| n.parse().unwrap_or(0)).collect::<Vec<u64>>()[..] {
                [these, mismatches, first] if these == compared => (mismatches, first),
                _ => (0, u64::MAX),
            };
            let words = [mismatches, first, 0, compared].map(|word| [word as u32, (word >> 32) as u32]);
            status.copy_from_slice(words.as_flattened());
        }
        other => other.fill(0xFFFF_DEAD),
    }
    0
}

fn give<T>(place: &mut T, value: T) -> u32 {
    *place = value;
    0
}

fn current() -> i32 {
    CURRENT.load(SeqCst)
}

/// Makes a context current, and says whose it is: contexts are numbered from 1.
fn select(context: usize) -> i32 {
    CURRENT.store(context as i32 - 1, SeqCst);
    current()
}

fn tick() -> u32 {
    CLOCK.fetch_add(setting("FAKE_LAUNCH_MS", 3), SeqCst);
    0
}
