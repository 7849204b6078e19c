//! `latency`: how long one access takes that waits for the one before it.
//!
//! | case | what |
//! |---|---|
//! | `latency/chase/<bytes>` | one thread follows a cycle through all lines of a buffer of that size |
//! | `latency/loaded/<percent>` | the same beside multiprocessors that read an array at that share of the theoretical peak |
//!
//! The cycle visits every line of 128 bytes once, in the order of a [`Permutation`]: `p(0)`, `p(1)`, … and
//! back. Each line begins with the address of the next. So where a chase is after k steps is known: at
//! `p(k mod n)`. A chase goes on where the execution before it ended, so that one of few steps does not come
//! back to lines that the caches still hold; after the buffers are prepared it starts at `p(0)`.

use serde_json::json;

use super::case::{Report, Told};
use super::permutation::Permutation;
use super::plan::{Arg, Body, Buffer, LINE_BYTES, Launch, Plan, Work};
use super::reading::{self, BLOCK, RECORD_WORDS, TILE_BYTES, WARP};
use super::size::{room_bytes, size_of};
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, PlanError, Profile};

/// The link at the beginning of a line, in bytes.
const LINK_BYTES: u64 = 8;
const SEED_LINKS: u32 = 0x5EED_001A;
const SEED_WORDS: u32 = 0x5EED_001B;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Inside L1; inside the half of L2 that is near, on cards of two halves; memory; and beyond what the
/// translation of addresses keeps at hand, or as much of that as fits.
const STANDARD_CUDA: [u64; 4] = [16 * KIB, 8 * MIB, GIB, 32 * GIB];
/// Inside the first and the second cache of a processor, and memory.
const STANDARD_HOST: [u64; 3] = [16 * KIB, 512 * KIB, GIB];
/// Where the sweep begins.
const LEAST: u64 = 4 * KIB;

/// Shares of the theoretical peak, in percent; 100 stands for reads without a pause.
const PERCENTS: [u32; 7] = [0, 10, 25, 50, 75, 90, 100];

/// What is chased beside a load: as large as the third standard point, so that both compare.
const LOADED_CHASED: u64 = GIB;
/// Never less than this many times the last cache.
const LOADED_CACHE_MULTIPLE: u64 = 8;

/// More than L1 holds on any card.
const L1_MOST: u64 = 256 * KIB;

/// Some milliseconds at least, of which a launch is then under 0.2 %. L1 is empty when a kernel starts: where a
/// chase fits it, the first lap is less than a five-hundredth of the steps.
const fn chase_steps(kind: DeviceKind, level: Level, bytes: u64) -> u32 {
    match (kind, level) {
        (DeviceKind::Cuda, _) if bytes <= L1_MOST => 1 << 20,
        (DeviceKind::Cuda, Level::Cache) => 1 << 17,
        (DeviceKind::Cuda, _) => 1 << 15,
        (DeviceKind::Host, Level::Cache) => 1 << 20,
        (DeviceKind::Host, _) => 1 << 17,
    }
}

/// As for a chase through memory, which takes longer beside a load.
const fn loaded_steps(kind: DeviceKind) -> u32 {
    match kind {
        DeviceKind::Cuda => 1 << 14,
        DeviceKind::Host => 1 << 17,
    }
}

/// One load.
const CHASE: Body = Body { load_bytes: LINK_BYTES as u32, store_bytes: 0 };
/// Of every block that reads, one warp watches the chase.
const READERS_PER_BLOCK: u32 = BLOCK / WARP - 1;

/// The buffers of a plan with a load: the records of its readers, what they read, those of the chase, and
/// two words by which the chase ends the load.
const RECORDS: usize = 0;
const ARRAY: usize = 1;
const CHASE_BESIDE: usize = 2;
const CONTROL: usize = 4;
/// Where the chase ended, and a sum of all places before: 64 bits each.
const REACHED_BYTES: u64 = 16;
const CONTROL_BYTES: u64 = 8;

/// The latency pattern.
pub struct Latency;

