//! One plan on a CUDA device.

use std::ffi::c_void;

use cust::event::{Event, EventFlags};
use cust::function::Function;
use cust::memory::{CopyDestination, DeviceBuffer, mem_get_info};
use cust::stream::Stream;
use serde_json::json;

use super::CudaDevice;
use super::clock::{self, Clock, End};
use super::copies::{Copies, Lane};
use super::error::{at_work, raw};
use super::identity;
use super::memory::{Memory, poison};
use crate::device::{Device as _, DeviceError, Program, STATUS_START, Timing, Variant, Verification, machine};
use crate::pattern::data::POISON;
use crate::pattern::{Arg, Buffer, BufferCopy, Content, Data, Launch, Plan, Way, Work, eviction_bytes};

/// Launches of a long check where the driver limits them. GeForce cards compute in f64 at 1/64 of
/// their f32 rate, so a check takes far longer than the case that it checks.
const SLICES_LIMITED: u64 = 64;

/// Enough blocks to keep any card's memory busy; kernels that fill stride over the rest.
const FILLING_BLOCKS: u32 = 2048;

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
    Copies(Copies),
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
            Work::Copies(_) => None,
        };
        for module in ["content", clock::MODULE, plan.check.module].into_iter().chain(work_module) {
            device.modules.ensure(module, device.capability)?;
        }
        let device: &'a CudaDevice = device;
        let units = device.units()?;
        let free_bytes = || mem_get_info().map(|(free, _)| free as u64).map_err(at_work("asking for the free memory"));
        let free_before = free_bytes()?;
        let mut memory = plan.buffers.iter().map(Memory::new).collect::<Result<Vec<_>, _>>()?;
        let taken_bytes = free_before.saturating_sub(free_bytes()?);
        memory.iter_mut().try_for_each(Memory::mirror)?;
        // SAFETY: any bit pattern is a valid u64, and `verify` sets the words before a check adds to them.
        let status = unsafe { DeviceBuffer::<u64>::uninitialized(STATUS_START.len()) }.map_err(at_work("allocating the status words"))?;
        let work = match plan.work {
            Work::Kernel(ref launch) => Task::Kernel(ready(device, launch, &addresses(&memory), &[])?),
            Work::Copies(ref copies) => Task::Copies(Copies::new(&lanes(copies, plan, &memory)?)?),
        };
        let event = || Event::new(EventFlags::DEFAULT).map_err(at_work("creating an event"));
        let clock = Clock::new(device, units)?;
        let (data, other_memory) = (None, None);
        let (check, compared) = (plan.check.clone(), plan.compared);
        let mut program = Self {
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
        for memory in &mut program.memory {
            for guard in memory.guards().into_iter().filter(|guard| !guard.is_empty()) {
                memory.poison(guard, &device.stream)?;
            }
        }
        Ok(program)
    }

    /// How many words beside the buffers are no longer poison.
    fn stray(&self) -> Result<u64, DeviceError> {
        let mut stray = 0;
        for memory in &self.memory {
            for guard in memory.guards().into_iter().filter(|guard| !guard.is_empty()) {
                stray += memory.fetch(guard)?.iter().filter(|&&word| word != POISON).count() as u64;
            }
        }
        Ok(stray)
    }

    fn fill(&mut self, index: usize, data: Data) -> Result<(), DeviceError> {
        let Buffer { bytes, content, .. } = self.plan.buffers[index];
        let (stream, memory) = (&self.device.stream, &mut self.memory[index]);
        let (kernel, seed, data_arg) = match content {
            Content::Poison => return memory.poison(memory.whole(), stream),
            Content::Words { seed } => ("fill_words", seed, Some(Arg::Data)),
            Content::Numbers { seed } => ("fill_f32", seed, Some(Arg::Data)),
            Content::Doubles { seed } => ("fill_f64", seed, Some(Arg::Data)),
            Content::Halves { seed } => ("fill_f16", seed, Some(Arg::Data)),
            Content::Cycle { seed } => ("fill_cycle", seed, Some(Arg::Data)),
            Content::Permutation { seed } => ("fill_permutation", seed, None),
        };
        let launch = Launch {
            module: "content",
            kernel,
            grid: FILLING_BLOCKS,
            block: 256,
            args: [Arg::Buffer(index), Arg::U64(bytes / 4), Arg::U32(seed)].into_iter().chain(data_arg).collect(),
            body: None,
        };
        ready(self.device, &launch, &addresses(&self.memory), &[(Arg::Data, u64::from(data.code()))])?.launch(stream)?;
        self.memory[index].copy_down(stream)
    }

    /// Records the start and asks for so many executions.
    fn enqueue(&self, executions: u32) -> Result<(), DeviceError> {
        let CudaDevice { stream, context, .. } = self.device;
        match &self.work {
            Task::Kernel(ready) => {
                self.start.record(stream).map_err(at_work("recording an event"))?;
                (0..executions).try_for_each(|_| ready.launch(stream))
            }
            Task::Copies(copies) => copies.enqueue(executions, context, stream, &self.start),
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

impl Drop for CudaProgram<'_> {
    fn drop(&mut self) {
        // After an error copies may be under way, and main memory must outlive them.
        if let Task::Copies(copies) = &self.work {
            copies.end();
            _ = self.device.stream.synchronize();
        }
    }
}

/// Where kernels find the buffers.
fn addresses(memory: &[Memory]) -> Vec<u64> {
    memory.iter().map(Memory::address_for_kernels).collect()
}

/// The copies between buffers.
fn lanes(copies: &[BufferCopy], plan: &Plan, memory: &[Memory]) -> Result<Vec<Lane>, DeviceError> {
    let side = |buffer: usize| (memory[buffer].address(), memory[buffer].is_on_device());
    let lane = |copy: &BufferCopy| {
        let lane = Lane::new(side(copy.from), side(copy.to), plan.buffers[copy.from].bytes as usize);
        lane.ok_or_else(|| DeviceError::Failed("the engines of a card copy nothing within main memory".into()))
    };
    copies.iter().map(lane).collect()
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
            Task::Copies(copies) => {
                variant.insert("call".into(), json!(copies.names().join(" + ")));
            }
        }
        // Main memory that hangs on another processor than the card takes a longer way.
        if self.memory.iter().any(|memory| !memory.is_on_device())
            && let Some(node) = identity::pci_address(self.device).ok().and_then(|address| machine::numa_node(&address))
        {
            variant.insert("card_numa_node".into(), json!(node));
        }
        variant
    }

    fn execute(&mut self, executions: u32) -> Result<Timing, DeviceError> {
        let stream = &self.device.stream;
        self.clock.clear(stream)?;
        self.clock.stamp(stream, End::Before)?;
        self.enqueue(executions)?;
        self.end.record(stream).map_err(at_work("recording an event"))?;
        self.clock.stamp(stream, End::After)?;
        self.synchronize("running the case")?;
        let ms = self.end.elapsed_time_f32(&self.start).map_err(at_work("reading the events"))?;
        Ok(Timing { ns: f64::from(ms) * 1e6, sm_clock_mhz: self.clock.mhz()? })
    }

    fn take(&mut self, way: &Way) -> Result<(), DeviceError> {
        self.work = Task::Kernel(ready(self.device, &way.work, &addresses(&self.memory), &[])?);
        (self.check, self.compared) = (way.check.clone(), way.compared);
        Ok(())
    }

    fn evict_caches(&mut self) -> Result<(), DeviceError> {
        if self.other_memory.is_none() {
            let words = eviction_bytes(&self.device.facts()?) / 4;
            // SAFETY: any bit pattern is a valid word, and all of it is set below.
            let memory = unsafe { DeviceBuffer::uninitialized(words as usize) };
            let memory = memory.map_err(at_work("allocating memory to fill the caches with"))?;
            poison(memory.as_device_ptr().as_raw(), words as usize, &self.device.stream)?;
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
        let outputs = self.memory.iter().zip(&self.plan.buffers).filter(|(_, buffer)| buffer.content == Content::Poison);
        outputs.into_iter().try_for_each(|(memory, _)| memory.copy_up(&self.device.stream))?;
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
            ready(self.device, check, &addresses(&self.memory), &bound.collect::<Vec<_>>())?.launch(&self.device.stream)?;
        }
        self.synchronize("checking the results")?;
        let mut status = STATUS_START;
        self.status.copy_to(&mut status).map_err(at_work("reading the check's result"))?;
        Ok(Verification::from_status(status, self.compared, self.stray()?))
    }

    fn read(&mut self, buffer: usize) -> Result<Vec<u32>, DeviceError> {
        let memory = &self.memory[buffer];
        memory.fetch(memory.whole())
    }

    fn alter(&mut self, buffer: usize, change: &dyn Fn(&mut [u32])) -> Result<(), DeviceError> {
        let memory = &mut self.memory[buffer];
        let part = memory.with_guard();
        let mut words = memory.fetch(part.clone())?;
        change(&mut words);
        memory.store(part.start, &words)
    }
}
