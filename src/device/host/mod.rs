//! The memory of this machine as a device: one worker thread a processor, vector
//! kernels, and checks of their results.

mod arithmetic;
mod cache;
mod compute;
mod conv3d;
mod footprint;
mod gather;
mod isa;
mod latency;
mod matvec;
mod memory;
mod saturation;
mod scatter;
mod share;
mod stream;
mod stride;

use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::json;

use super::{Device, DeviceError, Program, Sensors, Timing, Variant, Verification, machine};
use crate::pattern::permutation::Permutation;
use crate::pattern::{Arg, Content, Data, DeviceKind, Facts, LINE_BYTES, Launch, Plan, Way, Work, data, eviction_bytes};
use crate::record::{self, Ecc, Memory, Missing, Pcie, PowerLimits, RemappedRows, known, slug};
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
        // What is held goes to the next plan, so it is as good as free.
        let free_bytes = machine::memory().available_bytes.saturating_add(self.arena.held_bytes());
        Ok(Facts {
            kind: DeviceKind::Host,
            cache_bytes: self.cache.clone().ok(),
            free_bytes,
            main_free_bytes: free_bytes,
            units: self.workers(),
            threads_per_unit: 1,
            capability: None,
            launch_limited: false,
            peak_bytes_per_clock: None,
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
            timer_resolution_ns: None,
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
            power_limits: PowerLimits::unknown("a host has none"),
            other_processes: None,
            virtualization: {
                let none = || "a host has none".to_owned();
                machine::virtualization(Err(none()), Err(none()), Err(none()))
            },
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
                    "timer_resolution_ns",
                    "other_processes",
                ],
                "a host has none",
            ),
        })
    }

    fn sensors(&mut self) -> Result<Box<dyn Sensors>, String> {
        Err("a host's sensors are not read".into())
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
        let timed = loaded.timed(work)?;
        // Refused now rather than after the measurement.
        drop(loaded.check(&plan.check, Data::default())?);
        let program = HostProgram { device: self, plan, regions, timed, data: None, other_memory: Vec::new() };
        for guard in program.regions.iter().flat_map(|region| region.guards()) {
            program.fill(guard, Content::Poison, Data::default());
        }
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
            "footprint" => footprint::kernel(launch, self),
            "gather" => gather::kernel(launch, self),
            "scatter" => scatter::kernel(launch, self),
            "conv3d" => conv3d::kernel(launch, self),
            "matvec" => matvec::kernel(launch, self),
            "saturation" => saturation::kernel(launch, self),
            "latency" => latency::kernel(launch, self),
            "compute" => compute::kernel(launch, self),
            _ => Err(self.unknown(launch)),
        }
    }

    fn check(&self, launch: &Launch, data: Data) -> Result<Task<Findings>, DeviceError> {
        self.buffers_differ(launch)?;
        match launch.module {
            "stream" => stream::check(launch, data, self),
            "stride" => stride::check(launch, data, self),
            "footprint" => footprint::check(launch, data, self),
            "gather" => gather::check(launch, data, self),
            "scatter" => scatter::check(launch, self),
            "conv3d" => conv3d::check(launch, data, self),
            "matvec" => matvec::check(launch, data, self),
            "saturation" => saturation::check(launch, data, self),
            "latency" => latency::check(launch, data, self),
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
    /// What the inputs hold; none before they were filled.
    data: Option<Data>,
    /// What is read to fill the caches; empty before that was asked for.
    other_memory: Vec<u64>,
}

impl HostProgram<'_> {
    /// One share of `task` on each worker.
    fn launch<R: Send>(&self, task: impl Fn(Share) -> R + Sync) -> Vec<R> {
        self.device.pool.broadcast(|worker| task(Share { worker: worker.index(), workers: worker.num_threads() }))
    }

    fn fill(&self, region: Region, content: Content, data: Data) {
        self.launch(|share| self.device.isa.run(Fill { content, data, share, region }));
    }

    /// How many words beside the buffers are no longer poison.
    fn stray(&self) -> u64 {
        let guards = self.regions.iter().flat_map(|region| region.guards());
        // SAFETY: nothing writes while a check runs.
        let strays =
            guards.map(|guard| unsafe { guard.slice::<u32>(0..guard.words()) }.iter().filter(|&&word| word != data::POISON).count());
        strays.sum::<usize>() as u64
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

    fn execute(&mut self, executions: u32) -> Result<Timing, DeviceError> {
        let start = Instant::now();
        for _ in 0..executions {
            self.launch(&self.timed.task);
        }
        Ok(Timing { ns: start.elapsed().as_nanos() as f64, sm_clock_mhz: None })
    }

    fn take(&mut self, way: &Way) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported(format!("the host has no kernel '{}'", way.work.kernel)))
    }

    fn evict_caches(&mut self) -> Result<(), DeviceError> {
        let bytes = eviction_bytes(&self.device.facts()?) as usize;
        if self.other_memory.is_empty() {
            let refused = |e| DeviceError::OutOfMemory(format!("{bytes} bytes to fill the caches with: {e}"));
            self.other_memory.try_reserve_exact(bytes / 8).map_err(refused)?;
            // Pages that nobody has written are all the same page of zeros.
            self.other_memory.resize(bytes / 8, 1);
        }
        let memory = &self.other_memory;
        // Each worker has caches of its own: all of them read all of it, from different places on.
        self.launch(|share| {
            let (before, after) = memory.split_at(memory.len() / share.workers * share.worker);
            std::hint::black_box(after.iter().chain(before).fold(0, |sum, word| sum ^ word));
        });
        Ok(())
    }

    fn memory_taken_bytes(&self) -> Result<u64, String> {
        Err("a host hands out memory page by page as it is used".into())
    }

    fn prepare(&mut self, data: Data) -> Result<(), DeviceError> {
        for (buffer, &region) in self.plan.buffers.iter().zip(&self.regions) {
            if buffer.content == Content::Poison || self.data != Some(data) {
                self.fill(region, buffer.content, data);
            }
        }
        self.data = Some(data);
        Ok(())
    }

    fn check(&mut self) -> Result<Verification, DeviceError> {
        let data = self.data.ok_or_else(|| DeviceError::Failed("the buffers were never filled".into()))?;
        let loaded = Loaded { isa: self.device.isa, workers: self.device.workers(), regions: &self.regions };
        let check = loaded.check(&self.plan.check, data)?;
        let found = self.launch(&check).into_iter().fold(Findings::NONE, Findings::merge);
        // The shares of all workers are proven to be all items, so nothing is left to balance.
        let status = [found.mismatches, found.first_bad, 0, found.compared];
        Ok(Verification::from_status(status, self.plan.compared, self.stray()))
    }

    fn read(&mut self, buffer: usize) -> Result<Vec<u32>, DeviceError> {
        let region = self.regions[buffer];
        // SAFETY: nothing runs.
        Ok(unsafe { region.slice::<u32>(0..region.words()) }.to_vec())
    }

    fn alter(&mut self, buffer: usize, change: &dyn Fn(&mut [u32])) -> Result<(), DeviceError> {
        let region = self.regions[buffer].with_guard();
        // SAFETY: nothing runs, and this is the only slice.
        change(unsafe { region.slice_mut(0..region.words()) });
        Ok(())
    }
}

