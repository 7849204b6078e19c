//! `saturation`: how many multiprocessors it takes to use the memory.
//!
//! A contiguous read of one array by exactly N multiprocessors, one block of 1024 threads on each, or
//! by N workers of a host. The kernel tells on which multiprocessor each of its blocks ran.

use std::collections::BTreeSet;

use serde_json::json;

use super::case::{Report, Told};
use super::plan::{Arg, Buffer, Launch, Plan, Work};
use super::reading::{self, BLOCK, BODY, RECORD_WORDS, TILE_BYTES, WARP};
use super::size::size_of;
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, PlanError, Profile};

const SEED: u32 = 0x5EED_005A;

/// The saturation pattern.
pub struct Saturation;

/// From one unit to all of them: doublings, and then this many equal steps.
fn points(units: u32, steps: u32) -> Vec<u32> {
    let doublings = [1, 2, 4, 8].into_iter().filter(|&n| n <= units);
    let steps = (1..=steps).map(|k| (u64::from(units) * u64::from(k) / u64::from(steps)) as u32);
    let points: BTreeSet<u32> = doublings.chain(steps).filter(|&n| n > 0).collect();
    points.into_iter().collect()
}

fn ids(profile: Profile, units: u32) -> Vec<String> {
    let points = match profile {
        Profile::Quick => Vec::new(),
        Profile::Standard => points(units, 8),
        Profile::Full => points(units, 32),
    };
    points.iter().map(|n| format!("saturation/read/{n}")).collect()
}

impl Pattern for Saturation {
    fn name(&self) -> &'static str {
        "saturation"
    }

    fn summary(&self) -> &'static str {
        "contiguous read by 1, 2, 4 … multiprocessors (or workers of a host): how many use the memory up"
    }

    fn ids(&self, profile: Profile, kind: DeviceKind) -> Vec<String> {
        // Those of a card of middling size, and of the smallest host.
        ids(profile, if kind == DeviceKind::Cuda { 128 } else { 1 })
    }

    fn ids_on(&self, profile: Profile, facts: &Facts) -> Vec<String> {
        ids(profile, facts.units)
    }

    fn trials(&self) -> &'static [&'static str] {
        &["saturation/read/1@675840", "saturation/read/2@675840"]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let what = match facts.kind {
            DeviceKind::Cuda => "multiprocessors",
            DeviceKind::Host => "workers",
        };
        let unknown = || PlanError::Unknown(format!("'{id}' is not saturation/read/<{what}>"));
        let ["read", text] = id.parts()[..] else { return Err(unknown()) };
        let units: u32 = text.parse().ok().filter(|n: &u32| n.to_string() == text).ok_or_else(unknown)?;
        if units == 0 || units > facts.units {
            let few = format!("'{id}': this device has {} {what}; choose from 1 to {0}", facts.units);
            return Err(if units == 0 { PlanError::Invalid(few) } else { PlanError::Unsupported(few) });
        }
        let sizing = size_of(id, facts, 1, TILE_BYTES)?;
        let array = sizing.bytes_each;
        let mut parameters = Parameters::new();
        parameters.insert("units".into(), json!(units));
        parameters.insert("array_bytes".into(), json!(array));

        // A record for each warp, or for each worker.
        let (records, body, report) = match facts.kind {
            DeviceKind::Cuda => (units * (BLOCK / WARP), Some(BODY), Some(Report { buffer: 0, read: tell_cuda })),
            DeviceKind::Host => (units, None, None),
        };
        let words = Arg::U64(array / 4);
        let launch = |kernel, grid, block, args, body| Launch { module: "saturation", kernel, grid, block, args, body };
        let check = vec![Arg::Buffer(0), words, Arg::U32(SEED), Arg::Data, Arg::Status];
        Ok(Case {
            id: id.clone(),
            level: Level::of(array, facts.cache_bytes),
            parameters,
            bytes: Bytes::contiguous(array, 0),
            flops: 0,
            compute_pipe: None,
            accesses: None,
            report,
            notes: sizing.notes,
            ways: None,
            plan: Plan {
                buffers: vec![Buffer::output(u64::from(records) * RECORD_WORDS * 4), Buffer::words(array, SEED)],
                work: Work::Kernel(launch("saturation_read", units, BLOCK, vec![Arg::Buffer(0), Arg::Buffer(1), words], body)),
                check: launch("check_saturation_read", records, 256, check, None),
                compared: u64::from(records),
            },
        })
    }
}