fn ids(profile: Profile, kind: DeviceKind, room: u64, percents: &[u32]) -> Vec<String> {
    // The largest power of two that fits.
    let most = if room == 0 { 0 } else { 1 << room.ilog2() };
    let (standard, most): (&[u64], u64) = match kind {
        DeviceKind::Cuda => (&STANDARD_CUDA, most),
        DeviceKind::Host => (&STANDARD_HOST, most.min(GIB)),
    };
    let mut sizes: Vec<u64> = match profile {
        Profile::Quick => return Vec::new(),
        Profile::Standard => standard.iter().map(|&bytes| bytes.min(most)).filter(|&bytes| bytes >= LEAST).collect(),
        Profile::Full => (LEAST.ilog2()..64).map(|exponent| 1 << exponent).take_while(|&bytes| bytes <= most).collect(),
    };
    sizes.dedup();
    let chases = sizes.iter().map(|bytes| format!("latency/chase/{bytes}"));
    chases.chain(percents.iter().map(|percent| format!("latency/loaded/{percent}"))).collect()
}

impl Pattern for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn summary(&self) -> &'static str {
        "time of one access that waits for the one before it: by footprint, and beside a load"
    }

    fn ids(&self, profile: Profile, kind: DeviceKind) -> Vec<String> {
        match kind {
            DeviceKind::Cuda => ids(profile, kind, 32 * GIB, &PERCENTS),
            // The peak of a host's memory is not known, and so no share of it.
            DeviceKind::Host => ids(profile, kind, GIB, &[0]),
        }
    }

    fn ids_on(&self, profile: Profile, facts: &Facts) -> Vec<String> {
        let percents: Vec<u32> = PERCENTS.into_iter().filter(|&percent| load(percent, facts).is_ok()).collect();
        ids(profile, facts.kind, room_bytes(facts), &percents)
    }

    fn trials(&self) -> &'static [&'static str] {
        &["latency/chase/5248", "latency/loaded/100@675840", "latency/loaded/50@675840"]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let unknown = || PlanError::Unknown(format!("'{id}' is neither latency/chase/<bytes> nor latency/loaded/<percent>"));
        let [operation @ ("chase" | "loaded"), text] = id.parts()[..] else { return Err(unknown()) };
        let number: u64 = text.parse().ok().filter(|n: &u64| n.to_string() == text).ok_or_else(unknown)?;
        if operation == "chase" { chase(id, number, facts) } else { loaded(id, number, facts) }
    }
}

/// A chase through links of this size.
struct Chase {
    lines: u64,
    steps: u32,
    /// The first of its two buffers in the plan: where it got to, and the links.
    buffer: usize,
}

impl Chase {
    fn bytes(&self, facts: &Facts) -> Bytes {
        let requested = u64::from(self.steps) * LINK_BYTES;
        let sectors = u64::from(self.steps).min(self.lines);
        Bytes { requested_read: requested, compulsory: sectors * facts.kind.sector_bytes(), issued: Some(requested), ..Bytes::default() }
    }

    fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::new();
        parameters.insert("chased_bytes".into(), json!(self.lines * LINE_BYTES));
        parameters.insert("line_bytes".into(), json!(LINE_BYTES));
        parameters.insert("accesses".into(), json!(self.steps));
        parameters
    }

    fn buffers(&self) -> Vec<Buffer> {
        vec![Buffer::output(REACHED_BYTES), Buffer::cycle(self.lines * LINE_BYTES, SEED_LINKS)]
    }

    /// The arguments of the timed kernel.
    fn args(&self) -> Vec<Arg> {
        let first = Permutation::new(self.lines, SEED_LINKS).place(0);
        vec![Arg::Buffer(self.buffer), Arg::Buffer(self.buffer + 1), Arg::U64(self.lines), Arg::U64(first), Arg::U32(self.steps)]
    }

    /// The arguments of the check.
    fn check_args(&self) -> Vec<Arg> {
        vec![Arg::Buffer(self.buffer), Arg::Buffer(self.buffer + 1), Arg::U64(self.lines), Arg::U32(self.steps), Arg::U32(SEED_LINKS)]
    }
}

fn launch(kernel: &'static str, grid: u32, block: u32, args: Vec<Arg>, body: Option<Body>) -> Launch {
    Launch { module: "latency", kernel, grid, block, args, body }
}

