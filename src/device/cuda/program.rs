//! One plan on a CUDA device.

use std::ffi::c_void;

use cust::event::{Event, EventFlags};
use cust::function::Function;
use cust::memory::{CopyDestination, DeviceBuffer, mem_get_info};
use cust::stream::Stream;
use serde_json::json;

use super::CudaDevice;
use super::clock::{self, Clock, End};
use super::error::{at_work, raw};
use crate::device::{Device as _, DeviceError, GUARD_WORDS, Program, STATUS_START, Timing, Variant, Verification};
use crate::pattern::data::POISON;
use crate::pattern::{Arg, Buffer, Content, Data, Launch, Plan, Way, Work, eviction_bytes};

const GUARD_BYTES: u64 = GUARD_WORDS * 4;
/// Launches of a long check where the driver limits them. GeForce cards compute in f64 at 1/64 of
/// their f32 rate, so a check takes far longer than the case that it checks.
const SLICES_LIMITED: u64 = 64;

/// Enough blocks to keep any card's memory busy; kernels that fill stride over the rest.
const FILLING_BLOCKS: u32 = 2048;

/// Memory of one buffer of a plan. Each is an allocation of its own and of its exact length,
/// so that tools which watch memory see a step beyond it; outputs have guards within theirs.
struct Memory {
    allocation: DeviceBuffer<u32>,
    /// Words before the buffer and after it.
    guard: u64,
}

impl Memory {
    fn new(buffer: &Buffer) -> Result<Self, DeviceError> {
        let guard = if buffer.content == Content::Poison { GUARD_WORDS } else { 0 };
        let words = usize::try_from(buffer.bytes / 4 + 2 * guard)
            .map_err(|_| DeviceError::OutOfMemory(format!("{} bytes exceed this machine's addresses", buffer.bytes)))?;
        // SAFETY: any bit pattern is a valid word, and `load` and `prepare` fill all of it.
        let allocation = unsafe { DeviceBuffer::uninitialized(words) };
        let allocation = allocation.map_err(at_work(&format!("allocating {} MiB on the device", buffer.bytes >> 20)))?;
        Ok(Self { allocation, guard })
    }

    /// Where the buffer begins.
    fn address(&self) -> u64 {
        self.allocation.as_device_ptr().as_raw() + self.guard * 4
    }

    /// Where the guards begin, on both sides.
    fn guards(&self) -> Option<[u64; 2]> {
        let start = self.allocation.as_device_ptr().as_raw();
        (self.guard > 0).then(|| [start, start + self.allocation.len() as u64 * 4 - GUARD_BYTES])
    }
}

/// A kernel looked up once, with its arguments in the form that the driver takes.
struct Ready<'a> {
    module: &'static str,
    name: &'static str,
    function: Function<'a>,
    grid: u32,
    block: u32,
    /// Each argument in the low bytes of eight, where the driver reads as many as
    /// the kernel's signature says (all targets of CUDA are little-endian).
    args: Vec<u64>,
}

impl Ready<'_> {
    fn launch(&self, stream: &Stream) -> Result<(), DeviceError> {
        let pointers: Vec<*mut c_void> = self.args.iter().map(|arg| std::ptr::from_ref(arg).cast_mut().cast()).collect();
        // SAFETY: the plan's arguments are those of the kernel's signature, in its
        // order; every address lies in memory that `CudaProgram` holds, and the
        // kernels stay within the sizes that they are given.
        let launched = unsafe { stream.launch(&self.function, self.grid, self.block, 0, &pointers) };
        launched.map_err(at_work(&format!("launching '{}'", self.name)))
    }
}

/// The timed work in the form that is enqueued.
enum Task<'a> {
    Kernel(Ready<'a>),
    Copy { from: u64, to: u64, bytes: usize },
}