/// Notes a read on CUDA that fewer multiprocessors made than it is named after: some had several blocks.
fn tell_cuda(records: &[u32]) -> Told {
    let warps: Vec<u64> = reading::figures(records).collect();
    let blocks = warps.len() / (BLOCK / WARP) as usize;
    let units = warps.into_iter().collect::<BTreeSet<_>>().len();
    let note = (units != blocks).then(|| format!("{blocks} blocks ran on {units} multiprocessors: this is not the bandwidth of {blocks}"));
    Told { notes: note.into_iter().collect(), ..Told::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_go_from_one_unit_to_all() {
        assert_eq!(points(132, 8), [1, 2, 4, 8, 16, 33, 49, 66, 82, 99, 115, 132]);
        assert_eq!(points(2, 8), [1, 2]);
        assert_eq!(points(1, 32), [1]);
        for units in 1..300 {
            let points = points(units, 32);
            assert!(points[0] == 1 && points[points.len() - 1] == units && points.is_sorted(), "{units}: {points:?}");
        }
    }

    #[test]
    fn a_device_is_asked_for_no_more_units_than_it_has() {
        let ids = Saturation.ids_on(Profile::Standard, &Facts::H200);
        assert_eq!(ids.last().unwrap(), "saturation/read/132");
        let refused = Saturation.case(&CaseId::new("saturation/read/133"), &Facts::H200).unwrap_err();
        assert!(matches!(&refused, PlanError::Unsupported(why) if why.contains("132 multiprocessors")), "{refused}");
        let refused = Saturation.case(&CaseId::new("saturation/read/3"), &Facts::HOST).unwrap_err();
        assert!(matches!(&refused, PlanError::Unsupported(why) if why.contains("2 workers")), "{refused}");
        for id in ["saturation/read/0", "saturation/read/13@4097"] {
            assert!(matches!(Saturation.case(&CaseId::new(id), &Facts::H200), Err(PlanError::Invalid(_))), "{id}");
        }
        for id in ["saturation/read/01", "saturation/write/1", "saturation/read", "saturation/read/x"] {
            assert!(matches!(Saturation.case(&CaseId::new(id), &Facts::H200), Err(PlanError::Unknown(_))), "{id}");
        }
    }

    #[test]
    fn there_is_one_block_a_unit_and_a_record_for_each_of_its_warps() {
        let case = Saturation.case(&CaseId::new("saturation/read/33"), &Facts::H200).unwrap();
        let Work::Kernel(launch) = &case.plan.work else { unreachable!() };
        assert_eq!((launch.grid, launch.block), (33, 1024));
        assert_eq!((case.plan.check.grid, case.plan.compared, case.plan.buffers[0].bytes), (1056, 1056, 1056 * 16));
        assert_eq!((case.level, case.bytes.requested()), (Level::Dram, 64 * (60 << 20)));
    }

    #[test]
    fn an_array_of_more_than_32_bits_of_words_is_counted_in_64() {
        for array in [(2u64 << 30) + 4096, (16 << 30) + 4096] {
            let case = Saturation.case(&CaseId::new(&format!("saturation/read/1@{array}")), &Facts::H200).unwrap();
            assert_eq!(case.plan.check.args[1], Arg::U64(array / 4));
            assert_eq!(case.bytes.compulsory, array);
        }
        let refused = Saturation.case(&CaseId::new("saturation/read/1@4100"), &Facts::H200).unwrap_err();
        assert!(refused.to_string().contains("@4096 would be"), "{refused}");
    }

    #[test]
    fn blocks_that_shared_a_multiprocessor_are_noted() {
        let records = |units: &[u32]| units.iter().flat_map(|&unit| [[1, 0, unit, 0]; 32].concat()).collect::<Vec<u32>>();
        assert_eq!(tell_cuda(&records(&[4, 0, 131])).notes, [""; 0]);
        assert!(tell_cuda(&records(&[4, 0, 4])).notes[0].contains("3 blocks ran on 2 multiprocessors"));
    }
}