fn chase(id: &CaseId, bytes: u64, facts: &Facts) -> Result<Case, PlanError> {
    if id.size().is_some() {
        return Err(PlanError::Invalid(format!("'{id}': the size of a chase is the last part of its name; drop the '@'")));
    }
    if bytes == 0 || !bytes.is_multiple_of(LINE_BYTES) {
        let down = (bytes / LINE_BYTES * LINE_BYTES).max(LINE_BYTES);
        return Err(PlanError::Invalid(format!(
            "'{id}': {bytes} bytes are not a positive whole number of {LINE_BYTES}-byte lines; {down} would be"
        )));
    }
    if bytes > room_bytes(facts) {
        return Err(PlanError::TooLarge(format!(
            "'{id}' needs {} MiB, and {} MiB are free, of which a tenth is left to others; choose a smaller size",
            bytes / MIB,
            facts.free_bytes / MIB
        )));
    }
    let level = Level::of(bytes, facts.cache_bytes);
    let chase = Chase { lines: bytes / LINE_BYTES, steps: chase_steps(facts.kind, level, bytes), buffer: 0 };
    let check_args = [chase.check_args(), vec![Arg::Status]].concat();
    Ok(Case {
        id: id.clone(),
        level,
        parameters: chase.parameters(),
        bytes: chase.bytes(facts),
        flops: 0,
        compute_pipe: None,
        accesses: Some(chase.steps.into()),
        report: None,
        notes: Vec::new(),
        plan: Plan {
            buffers: chase.buffers(),
            work: Work::Kernel(launch("latency_chase", 1, 1, chase.args(), (facts.kind == DeviceKind::Cuda).then_some(CHASE))),
            check: launch("check_latency_chase", facts.units, 256, check_args, None),
            compared: 1,
        },
    })
}

/// Who reads beside a chase.
struct Load {
    /// Warps, or workers of a host.
    readers: u32,
    /// Clocks from the beginning of one tile of a reader to that of the next; 0 without a pause.
    pause_clocks: u64,
}

/// The load at this share of the peak; why there is none, where it cannot be.
fn load(percent: u32, facts: &Facts) -> Result<Load, String> {
    let readers = match facts.kind {
        DeviceKind::Cuda => (facts.units - 1) * READERS_PER_BLOCK,
        DeviceKind::Host => facts.units - 1,
    };
    if percent == 0 {
        return Ok(Load { readers: 0, pause_clocks: 0 });
    }
    if readers == 0 {
        return Err("one unit chases, and no other is there to read beside it".into());
    }
    if percent == 100 {
        return Ok(Load { readers, pause_clocks: 0 });
    }
    match facts.peak_bytes_per_clock {
        Some(peak) if facts.kind == DeviceKind::Cuda => {
            let pause = TILE_BYTES * u64::from(readers) * 100 / (u64::from(percent) * u64::from(peak));
            Ok(Load { readers, pause_clocks: pause })
        }
        _ => Err("the peak of this memory is not known, and so no share of it; 0 and 100 need none".into()),
    }
}

