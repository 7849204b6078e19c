//! The kernels that ship with the program, as PTX.

use std::collections::{BTreeMap, BTreeSet};

use cust::module::Module;
use serde::Serialize;

use super::error::at_work;
use crate::device::DeviceError;

/// One file of `kernels/`.
pub(super) struct Shipped {
    /// The source's name without its ending.
    pub name: &'static str,
    /// The virtual architecture that the PTX is for.
    pub target: &'static str,
    /// The first compute capability that runs it; later ones do too.
    capability: (i32, i32),
    /// What the driver compiles.
    pub ptx: &'static str,
}

macro_rules! shipped {
    ($($name:literal for $($capability:literal),+;)*) => {
        &[$($(Shipped {
            name: $name,
            target: concat!("compute_", $capability),
            capability: ($capability / 10, $capability % 10),
            ptx: include_str!(concat!("../../../kernels/", $name, ".compute_", $capability, ".ptx")),
        }),+),*]
    };
}

/// Every shipped file; each is loaded only when a run needs it, because the driver
/// compiles all of a module's kernels when it is loaded.
const SHIPPED: &[Shipped] = shipped![
    "content" for 70;
    "clock" for 70;
    "stream_check" for 70;
    "stream_read" for 70;
    "stream_write" for 70;
    "stream_copy" for 70;
    "stream_scale_f32" for 70;
    "stream_scale_f64" for 70;
    "stream_scale_f16" for 70;
    "stream_add_f32" for 70;
    "stream_add_f64" for 70;
    "stream_add_f16" for 70;
    "stream_triad_f32" for 70;
    "stream_triad_f64" for 70;
    "stream_triad_f16" for 70;
    "stream_dot_f32" for 70;
    "stream_dot_f64" for 70;
    "stream_dot_f16" for 70;
    "compute" for 70;
    "stride" for 70;
    "gather" for 70;
    "scatter" for 70;
    "footprint" for 70;
    "conv3d" for 70;
    "matvec" for 70, 80;
    "saturation" for 70;
    "transfer" for 70;
    "latency" for 70;
];

/// The file of a module for a card: of those that it runs, the one for the latest architecture.
fn shipped(name: &str, capability: (i32, i32)) -> Option<&'static Shipped> {
    SHIPPED.iter().filter(|shipped| shipped.name == name && shipped.capability <= capability).max_by_key(|shipped| shipped.capability)
}

/// The modules that there are.
pub(super) fn names() -> BTreeSet<&'static str> {
    SHIPPED.iter().map(|shipped| shipped.name).collect()
}

/// PTX versions, the CUDA version that introduced each, and the first driver with
/// it (CUDA Toolkit release notes, "CUDA Driver" table; PTX ISA, "Release History").
const PTX_SUPPORT: [(&str, (i32, i32), &str); 1] = [("8.0", (12, 0), "525")];

/// The `.version` that a PTX text states.
fn ptx_version(ptx: &'static str) -> Option<&'static str> {
    ptx.lines().find_map(|line| line.strip_prefix(".version ")).map(str::trim)
}

/// Refuses PTX that the driver is too old for, before the driver does so without
/// naming the reason.
fn check_version(shipped: &Shipped, driver_cuda: (i32, i32)) -> Result<(), DeviceError> {
    let version = ptx_version(shipped.ptx).unwrap_or("unknown");
    match PTX_SUPPORT.iter().find(|(v, ..)| *v == version) {
        Some((_, needed, _)) if driver_cuda >= *needed => Ok(()),
        Some((_, needed, driver)) => Err(DeviceError::Unusable(format!(
            "the kernels '{}' are PTX {version}, which needs CUDA {}.{}, and this driver implements CUDA {}.{}: update the driver to {driver} or newer",
            shipped.name, needed.0, needed.1, driver_cuda.0, driver_cuda.1
        ))),
        None => Err(DeviceError::Failed(format!(
            "the kernels '{}' state the PTX version '{version}', which this program does not know",
            shipped.name
        ))),
    }
}

/// What one file of kernels needs of the driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kernels {
    /// The source's name without its ending.
    pub name: &'static str,
    /// The virtual architecture that it is for; later ones run it too.
    pub target: &'static str,
    /// The version of its PTX.
    pub ptx_version: &'static str,
    /// The first CUDA version that knows this PTX.
    pub needs_cuda: String,
    /// The first driver that implements it.
    pub needs_driver: &'static str,
    /// Whether the driver here does; none where there is none that tells.
    pub supported: Option<bool>,
}