/// A plan with its buffers filled and its kernels loaded.
pub(super) struct CudaProgram<'a> {
    device: &'a CudaDevice,
    plan: &'a Plan,
    memory: Vec<Memory>,
    status: DeviceBuffer<u64>,
    work: Task<'a>,
    check: Launch,
    /// How many results the check compares.
    compared: u64,
    /// What the inputs hold; none before they were filled.
    data: Option<Data>,
    /// By how much the free memory fell for the buffers, in bytes.
    taken_bytes: u64,
    /// What is read to fill the caches; none before that was asked for.
    other_memory: Option<DeviceBuffer<u32>>,
    clock: Clock<'a>,
    start: Event,
    end: Event,
}

impl<'a> CudaProgram<'a> {
    pub fn load(device: &'a mut CudaDevice, plan: &'a Plan) -> Result<Self, DeviceError> {
        let work_module = match &plan.work {
            Work::Kernel(launch) => Some(launch.module),
            Work::Copy { .. } => None,
        };
        for module in ["content", clock::MODULE, plan.check.module].into_iter().chain(work_module) {
            device.modules.ensure(module, device.capability)?;
        }
        let device: &'a CudaDevice = device;
        let units = device.units()?;
        let free_bytes = || mem_get_info().map(|(free, _)| free as u64).map_err(at_work("asking for the free memory"));
        let free_before = free_bytes()?;
        let memory = plan.buffers.iter().map(Memory::new).collect::<Result<Vec<_>, _>>()?;
        let taken_bytes = free_before.saturating_sub(free_bytes()?);
        let addresses: Vec<u64> = memory.iter().map(Memory::address).collect();
        // SAFETY: any bit pattern is a valid u64, and `verify` sets the words before a check adds to them.
        let status = unsafe { DeviceBuffer::<u64>::uninitialized(STATUS_START.len()) }.map_err(at_work("allocating the status words"))?;
        let work = match plan.work {
            Work::Kernel(ref launch) => Task::Kernel(ready(device, launch, &addresses, &[])?),
            Work::Copy { from, to } => Task::Copy { from: addresses[from], to: addresses[to], bytes: plan.buffers[from].bytes as usize },
        };
        let event = || Event::new(EventFlags::DEFAULT).map_err(at_work("creating an event"));
        let clock = Clock::new(device, units)?;
        let (data, other_memory) = (None, None);
        let (check, compared) = (plan.check.clone(), plan.compared);
        let program = Self {
            device,
            plan,
            work,
            check,
            compared,
            data,
            taken_bytes,
            other_memory,
            memory,
            status,
            clock,
            start: event()?,
            end: event()?,
        };
        for address in program.guards() {
            program.poison(address, GUARD_BYTES)?;
        }
        Ok(program)
    }

    fn addresses(&self) -> Vec<u64> {
        self.memory.iter().map(Memory::address).collect()
    }

    /// Where the guards of all outputs begin.
    fn guards(&self) -> impl Iterator<Item = u64> {
        self.memory.iter().filter_map(Memory::guards).flatten()
    }

    /// Poisons memory of a buffer or a guard.
    fn poison(&self, address: u64, bytes: u64) -> Result<(), DeviceError> {
        // SAFETY: callers name buffers or guards, whose lengths are whole words.
        let result = unsafe { cust::sys::cuMemsetD32Async(address, POISON, (bytes / 4) as usize, self.device.stream.as_inner()) };
        raw("poisoning memory", result)
    }

    /// Memory of a buffer or a guard, copied here.
    fn fetch(&self, address: u64, words: usize) -> Result<Vec<u32>, DeviceError> {
        let mut copy = vec![0u32; words];
        // SAFETY: `copy` has room for the words, and callers name memory of an allocation.
        raw("reading memory", unsafe { cust::sys::cuMemcpyDtoH_v2(copy.as_mut_ptr().cast(), address, words * 4) })?;
        Ok(copy)
    }

    /// How many words beside the buffers are no longer poison.
    fn stray(&self) -> Result<u64, DeviceError> {
        let mut stray = 0;
        for address in self.guards() {
            stray += self.fetch(address, GUARD_WORDS as usize)?.iter().filter(|&&word| word != POISON).count() as u64;
        }
        Ok(stray)
    }