fn loaded(id: &CaseId, percent: u64, facts: &Facts) -> Result<Case, PlanError> {
    let percent = u32::try_from(percent).ok().filter(|&percent| percent <= 100);
    let percent = percent.ok_or_else(|| PlanError::Invalid(format!("'{id}': a load is a percentage from 0 to 100")))?;
    let load = load(percent, facts).map_err(|why| PlanError::Unsupported(format!("'{id}': {why}")))?;
    let sizing = size_of(id, facts, 2, TILE_BYTES)?;
    let array = sizing.bytes_each;
    let wanted = LOADED_CHASED.max(facts.cache_bytes.unwrap_or_default().saturating_mul(LOADED_CACHE_MULTIPLE));
    // Both together stay within the share of the memory that default sizes may take.
    let most = if id.size().is_some() { array } else { facts.free_bytes / 10 * 3 };
    let chased = wanted.min(most) / LINE_BYTES * LINE_BYTES;
    let chase = Chase { lines: chased / LINE_BYTES, steps: loaded_steps(facts.kind), buffer: CHASE_BESIDE };

    let mut parameters = chase.parameters();
    parameters.insert("percent".into(), json!(percent));
    parameters.insert("array_bytes".into(), json!(array));
    parameters.insert("readers".into(), json!(load.readers));
    parameters.insert("pause_clocks".into(), json!(load.pause_clocks));

    let words = Arg::U64(array / 4);
    let read = vec![Arg::Buffer(RECORDS), Arg::Buffer(ARRAY), words];
    let args = [read, chase.args(), vec![Arg::U64(load.pause_clocks), Arg::Buffer(CONTROL)]].concat();
    let checked = [Arg::Buffer(RECORDS), Arg::U64(load.readers.into()), words, Arg::U32(SEED_WORDS), Arg::Data];
    let check_args = [checked.to_vec(), chase.check_args(), vec![Arg::Status]].concat();
    // Beside the one that chases, each multiprocessor has one block; without a load there is no other.
    let grid = if load.readers == 0 { 1 } else { facts.units };
    // Room for one record where there is none, as no buffer is empty.
    let records = u64::from(load.readers.max(1)) * RECORD_WORDS * 4;
    let reading = vec![Buffer::output(records), Buffer::words(array, SEED_WORDS)];
    let buffers = [reading, chase.buffers(), vec![Buffer::output(CONTROL_BYTES)]].concat();
    Ok(Case {
        id: id.clone(),
        level: Level::of(chased, facts.cache_bytes),
        parameters,
        bytes: chase.bytes(facts),
        flops: 0,
        compute_pipe: None,
        accesses: Some(chase.steps.into()),
        report: (load.readers > 0).then_some(Report { buffer: RECORDS, read: tell_load }),
        notes: sizing.notes,
        plan: Plan {
            buffers,
            work: Work::Kernel(launch("latency_loaded", grid, BLOCK, args, (facts.kind == DeviceKind::Cuda).then_some(reading::BODY))),
            check: launch("check_latency_loaded", load.readers.clamp(1, facts.units.saturating_mul(8)), 256, check_args, None),
            compared: 1 + u64::from(load.readers),
        },
    })
}

