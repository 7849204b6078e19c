//! `copy_engine`: what the driver's own device-to-device copy reaches. A row of its
//! own, never the headline: it is not the code that users run.

use serde_json::json;

use super::plan::{Arg, Buffer, BufferCopy, Launch, Plan, Work};
use super::size::size_of;
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, PlanError, Profile};

const SEED: u32 = 0x5EED_00CE;

/// The copy-engine pattern.
pub struct CopyEngine;

impl Pattern for CopyEngine {
    fn name(&self) -> &'static str {
        "copy_engine"
    }

    fn summary(&self) -> &'static str {
        "the driver's own device-to-device copy (GPU only)"
    }

    fn ids(&self, _profile: Profile, kind: DeviceKind) -> Vec<String> {
        match kind {
            DeviceKind::Cuda => vec!["copy_engine/d2d".into()],
            DeviceKind::Host => Vec::new(),
        }
    }

    fn trials(&self) -> &'static [&'static str] {
        &["copy_engine/d2d@1000004"]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        if id.name() != "copy_engine/d2d" {
            return Err(PlanError::Unknown(format!("'{id}' is not copy_engine/d2d")));
        }
        if facts.kind == DeviceKind::Host {
            return Err(PlanError::Unsupported("a host has no copy engine".into()));
        }
        let sizing = size_of(id, facts, 2, 4)?;
        let array = sizing.bytes_each;
        let mut parameters = Parameters::new();
        parameters.insert("array_bytes".into(), json!(array));
        Ok(Case {
            id: id.clone(),
            level: Level::of(array * 2, facts.cache_bytes),
            parameters,
            bytes: Bytes::contiguous(array, array),
            flops: 0,
            compute_pipe: None,
            accesses: None,
            report: None,
            notes: sizing.notes,
            plan: Plan {
                buffers: vec![Buffer::output(array), Buffer::words(array, SEED)],
                compared: array / 4,
                work: Work::Copies(vec![BufferCopy { from: 1, to: 0 }]),
                check: Launch {
                    module: "stream_check",
                    kernel: "check_words",
                    grid: facts.units * 8,
                    block: 256,
                    args: vec![Arg::Buffer(0), Arg::U64(array / 4), Arg::U32(SEED), Arg::Data, Arg::Status],
                    body: None,
                },
            },
            ways: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_counts_both_directions_and_a_host_has_none() {
        let id = CaseId::new("copy_engine/d2d@1048576");
        let bytes = CopyEngine.case(&id, &Facts::H200).unwrap().bytes;
        assert_eq!((bytes.requested_read, bytes.requested_write, bytes.requested()), (1 << 20, 1 << 20, 2 << 20));
        assert!(matches!(CopyEngine.case(&id, &Facts::HOST), Err(PlanError::Unsupported(_))));
    }
}
