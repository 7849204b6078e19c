//! One plan on a CUDA device.

use std::ffi::c_void;

use cust::event::{Event, EventFlags};
use cust::function::Function;
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::Stream;
use serde_json::json;

use super::CudaDevice;
use super::clock::{self, Clock, End};
use super::error::{at_work, raw};
use crate::device::{Device, DeviceError, Program, STATUS_START, Timing, Variant, Verification};
use crate::pattern::{Arg, Buffer, Content, Launch, Plan, Work, data};

/// Buffers start at multiples of this: one large page of the GPU.
const ALIGNMENT: u64 = 2 << 20;

/// A kernel looked up once, with its arguments in the form that the driver takes.
struct Ready<'a> {
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
    addresses: Vec<u64>,
    status: DeviceBuffer<u64>,
    work: Task<'a>,
    check: Ready<'a>,
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
            device.modules.ensure(module)?;
        }
        let mut offsets = Vec::with_capacity(plan.buffers.len());
        let mut total = 0u64;
        for buffer in &plan.buffers {
            offsets.push(total);
            total += buffer.bytes.next_multiple_of(ALIGNMENT);
        }
        let base = device.reserve(total)?.as_raw();
        let units = device.facts()?.units;
        let device: &'a CudaDevice = device;
        let addresses: Vec<u64> = offsets.iter().map(|offset| base + offset).collect();
        // SAFETY: any bit pattern is a valid u64, and `verify` sets the words before a check adds to them.
        let status = unsafe { DeviceBuffer::<u64>::uninitialized(STATUS_START.len()) }.map_err(at_work("allocating the status words"))?;
        let status_address = status.as_device_ptr().as_raw();
        let work = match plan.work {
            Work::Kernel(ref launch) => Task::Kernel(ready(device, launch, &addresses, status_address)?),
            Work::Copy { from, to } => Task::Copy { from: addresses[from], to: addresses[to], bytes: plan.buffers[from].bytes as usize },
        };
        let event = || Event::new(EventFlags::DEFAULT).map_err(at_work("creating an event"));
        let program = Self {
            device,
            plan,
            work,
            check: ready(device, &plan.check, &addresses, status_address)?,
            addresses,
            status,
            clock: Clock::new(device, units)?,
            start: event()?,
            end: event()?,
        };
        for index in 0..plan.buffers.len() {
            program.fill(index)?;
        }
        program.synchronize("filling the buffers")?;
        Ok(program)
    }

    fn fill(&self, index: usize) -> Result<(), DeviceError> {
        let Buffer { bytes, content } = self.plan.buffers[index];
        let address = self.addresses[index];
        let words = bytes / 4;
        let (kernel, seed) = match content {
            Content::Poison => {
                // SAFETY: the buffer holds `words` words at `address`.
                let result = unsafe { cust::sys::cuMemsetD32Async(address, data::POISON, words as usize, self.device.stream.as_inner()) };
                return raw("poisoning an output", result);
            }
            Content::RandomWords { seed } => ("fill_random_words", seed),
            Content::RandomF32 { seed } => ("fill_random_f32", seed),
        };
        // Enough blocks to keep any card's memory busy; the kernel strides over the rest.
        let launch = Launch {
            module: "content",
            kernel,
            grid: 2048,
            block: 256,
            args: vec![Arg::Buffer(index), Arg::U64(words), Arg::U32(seed)],
            body: None,
        };
        ready(self.device, &launch, &self.addresses, 0)?.launch(&self.device.stream)
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

fn ready<'a>(device: &'a CudaDevice, launch: &Launch, addresses: &[u64], status: u64) -> Result<Ready<'a>, DeviceError> {
    let function = device
        .modules
        .get(launch.module)?
        .get_function(launch.kernel)
        .map_err(at_work(&format!("looking up the kernel '{}'", launch.kernel)))?;
    let args = launch
        .args
        .iter()
        .map(|arg| match *arg {
            Arg::Buffer(index) => addresses[index],
            Arg::U64(value) => value,
            Arg::U32(value) => u64::from(value),
            Arg::F32(value) => u64::from(value.to_bits()),
            Arg::Status => status,
        })
        .collect();
    Ok(Ready { name: launch.kernel, function, grid: launch.grid, block: launch.block, args })
}

impl Program for CudaProgram<'_> {
    fn variant(&self) -> Variant {
        let mut variant = Variant::new();
        match &self.plan.work {
            Work::Kernel(launch) => {
                variant.insert("kernel".into(), json!(launch.kernel));
                variant.insert("grid".into(), json!(launch.grid));
                variant.insert("block".into(), json!(launch.block));
                variant.insert("target".into(), json!(self.device.modules.target(launch.module)));
            }
            Work::Copy { .. } => {
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

    fn verify(&mut self) -> Result<Verification, DeviceError> {
        for (index, buffer) in self.plan.buffers.iter().enumerate() {
            if buffer.content == Content::Poison {
                self.fill(index)?;
            }
        }
        for (index, word) in STATUS_START.into_iter().enumerate() {
            self.set_status(index, word)?;
        }
        self.enqueue()?;
        self.check.launch(&self.device.stream)?;
        self.synchronize("checking the results")?;
        let mut status = STATUS_START;
        self.status.copy_to(&mut status).map_err(at_work("reading the check's result"))?;
        Ok(Verification::from_status(status, self.plan.compared))
    }
}