/// Fills a share of a buffer, with the split that the kernels use.
struct Fill {
    content: Content,
    data: Data,
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
            Content::Words { seed } => words.iter_mut().zip(part).for_each(|(word, i)| *word = self.data.word(seed, i)),
            Content::Numbers { seed } => words.iter_mut().zip(part).for_each(|(word, i)| *word = self.data.number(seed, i).to_bits()),
            Content::Doubles { seed } => {
                let half = |i: u64| (self.data.double(seed, i / 2).to_bits() >> (32 * (i % 2))) as u32;
                words.iter_mut().zip(part).for_each(|(word, i)| *word = half(i));
            }
            Content::Halves { seed } => words.iter_mut().zip(part).for_each(|(word, i)| *word = self.data.halves(seed, i)),
            Content::Permutation { seed } => {
                let order = Permutation::new(self.region.words(), seed);
                words.iter_mut().zip(part).for_each(|(word, i)| *word = order.place(i) as u32);
            }
            Content::Cycle { seed } => {
                let line_words = LINE_BYTES / 4;
                let order = Permutation::new(self.region.words() / line_words, seed);
                for (word, i) in words.iter_mut().zip(part) {
                    *word = match (i % line_words) as usize {
                        half @ 0..2 => {
                            let next = self.region.address::<u32>(order.after(i / line_words) * line_words).expose_provenance() as u64;
                            // As the machine stores a number of 64 bits.
                            if (half == 0) == cfg!(target_endian = "little") { next as u32 } else { (next >> 32) as u32 }
                        }
                        _ => self.data.word(seed, i),
                    };
                }
            }
            Content::Poison => words.fill(data::POISON),
        }
    }
}