/// Every file of kernels that ships with the program, against the driver of this machine.
pub fn kernels() -> Vec<Kernels> {
    let driver_cuda = super::driver_cuda().ok();
    let needs = |shipped: &Shipped| {
        let ptx_version = ptx_version(shipped.ptx)?;
        let (_, cuda, needs_driver) = PTX_SUPPORT.into_iter().find(|(version, ..)| *version == ptx_version)?;
        Some(Kernels {
            name: shipped.name,
            target: shipped.target,
            ptx_version,
            needs_cuda: format!("{}.{}", cuda.0, cuda.1),
            needs_driver,
            supported: driver_cuda.map(|here| here >= cuda),
        })
    };
    SHIPPED.iter().filter_map(needs).collect()
}

/// Refuses a card or a driver that is too old for the shipped kernels.
pub(super) fn check_support(driver_cuda: (i32, i32), (major, minor): (i32, i32)) -> Result<(), DeviceError> {
    if major < 7 {
        return Err(DeviceError::Unusable(format!(
            "the card has compute capability {major}.{minor}, and the kernels need 7.0 (Volta, 2017) or later"
        )));
    }
    SHIPPED.iter().try_for_each(|shipped| check_version(shipped, driver_cuda))
}

/// Has the driver compile a module for a card of this compute capability. The context must be current.
pub(super) fn load(name: &str, capability: (i32, i32)) -> Result<(&'static Shipped, Module), DeviceError> {
    let shipped = shipped(name, capability).ok_or_else(|| DeviceError::Unsupported(format!("no CUDA kernels are called '{name}'")))?;
    let module = Module::from_ptx(shipped.ptx, &[]).map_err(at_work(&format!("compiling the kernels '{name}' in the driver")))?;
    Ok((shipped, module))
}

/// The modules loaded on one device.
#[derive(Default)]
pub(super) struct Modules {
    loaded: BTreeMap<&'static str, (&'static Shipped, Module)>,
}

impl Modules {
    /// Loads a module for a card of this compute capability unless it is loaded already. The
    /// context must be current.
    pub fn ensure(&mut self, name: &str, capability: (i32, i32)) -> Result<(), DeviceError> {
        if self.loaded.contains_key(name) {
            return Ok(());
        }
        let (shipped, module) = load(name, capability)?;
        self.loaded.insert(shipped.name, (shipped, module));
        Ok(())
    }