    fn fill(&self, index: usize, data: Data) -> Result<(), DeviceError> {
        let Buffer { bytes, content } = self.plan.buffers[index];
        let (kernel, seed) = match content {
            Content::Poison => return self.poison(self.memory[index].address(), bytes),
            Content::Words { seed } => ("fill_words", seed),
            Content::Numbers { seed } => ("fill_f32", seed),
            Content::Doubles { seed } => ("fill_f64", seed),
            Content::Halves { seed } => ("fill_f16", seed),
        };
        let launch = Launch {
            module: "content",
            kernel,
            grid: FILLING_BLOCKS,
            block: 256,
            args: vec![Arg::Buffer(index), Arg::U64(bytes / 4), Arg::U32(seed), Arg::Data],
            body: None,
        };
        ready(self.device, &launch, &self.addresses(), &[(Arg::Data, u64::from(data.code()))])?.launch(&self.device.stream)
    }

    fn enqueue(&self) -> Result<(), DeviceError> {
        match &self.work {
            Task::Kernel(ready) => ready.launch(&self.device.stream),
            &Task::Copy { from, to, bytes } => {
                // SAFETY: both buffers hold `bytes` bytes and do not overlap.
                raw("the copy engine", unsafe { cust::sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.device.stream.as_inner()) })
            }
        }
    }

    /// Sets one status word, in the stream's order.
    fn set_status(&self, index: usize, word: u64) -> Result<(), DeviceError> {
        for (half, value) in [word as u32, (word >> 32) as u32].into_iter().enumerate() {
            let address = self.status.as_device_ptr().as_raw() + (index * 8 + half * 4) as u64;
            // SAFETY: the address is of half a word of the status buffer.
            let result = unsafe { cust::sys::cuMemsetD32Async(address, value, 1, self.device.stream.as_inner()) };
            raw("resetting the check's result", result)?;
        }
        Ok(())
    }

    fn synchronize(&self, what: &str) -> Result<(), DeviceError> {
        self.device.stream.synchronize().map_err(at_work(what))
    }
}

/// Looks a kernel up and sets its arguments; `bound` has the values of those that a plan leaves open.
fn ready<'a>(device: &'a CudaDevice, launch: &Launch, addresses: &[u64], bound: &[(Arg, u64)]) -> Result<Ready<'a>, DeviceError> {
    let function = device
        .modules
        .get(launch.module)?
        .get_function(launch.kernel)
        .map_err(at_work(&format!("looking up the kernel '{}'", launch.kernel)))?;
    let value = |arg: &Arg| match *arg {
        Arg::Buffer(index) => Some(addresses[index]),
        Arg::U64(value) => Some(value),
        Arg::U32(value) => Some(u64::from(value)),
        Arg::F32(value) => Some(u64::from(value.to_bits())),
        Arg::Data | Arg::Tolerance(_) | Arg::Slice | Arg::Slices | Arg::Status => {
            bound.iter().find(|(open, _)| open == arg).map(|(_, value)| *value)
        }
    };
    let args: Option<Vec<u64>> = launch.args.iter().map(value).collect();
    let args = args.ok_or_else(|| DeviceError::Failed(format!("an argument of '{}' has no value", launch.kernel)))?;
    Ok(Ready { module: launch.module, name: launch.kernel, function, grid: launch.grid, block: launch.block, args })
}