#[cfg(test)]
mod testing {
    use super::*;
    use crate::pattern::{self, CaseId};

    /// The plan of a case for this many workers.
    pub(super) fn plan(id: &str, workers: usize) -> Plan {
        let facts = HostDevice::with(Isa::best(), workers).unwrap().facts().unwrap();
        pattern::plan(&CaseId::new(id), &facts).unwrap().plan
    }

    /// What `with` makes of the plan when it is loaded.
    pub(super) fn with_plan<R>(isa: Isa, workers: usize, plan: &Plan, with: impl FnOnce(&mut HostProgram) -> R) -> R {
        let mut device = HostDevice::with(isa, workers).unwrap();
        with(&mut device.program(plan).unwrap())
    }

    /// Every instruction set and several numbers of workers verify this case.
    pub(super) fn verifies(id: &str) {
        for workers in [1, 2, 3] {
            let plan = plan(id, workers);
            for isa in Isa::all() {
                for data in [Data::Random, Data::SmallIntegers] {
                    let verification = with_plan(isa, workers, &plan, |program| verify(program, data));
                    assert!(verification.passed(), "{id} with {} on {workers} workers, {data}: {verification:?}", isa.name());
                }
            }
        }
    }

    /// What the check finds after one execution on this data.
    pub(super) fn verify(program: &mut HostProgram, data: Data) -> Verification {
        program.prepare(data).unwrap();
        program.execute(1).unwrap();
        program.check().unwrap()
    }

    /// What the check finds after `tamper` has had the result, or the input before the work.
    pub(super) fn found(plan: &Plan, before: impl FnOnce(&[Region]), after: impl FnOnce(&[Region])) -> Verification {
        with_plan(Isa::best(), 2, plan, |program| {
            program.prepare(Data::Random).unwrap();
            before(&program.regions);
            program.execute(1).unwrap();
            after(&program.regions);
            program.check().unwrap()
        })
    }

    /// All words of a buffer, while no task runs.
    pub(super) fn words<'a>(regions: &[Region], buffer: usize) -> &'a mut [u32] {
        let region = regions[buffer];
        // SAFETY: tests have one slice at a time, and only while no task runs.
        unsafe { region.slice_mut(0..region.words()) }
    }

    pub(super) fn nothing(_: &[Region]) {}
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;

    #[test]
    fn whatever_the_inputs_hold_is_verified() {
        for id in [
            "stream/read/f32@4100",
            "stream/copy/f32@4100",
            "stream/triad/f32@4100",
            "stride/read/64@6400",
            "stride/copy/8@6400",
            "gather/read/4@6400",
            "gather/kv/4096@12288",
            "scatter/write/64@6400",
            "conv3d/direct/f32/3x9@4x3x17",
            "conv3d/depthwise/f32/3x3@4x3x17",
            "matvec/f16/2@5x24",
        ] {
            let plan = plan(id, 2);
            for data in [Data::Zero, Data::Constant, Data::Random, Data::SmallIntegers] {
                assert!(with_plan(Isa::best(), 2, &plan, |program| verify(program, data)).passed(), "{id} {data}");
            }
        }
    }

    #[test]
    fn inputs_are_filled_anew_only_for_other_data() {
        with_plan(Isa::best(), 2, &plan("stream/copy/f32@4096", 2), |program| {
            program.prepare(Data::Random).unwrap();
            words(&program.regions, 1)[7] ^= 1;
            program.prepare(Data::Random).unwrap();
            program.execute(1).unwrap();
            assert_eq!(program.check().unwrap().first_bad, Some(7));
            assert!(verify(program, Data::Zero).passed());
        });
    }

    #[test]
    fn a_write_on_either_side_of_a_buffer_is_found() {
        for offset in [-1isize, 1024] {
            let found = found(&plan("stream/write/f32@4096", 2), nothing, |regions| {
                // SAFETY: guards lie on both sides of the buffer, and nothing runs.
                unsafe { regions[0].address::<u32>(0).offset(offset).write(5) }
            });
            assert_eq!((found.mismatches, found.stray), (0, 1), "{offset}");
        }
    }

    #[test]
    fn the_facts_are_those_of_a_host() {
        let facts = HostDevice::open().unwrap().facts().unwrap();
        assert_eq!(facts.kind, DeviceKind::Host);
        assert_eq!(facts.units, machine::cpus());
        assert!(facts.free_bytes > 0);
    }