    /// The virtual architecture of a module that [`Self::ensure`] has loaded.
    pub fn target(&self, name: &str) -> Option<&'static str> {
        self.loaded.get(name).map(|(shipped, _)| shipped.target)
    }

    /// A module that [`Self::ensure`] has loaded.
    pub fn get(&self, name: &str) -> Result<&Module, DeviceError> {
        let loaded = self.loaded.get(name).map(|(_, module)| module);
        loaded.ok_or_else(|| DeviceError::Failed(format!("the kernels '{name}' are not loaded")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Arg, Body, Bytes, Case, CaseId, DeviceKind, Facts, Launch, PATTERNS, Profile, Way, Work, plan};

    #[test]
    fn every_shipped_file_states_a_known_ptx_version() {
        for shipped in SHIPPED {
            check_version(shipped, (13, 0)).unwrap_or_else(|e| panic!("{e}"));
        }
        assert_eq!(kernels().len(), SHIPPED.len());
    }

    #[test]
    fn a_card_before_volta_is_refused() {
        assert!(check_support((13, 0), (9, 0)).is_ok());
        assert!(check_support((12, 9), (6, 1)).unwrap_err().to_string().contains("6.1"));
    }

    #[test]
    fn a_driver_older_than_the_ptx_is_named_with_the_one_that_would_do() {
        let error = check_support((11, 8), (9, 0)).unwrap_err().to_string();
        assert!(error.contains("CUDA 11.8") && error.contains("525"), "{error}");
    }

    /// The PTX of a module for the card that the launches here are planned for.
    fn ptx(module: &str) -> &'static str {
        shipped(module, (9, 0)).unwrap_or_else(|| panic!("no module {module}")).ptx
    }

    #[test]
    fn a_card_gets_the_latest_file_of_a_module_that_it_runs() {
        let target = |name, capability| shipped(name, capability).map(|shipped| shipped.target);
        assert_eq!(
            [(7, 0), (7, 5), (8, 0), (12, 1)].map(|card| target("matvec", card)),
            [Some("compute_70"), Some("compute_70"), Some("compute_80"), Some("compute_80")]
        );
        assert_eq!(target("stride", (12, 1)), Some("compute_70"));
        assert_eq!([target("stride", (6, 1)), target("none", (9, 0))], [None, None]);
    }

    #[test]
    fn what_an_older_card_is_planned_is_in_the_file_that_it_gets() {
        let facts = Facts { capability: Some((7, 0)), ..Facts::H200 };
        let ids = PATTERNS.iter().flat_map(|p| p.ids(Profile::Full, DeviceKind::Cuda));
        for plan in ids.filter_map(|id| Some(plan(&CaseId::new(&id), &facts).ok()?.plan)) {
            for launch in if let Work::Kernel(work) = plan.work { vec![work, plan.check] } else { vec![plan.check] } {
                assert!(entry(shipped(launch.module, (7, 0)).unwrap().ptx, launch.kernel).is_some(), "{}", launch.kernel);
            }
        }
    }

    /// The lines of one entry of a PTX text.
    fn entry<'a>(ptx: &'a str, name: &str) -> Option<Vec<&'a str>> {
        let heading = format!(".entry {name}(");
        let mut lines = ptx.lines().skip_while(|line| !line.contains(&heading));
        lines.next()?;
        Some(lines.take_while(|line| *line != "}").map(str::trim).collect())
    }

    /// Bytes that one memory instruction moves, such as 16 for `ld.global.nc.v4.u32`.
    fn width(opcode: &str) -> u32 {
        let parts: Vec<&str> = opcode.split('.').collect();
        let number = |prefixes: &[char]| {
            parts.iter().skip(1).find_map(|part| part.strip_prefix(prefixes).and_then(|digits| digits.parse::<u32>().ok()))
        };
        number(&['v']).unwrap_or(1) * number(&['u', 's', 'f', 'b']).expect("a memory instruction has a type") / 8
    }

    /// What stands between each pair of markers; none without a pair, or when the copies
    /// that unrolling made of one pair differ.
    fn counted(lines: &[&str]) -> Option<Body> {
        let places = |marker: &str| -> Vec<usize> { (0..lines.len()).filter(|&i| lines[i] == marker).collect() };
        let (begins, ends) = (places("// body begin"), places("// body end"));
        let bytes = |body: &[&str], kind: &str| {
            body.iter()
                .filter_map(|line| line.split_whitespace().find(|word| !word.starts_with('@')))
                .filter(|opcode| opcode.starts_with(kind) && !opcode.contains(".param") && !opcode.contains(".shared"))
                .map(width)
                .sum()
        };
        let mut bodies = begins.iter().zip(&ends).map(|(&begin, &end)| {
            let body = lines.get(begin..end)?;
            Some(Body { load_bytes: bytes(body, "ld."), store_bytes: bytes(body, "st.") })
        });
        let first = bodies.next()?;
        (begins.len() == ends.len() && bodies.all(|body| body == first)).then_some(first?)
    }

    #[test]
    fn a_kernel_loads_and_stores_what_its_pattern_declares() {
        let mut kernels = 0;
        for (case, launch) in cases().flat_map(|case| works(&case).into_iter().map(move |launch| (case.clone(), launch))) {
            let ptx = ptx(launch.module);
            let lines = entry(ptx, launch.kernel).unwrap_or_else(|| panic!("no entry {} in {}", launch.kernel, launch.module));
            let declared = launch.body.unwrap_or_else(|| panic!("{} declares no body", launch.kernel));
            assert_eq!(counted(&lines), Some(declared), "{}", launch.kernel);
            let id = &case.id;
            let Bytes { requested_read, requested_write, issued, .. } = case.bytes;
            let (requested, issued) = (requested_read + requested_write, issued.expect("kernels declare what they issue"));
            if ["conv3d", "matvec"].contains(&case.id.pattern()) {
                // Neighbours load what they share once each.
                assert!(issued >= requested, "{id}");
            } else if case.parameters.contains_key("index_bytes") {
                // The index is loaded beside what is requested.
                assert!(issued > requested, "{id}");
            } else {
                // Nothing is loaded twice, so the body's share of loads and stores is the
                // case's share of bytes read and written.
                assert_eq!(issued, requested, "{id}");
                assert_eq!(u64::from(declared.load_bytes) * requested_write, u64::from(declared.store_bytes) * requested_read, "{id}");
            }
            kernels += 1;
        }
        assert!(kernels >= 27);
    }

    /// Every case of default size, and the trials.
    fn cases() -> impl Iterator<Item = Case> {
        let ids = PATTERNS
            .iter()
            .flat_map(|p| p.ids(Profile::Full, DeviceKind::Cuda).into_iter().chain(p.trials().iter().map(|id| (*id).to_owned())));
        // On a card that holds every footprint.
        let large = Facts { free_bytes: 1 << 40, ..Facts::H200 };
        ids.map(move |id| plan(&CaseId::new(&id), &large).unwrap())
    }

    /// Every way of a case.
    fn ways(case: &Case) -> Vec<&Way> {
        case.ways.iter().flat_map(|ways| ways.all()).collect()
    }

    /// What is timed in a case, in each of its ways, where it is a kernel.
    fn works(case: &Case) -> Vec<Launch> {
        let work = if let Work::Kernel(launch) = &case.plan.work { Some(launch.clone()) } else { None };
        work.into_iter().chain(ways(case).into_iter().map(|way| way.work.clone())).collect()
    }

    /// Every launch of every case: the work and the check, in each way.
    fn launches() -> Vec<Launch> {
        let all = |case: Case| {
            let checks: Vec<Launch> = ways(&case).into_iter().map(|way| way.check.clone()).chain([case.plan.check.clone()]).collect();
            works(&case).into_iter().chain(checks).collect::<Vec<_>>()
        };
        cases().flat_map(all).collect()
    }

    /// Those of different kernels, arguments' types and blocks.
    fn different_launches() -> Vec<Launch> {
        let mut seen = std::collections::HashSet::new();
        launches().into_iter().filter(|launch| seen.insert((launch.kernel, launch.block))).collect()
    }

    #[test]
    fn every_launch_has_an_entry_with_parameters_of_its_arguments_types() {
        for launch in different_launches() {
            let ptx = ptx(launch.module);
            let heading = format!(".entry {}(", launch.kernel);
            let lines = ptx.lines().skip_while(|line| !line.contains(&heading)).skip(1).take_while(|line| !line.starts_with(')'));
            let types: Vec<&str> = lines.map(|line| line.split_whitespace().nth(1).unwrap()).collect();
            let of = |arg: &Arg| match arg {
                Arg::Buffer(_) | Arg::U64(_) | Arg::Status => ".u64",
                Arg::U32(_) | Arg::Data | Arg::Slice | Arg::Slices => ".u32",
                Arg::F32(_) | Arg::Tolerance(_) => ".f32",
            };
            assert_eq!(types, launch.args.iter().map(of).collect::<Vec<_>>(), "{}", launch.kernel);
        }
    }

    #[test]
    fn no_launch_has_more_threads_in_a_block_than_its_kernel_was_compiled_for() {
        for launch in different_launches() {
            let ptx = ptx(launch.module);
            let bound = entry_head(ptx, launch.kernel).and_then(|head| {
                let bound = head.split(".maxntid ").nth(1)?;
                bound.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
            });
            // Kernels that sum over a block or are tuned state the block that they count on.
            match bound {
                Some(bound) => assert!(launch.block <= bound, "{}: {} threads", launch.kernel, launch.block),
                None => assert!(launch.kernel.starts_with("check_"), "{} states no block", launch.kernel),
            }
        }
    }

    /// What stands between an entry's name and its body.
    fn entry_head<'a>(ptx: &'a str, name: &str) -> Option<&'a str> {
        ptx.split(&format!(".entry {name}(")).nth(1)?.split("\n{").next()
    }

    #[test]
    fn what_a_tuner_chooses_from_stays_within_300_kernels_and_a_mib() {
        let tuned = || SHIPPED.iter().filter(|shipped| shipped.name.starts_with("stream_") && shipped.name != "stream_check");
        let kernels: usize = tuned().map(|shipped| shipped.ptx.matches(".entry ").count()).sum();
        let bytes: usize = tuned().map(|shipped| shipped.ptx.len()).sum();
        assert!(kernels <= 300 && bytes <= 1 << 20, "{kernels} kernels, {bytes} bytes");
    }

    #[test]
    fn the_trials_run_every_kernel() {
        let launched: Vec<&str> = launches().iter().map(|launch| launch.kernel).collect();
        // What fills buffers and caches and stamps the time belongs to no pattern.
        let of_patterns = SHIPPED.iter().filter(|shipped| !["content", "clock"].contains(&shipped.name));
        for entry in of_patterns.flat_map(|s| s.ptx.lines()).filter_map(|line| line.split(".entry ").nth(1)?.split('(').next()) {
            assert!(launched.contains(&entry), "{entry}");
        }
    }

    #[test]
    fn the_count_sees_a_missing_store() {
        let lines =
            ["// body begin", "ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];", "@%p1 st.global.u32 [%rd2], %r1;", "// body end"];
        assert_eq!(counted(&lines), Some(Body { load_bytes: 16, store_bytes: 4 }));
        assert_eq!(counted(&lines[1..]), None);
    }
}