impl Program for CudaProgram<'_> {
    fn variant(&self) -> Variant {
        let mut variant = Variant::new();
        match &self.work {
            Task::Kernel(ready) => {
                variant.insert("kernel".into(), json!(ready.name));
                variant.insert("grid".into(), json!(ready.grid));
                variant.insert("block".into(), json!(ready.block));
                variant.insert("target".into(), json!(self.device.modules.target(ready.module)));
            }
            Task::Copy { .. } => {
                variant.insert("call".into(), json!("cuMemcpyDtoDAsync"));
            }
        }
        variant
    }

    fn execute(&mut self, executions: u32) -> Result<Timing, DeviceError> {
        let stream = &self.device.stream;
        self.clock.clear(stream)?;
        self.clock.stamp(stream, End::Before)?;
        self.start.record(stream).map_err(at_work("recording an event"))?;
        for _ in 0..executions {
            self.enqueue()?;
        }
        self.end.record(stream).map_err(at_work("recording an event"))?;
        self.clock.stamp(stream, End::After)?;
        self.synchronize("running the case")?;
        let ms = self.end.elapsed_time_f32(&self.start).map_err(at_work("reading the events"))?;
        Ok(Timing { ns: f64::from(ms) * 1e6, sm_clock_mhz: self.clock.mhz()? })
    }

    fn take(&mut self, way: &Way) -> Result<(), DeviceError> {
        self.work = Task::Kernel(ready(self.device, &way.work, &self.addresses(), &[])?);
        (self.check, self.compared) = (way.check.clone(), way.compared);
        Ok(())
    }

    fn evict_caches(&mut self) -> Result<(), DeviceError> {
        if self.other_memory.is_none() {
            let words = eviction_bytes(&self.device.facts()?) / 4;
            // SAFETY: any bit pattern is a valid word, and all of it is set below.
            let memory = unsafe { DeviceBuffer::uninitialized(words as usize) };
            let memory = memory.map_err(at_work("allocating memory to fill the caches with"))?;
            self.poison(memory.as_device_ptr().as_raw(), words * 4)?;
            self.other_memory = Some(memory);
        }
        let Some(memory) = &self.other_memory else { return Ok(()) };
        let vectors = memory.len() as u64 / 4;
        let args = vec![Arg::Buffer(0), Arg::U64(vectors)];
        let launch = Launch { module: "content", kernel: "read_vectors", grid: FILLING_BLOCKS, block: 256, args, body: None };
        ready(self.device, &launch, &[memory.as_device_ptr().as_raw()], &[])?.launch(&self.device.stream)?;
        self.synchronize("filling the caches")
    }

    fn memory_taken_bytes(&self) -> Result<u64, String> {
        Ok(self.taken_bytes)
    }

    fn prepare(&mut self, data: Data) -> Result<(), DeviceError> {
        for (index, buffer) in self.plan.buffers.iter().enumerate() {
            if buffer.content == Content::Poison || self.data != Some(data) {
                self.fill(index, data)?;
            }
        }
        self.data = Some(data);
        self.synchronize("filling the buffers")
    }

    fn check(&mut self) -> Result<Verification, DeviceError> {
        let data = self.data.ok_or_else(|| DeviceError::Failed("the buffers were never filled".into()))?;
        for (index, word) in STATUS_START.into_iter().enumerate() {
            self.set_status(index, word)?;
        }
        let check = &self.check;
        let slices = if self.device.launch_limited()? && check.args.contains(&Arg::Slices) { SLICES_LIMITED } else { 1 };
        for slice in 0..slices {
            let bound = check.args.iter().filter_map(|&arg| match arg {
                Arg::Data => Some((arg, u64::from(data.code()))),
                Arg::Tolerance(tolerance) => Some((arg, u64::from(data.tolerance(tolerance).to_bits()))),
                Arg::Slice => Some((arg, slice)),
                Arg::Slices => Some((arg, slices)),
                Arg::Status => Some((arg, self.status.as_device_ptr().as_raw())),
                _ => None,
            });
            ready(self.device, check, &self.addresses(), &bound.collect::<Vec<_>>())?.launch(&self.device.stream)?;
        }
        self.synchronize("checking the results")?;
        let mut status = STATUS_START;
        self.status.copy_to(&mut status).map_err(at_work("reading the check's result"))?;
        Ok(Verification::from_status(status, self.compared, self.stray()?))
    }

    fn alter(&mut self, buffer: usize, change: &dyn Fn(&mut [u32])) -> Result<(), DeviceError> {
        let memory = &self.memory[buffer];
        let mut words = self.fetch(memory.address(), memory.allocation.len() - memory.guard as usize)?;
        change(&mut words);
        // SAFETY: the words came from there.
        raw("writing memory", unsafe { cust::sys::cuMemcpyHtoD_v2(memory.address(), words.as_ptr().cast(), words.len() * 4) })
    }
}