    #[test]
    fn each_null_of_the_identity_has_a_reason() {
        fn reasons(object: &serde_json::Value, path: &str) {
            for (field, value) in object.as_object().unwrap() {
                assert!(!value.is_null() || object["missing"][field].is_string(), "{path}{field}");
                if value.is_object() && field != "missing" {
                    reasons(value, &format!("{path}{field}."));
                }
            }
        }
        let identity = HostDevice::open().unwrap().identity().unwrap();
        assert!(identity.card.starts_with("host-"));
        reasons(&serde_json::to_value(identity).unwrap(), "");
    }

    #[test]
    fn memory_kept_from_the_last_plan_counts_as_free() {
        let mut device = HostDevice::with(Isa::best(), 1).unwrap();
        let plan = plan("stream/write/f32@67108864", 1);
        device.program(&plan).unwrap();
        let ram = machine::memory().available_bytes;
        // Other programs come and go: within half of what is held.
        assert!(device.facts().unwrap().free_bytes > ram + (32 << 20));
    }

    #[test]
    fn a_plan_that_the_host_has_no_kernel_for_is_unsupported() {
        let mut device = HostDevice::with(Isa::best(), 1).unwrap();
        let mut plan = plan("stream/copy/f32@64", 1);
        let Work::Kernel(work) = &mut plan.work else { unreachable!() };
        work.args.pop();
        let error = device.program(&plan).err().unwrap();
        assert_eq!(error, DeviceError::Unsupported("the host has no kernel 'stream_copy' in 'stream' with such arguments".into()));
        plan.work = Work::Copies(vec![crate::pattern::BufferCopy { from: 1, to: 0 }]);
        assert!(matches!(device.program(&plan), Err(DeviceError::Unsupported(_))));
    }

    #[test]
    fn a_plan_with_a_short_buffer_or_one_twice_fails() {
        let mut device = HostDevice::with(Isa::best(), 1).unwrap();
        let good = plan("stream/copy/f32@64", 1);
        let mut short = good.clone();
        short.buffers[1].bytes = 60;
        assert_eq!(device.program(&short).err(), Some(DeviceError::Failed("buffer 1 holds 15 words and 16 are needed".into())));
        let mut twice = good;
        let Work::Kernel(work) = &mut twice.work else { unreachable!() };
        work.args[1] = work.args[0];
        assert!(matches!(device.program(&twice), Err(DeviceError::Failed(_))));
    }

    #[test]
    fn a_plan_beyond_the_memory_is_refused_before_it_is_touched() {
        let mut plan = plan("stream/copy/f32@64", 1);
        plan.buffers[0].bytes = 1 << 50;
        assert!(matches!(HostDevice::with(Isa::best(), 1).unwrap().program(&plan), Err(DeviceError::OutOfMemory(_))));
    }

    #[test]
    fn a_variant_tells_how_the_case_was_written() {
        for isa in Isa::all() {
            let variant = |id| with_plan(isa, 2, &plan(id, 2), |program| program.variant());
            let bulk = if isa.streams() { "non-temporal" } else { "plain" };
            for (id, store) in [
                ("stream/read/f32@64", None),
                ("stream/copy/f32@64", Some(bulk)),
                ("stride/read/64@64", None),
                ("stride/copy/4@64", Some(bulk)),
                ("stride/copy/64@64", Some("plain")),
                ("gather/read/64@64", None),
                ("scatter/write/4@64", Some("plain")),
                ("scatter/write/64@64", Some(bulk)),
                ("conv3d/direct/f32/1x1@1x1x1", Some("plain")),
            ] {
                let variant = variant(id);
                assert_eq!(variant["isa"], isa.name());
                assert_eq!(variant["threads"], 2);
                assert!(variant.contains_key("pages"));
                assert_eq!(variant.get("store").and_then(|s| s.as_str()), store, "{id}");
            }
        }
    }

    #[test]
    fn filling_the_caches_changes_no_buffer() {
        with_plan(Isa::best(), 2, &plan("stream/copy/f32@4096", 2), |program| {
            program.prepare(Data::Random).unwrap();
            program.execute(1).unwrap();
            program.evict_caches().unwrap();
            assert!(program.check().unwrap().passed());
        });
    }

    #[test]
    fn executions_take_time_that_adds_up() {
        with_plan(Isa::best(), 2, &plan("stream/copy/f32@1048576", 2), |program| {
            program.execute(1).unwrap();
            let ten = program.execute(10).unwrap().ns;
            assert!(ten > 0.0 && ten < 10e9);
        });
    }
}
