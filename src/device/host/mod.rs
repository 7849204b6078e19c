//! The memory of this machine as a device: one worker thread a processor, vector
//! kernels, and checks of their results.

mod cache;
mod compute;
mod conv3d;
mod isa;
mod memory;
mod share;
mod stream;
mod stride;

use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::json;

use super::{Device, DeviceError, Program, Variant, Verification, machine};
use crate::pattern::{Arg, Buffer, Content, DeviceKind, Facts, Launch, Plan, Work, data};
use crate::record::{self, Ecc, Memory, Missing, Pcie, RemappedRows, known, slug};
use isa::{Isa, Kernel, Simd};
use memory::{Arena, Region};
use share::{Findings, Share};

/// The memory of this machine, through its processors.
pub struct HostDevice {
    pool: ThreadPool,
    isa: Isa,
    arena: Arena,
    cache: Result<u64, String>,
}

/// What one worker does in a launch.
type Task<R> = Box<dyn Fn(Share) -> R + Send + Sync>;

/// The timed work of a plan.
struct Timed {
    task: Task<()>,
    /// Whether bulk stores pass the caches; none where the work stores nothing in bulk.
    stores: Option<Stores>,
}

/// How bulk stores are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stores {
    /// Past the caches where the instruction set can.
    Streaming,
    /// Through the caches.
    Plain,
}

impl HostDevice {
    /// Starts one worker for each processor that this program may use.
    ///
    /// # Errors
    /// When the system starts no threads.
    pub fn open() -> Result<Self, DeviceError> {
        Self::with(Isa::best(), machine::cpus() as usize)
    }

    fn with(isa: Isa, workers: usize) -> Result<Self, DeviceError> {
        let pool = ThreadPoolBuilder::new().num_threads(workers).thread_name(|n| format!("host worker {n}")).build();
        let pool = pool.map_err(|e| DeviceError::Unusable(format!("cannot start {workers} worker threads: {e}")))?;
        Ok(Self { pool, isa, arena: Arena::default(), cache: cache::last_level_bytes() })
    }

    fn workers(&self) -> u32 {
        self.pool.current_num_threads() as u32
    }
}

impl Device for HostDevice {
    fn facts(&self) -> Result<Facts, DeviceError> {
        Ok(Facts {
            kind: DeviceKind::Host,
            cache_bytes: self.cache.clone().ok(),
            // What is held goes to the next plan, so it is as good as free.
            free_bytes: machine::memory().available_bytes.saturating_add(self.arena.held_bytes()),
            units: self.workers(),
            threads_per_unit: 1,
        })
    }

    fn identity(&self) -> Result<record::Device, DeviceError> {
        let name = machine::processor();
        let none = |fields: &[&str], reason: &str| fields.iter().map(|&f| (f.to_owned(), reason.to_owned())).collect::<Missing>();
        let ram = machine::memory();
        let mut memory_missing = none(&["bus_width_bits", "clock_mhz"], "a program without special rights cannot ask for it");
        Ok(record::Device {
            kind: DeviceKind::Host,
            card: format!("host-{}", slug(&name)),
            name,
            index: None,
            uuid: None,
            pci_address: None,
            pci_device_id: None,
            serial: None,
            part_number: None,
            vbios: None,
            driver_version: None,
            cuda_version: None,
            compute_capability: None,
            units: self.workers(),
            sm_clock_max_mhz: None,
            memory: Memory {
                total_bytes: ram.total_bytes,
                free_bytes: ram.available_bytes.saturating_add(self.arena.held_bytes()),
                cache_bytes: known(&mut memory_missing, "cache_bytes", self.cache.clone()),
                bus_width_bits: None,
                clock_mhz: None,
                missing: memory_missing,
            },
            ecc: Ecc {
                enabled: None,
                corrected: None,
                uncorrected: None,
                missing: none(&["enabled", "corrected", "uncorrected"], "a program without special rights cannot ask for it"),
            },
            remapped_rows: RemappedRows {
                corrected: None,
                uncorrected: None,
                pending: None,
                failed: None,
                missing: none(&["corrected", "uncorrected", "pending", "failed"], "a host has none"),
            },
            pcie: Pcie {
                generation_under_load: None,
                width_under_load: None,
                generation_max: None,
                width_max: None,
                missing: none(&["generation_under_load", "width_under_load", "generation_max", "width_max"], "a host has none"),
            },
            virtualization: machine::virtualization(),
            missing: none(
                &[
                    "index",
                    "uuid",
                    "pci_address",
                    "pci_device_id",
                    "serial",
                    "part_number",
                    "vbios",
                    "driver_version",
                    "cuda_version",
                    "compute_capability",
                    "sm_clock_max_mhz",
                ],
                "a host has none",
            ),
        })
    }

    fn load<'a>(&'a mut self, plan: &'a Plan) -> Result<Box<dyn Program + 'a>, DeviceError> {
        Ok(Box::new(self.program(plan)?))
    }
}

impl HostDevice {
    fn program<'a>(&'a mut self, plan: &'a Plan) -> Result<HostProgram<'a>, DeviceError> {
        let Work::Kernel(work) = &plan.work else {
            return Err(DeviceError::Unsupported("a host has no copy engine".into()));
        };
        let regions = self.arena.carve(plan, machine::memory().available_bytes)?;
        let loaded = Loaded { isa: self.isa, workers: self.workers(), regions: &regions };
        let (timed, check) = (loaded.timed(work)?, loaded.check(&plan.check)?);
        let program = HostProgram { device: self, plan, regions, timed, check };
        program.fill(|_| true);
        Ok(program)
    }
}