/// How much the readers read until the chase had ended.
fn tell_load(records: &[u32]) -> Told {
    Told { read_bytes: reading::figures(records).fold(0, u64::saturating_add).saturating_mul(TILE_BYTES), ..Told::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(id: &str, facts: &Facts) -> Result<Case, PlanError> {
        Latency.case(&CaseId::new(id), facts)
    }

    #[test]
    fn the_kernels_divide_by_the_same_numbers() {
        let source = include_str!("../../kernels/latency.cu");
        assert!(source.contains(&format!("const u32 LINE_BYTES = {LINE_BYTES};")));
        assert!(source.contains("const u32 READERS = READING_BLOCK / 32 - 1;"));
        let content = include_str!("../../kernels/content.cu");
        assert!(content.contains(&format!("const u32 LINE_WORDS = {};", LINE_BYTES / 4)));
    }

    #[test]
    fn the_level_of_a_chase_is_that_of_its_footprint() {
        let levels = [16 * KIB, 8 * MIB, 128 * MIB, GIB].map(|bytes| case(&format!("latency/chase/{bytes}"), &Facts::H200).unwrap().level);
        assert_eq!(levels, [Level::Cache, Level::Cache, Level::Mixed, Level::Dram]);
    }

    #[test]
    fn the_standard_points_end_with_what_fits() {
        let chases = |free_bytes| -> Vec<String> {
            let facts = Facts { free_bytes, ..Facts::H200 };
            Latency.ids_on(Profile::Standard, &facts).into_iter().filter(|id| id.contains("chase")).collect()
        };
        assert_eq!(chases(139 << 30).last().unwrap(), &format!("latency/chase/{}", 32 * GIB));
        assert_eq!(chases(24 << 30).last().unwrap(), &format!("latency/chase/{}", 16 * GIB));
        assert_eq!(chases(1 << 30).len(), 3);
        for facts in [Facts::H200, Facts::HOST, Facts { free_bytes: 3 << 30, ..Facts::H200 }] {
            for profile in [Profile::Standard, Profile::Full] {
                for id in Latency.ids_on(profile, &facts) {
                    assert!(case(&id, &facts).is_ok(), "{id}");
                }
            }
        }
        assert_eq!(Latency.ids_on(Profile::Quick, &Facts::H200), [""; 0]);
    }

    #[test]
    fn a_chase_counts_its_links_and_the_sectors_that_it_touches_once() {
        let small = case("latency/chase/4096", &Facts::H200).unwrap();
        assert_eq!((small.bytes.requested(), small.bytes.compulsory), (8 << 20, 32 * 32));
        let large = case(&format!("latency/chase/{GIB}"), &Facts::H200).unwrap();
        assert_eq!((large.bytes.requested(), large.bytes.compulsory), (8 << 15, 32 << 15));
        assert_eq!(large.accesses, Some(1 << 15));
        let lap = L1_MOST / LINE_BYTES;
        assert!(u64::from(chase_steps(DeviceKind::Cuda, Level::Cache, L1_MOST)) >= 500 * lap);
    }

    #[test]
    fn lines_beyond_32_bits_are_counted_in_64() {
        let facts = Facts { free_bytes: u64::MAX, ..Facts::H200 };
        for bytes in [(1u64 << 38) + 128, (1 << 39) + 128, 1 << 42] {
            let case = case(&format!("latency/chase/{bytes}"), &facts).unwrap();
            assert!(case.plan.check.args.contains(&Arg::U64(bytes / 128)));
            assert_eq!(case.plan.buffers[1].bytes, bytes);
        }
    }

    #[test]
    fn sizes_and_loads_that_cannot_be_are_refused_with_what_could() {
        for (id, what) in [
            ("latency/chase/100", "128 would be"),
            ("latency/chase/4100", "4096 would be"),
            ("latency/chase/4096@4096", "drop the '@'"),
            ("latency/loaded/101", "0 to 100"),
            ("latency/loaded/50@100", "4096 would be"),
        ] {
            let refused = case(id, &Facts::H200).unwrap_err();
            assert!(matches!(&refused, PlanError::Invalid(why) if why.contains(what)), "{id}: {refused}");
        }
        assert!(matches!(case(&format!("latency/chase/{}", 1u64 << 37), &Facts::H200), Err(PlanError::TooLarge(_))));
        for id in ["latency/chase/x", "latency/chase/01", "latency", "latency/read/1"] {
            assert!(matches!(case(id, &Facts::H200), Err(PlanError::Unknown(_))), "{id}");
        }
    }

    #[test]
    fn the_readers_together_ask_for_the_share_of_the_peak() {
        for percent in [10u32, 25, 50, 75, 90] {
            let load = load(percent, &Facts::H200).unwrap();
            assert_eq!(load.readers, 131 * 31);
            let per_clock = (u64::from(load.readers) * TILE_BYTES) as f64 / load.pause_clocks as f64;
            assert!((per_clock / (24.31 * f64::from(percent)) - 1.0).abs() < 1e-3, "{percent}: {per_clock}");
        }
        assert_eq!(load(100, &Facts::H200).unwrap().pause_clocks, 0);
        assert_eq!(load(0, &Facts::H200).unwrap().readers, 0);
    }

    #[test]
    fn a_share_of_an_unknown_peak_and_a_load_by_nobody_are_unsupported() {
        let unknown = Facts { peak_bytes_per_clock: None, ..Facts::H200 };
        assert!(matches!(case("latency/loaded/50", &unknown), Err(PlanError::Unsupported(why)) if why.contains("peak")));
        assert!(case("latency/loaded/100", &unknown).is_ok() && case("latency/loaded/100", &Facts::HOST).is_ok());
        let alone = Facts { units: 1, ..Facts::HOST };
        assert!(matches!(case("latency/loaded/100", &alone), Err(PlanError::Unsupported(_))));
        assert!(case("latency/loaded/0", &alone).is_ok());
    }

    #[test]
    fn a_load_has_a_block_on_every_multiprocessor_and_none_without() {
        let grid = |id| {
            let Work::Kernel(launch) = case(id, &Facts::H200).unwrap().plan.work else { unreachable!() };
            launch.grid
        };
        assert_eq!((grid("latency/loaded/100"), grid("latency/loaded/10"), grid("latency/loaded/0")), (132, 132, 1));
    }

    #[test]
    fn what_the_readers_read_is_the_sum_of_their_tiles() {
        assert_eq!(tell_load(&[1, 2, 3, 0, 4, 5, 6, 0]).read_bytes, 9 * 4096);
        // Whatever a device that returns wrong data says.
        assert_eq!(tell_load(&[u32::MAX; 8]).read_bytes, u64::MAX);
    }
}