/// The buffers of a plan, for the kernels that are made ready.
struct Loaded<'a> {
    isa: Isa,
    workers: u32,
    regions: &'a [Region],
}

impl Loaded<'_> {
    fn timed(&self, launch: &Launch) -> Result<Timed, DeviceError> {
        self.buffers_differ(launch)?;
        match launch.module {
            "stream" => stream::kernel(launch, self),
            "stride" => stride::kernel(launch, self),
            "conv3d" => conv3d::kernel(launch, self),
            "compute" => compute::kernel(launch, self),
            _ => Err(self.unknown(launch)),
        }
    }

    fn check(&self, launch: &Launch) -> Result<Task<Findings>, DeviceError> {
        self.buffers_differ(launch)?;
        match launch.module {
            "stream" => stream::check(launch, self),
            "stride" => stride::check(launch, self),
            "conv3d" => conv3d::check(launch, self),
            "compute" => compute::check(launch, self),
            _ => Err(self.unknown(launch)),
        }
    }

    /// Kernels take their outputs to be no input.
    fn buffers_differ(&self, launch: &Launch) -> Result<(), DeviceError> {
        let buffers: Vec<_> = launch.args.iter().filter_map(|arg| if let Arg::Buffer(n) = arg { Some(n) } else { None }).collect();
        let twice = buffers.iter().enumerate().any(|(k, n)| buffers[..k].contains(n));
        if twice { Err(DeviceError::Failed(format!("kernel '{}' was given one buffer twice", launch.kernel))) } else { Ok(()) }
    }

    fn unknown(&self, launch: &Launch) -> DeviceError {
        DeviceError::Unsupported(format!("the host has no kernel '{}' in '{}' with such arguments", launch.kernel, launch.module))
    }

    /// The buffer with this index, which must hold `words` words.
    fn region(&self, index: usize, words: u64) -> Result<Region, DeviceError> {
        match self.regions.get(index) {
            Some(&region) if region.words() >= words => Ok(region),
            Some(region) => Err(DeviceError::Failed(format!("buffer {index} holds {} words and {words} are needed", region.words()))),
            None => Err(DeviceError::Failed(format!("there is no buffer {index}"))),
        }
    }

    /// The buffer with this index as it is.
    fn whole(&self, index: usize) -> Result<Region, DeviceError> {
        self.region(index, 0)
    }

    /// The buffer with this index, which must hold a 64-bit sum for each worker.
    fn partials(&self, index: usize) -> Result<Region, DeviceError> {
        self.region(index, u64::from(self.workers) * 2)
    }
}

/// A plan on the host.
struct HostProgram<'a> {
    device: &'a HostDevice,
    plan: &'a Plan,
    regions: Vec<Region>,
    timed: Timed,
    check: Task<Findings>,
}

impl HostProgram<'_> {
    /// One share of `task` on each worker.
    fn launch<R: Send>(&self, task: impl Fn(Share) -> R + Sync) -> Vec<R> {
        self.device.pool.broadcast(|worker| task(Share { worker: worker.index(), workers: worker.num_threads() }))
    }

    /// Gives the buffers that `which` names what they hold before the work.
    fn fill(&self, which: impl Fn(&Buffer) -> bool) {
        for (buffer, &region) in self.plan.buffers.iter().zip(&self.regions) {
            if which(buffer) {
                self.launch(|share| self.device.isa.run(Fill { content: buffer.content, share, region }));
            }
        }
    }

    fn check(&self) -> Verification {
        let findings = self.launch(&self.check).into_iter().fold(Findings::NONE, Findings::merge);
        Verification::from_status(findings.0)
    }
}

impl Program for HostProgram<'_> {
    fn variant(&self) -> Variant {
        let isa = self.device.isa;
        let mut variant = Variant::new();
        variant.insert("isa".into(), json!(isa.name()));
        if let Some(stores) = self.timed.stores {
            let streaming = stores == Stores::Streaming && isa.streams();
            variant.insert("store".into(), json!(if streaming { "non-temporal" } else { "plain" }));
        }
        variant.insert("threads".into(), json!(self.device.workers()));
        variant.insert("pages".into(), json!(if self.device.arena.huge_pages() { "huge pages advised" } else { "default" }));
        variant
    }

    fn execute(&mut self, executions: u32) -> Result<f64, DeviceError> {
        let start = Instant::now();
        for _ in 0..executions {
            self.launch(&self.timed.task);
        }
        Ok(start.elapsed().as_nanos() as f64)
    }

    fn verify(&mut self) -> Result<Verification, DeviceError> {
        self.fill(|buffer| buffer.content == Content::Poison);
        self.execute(1)?;
        Ok(self.check())
    }
}

/// Fills a share of a buffer, with the split that the kernels use.
struct Fill {
    content: Content,
    share: Share,
    region: Region,
}

impl Kernel for Fill {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let part = self.share.of(self.region.words(), stream::GRAIN);
        // SAFETY: shares do not overlap, and nothing else runs.
        let words: &mut [u32] = unsafe { self.region.slice_mut(part.clone()) };
        match self.content {
            Content::RandomWords { seed } => words.iter_mut().zip(part).for_each(|(word, i)| *word = data::random_word(seed, i)),
            Content::RandomF32 { seed } => words.iter_mut().zip(part).for_each(|(word, i)| *word = data::random_f32(seed, i).to_bits()),
            Content::Poison => words.fill(data::POISON),
        }
    }
}
