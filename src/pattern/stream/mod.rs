//! `stream`: contiguous passes over arrays too large for any cache.
//!
//! | operation | does | reads | writes | flops an element |
//! |---|---|---|---|---|
//! | read | checksum of `b` | 1 | 0 | 0 |
//! | write | `a[i] = f(i)` | 0 | 1 | 0 |
//! | copy | `a[i] = b[i]` | 1 | 1 | 0 |
//! | scale | `a[i] = 3 b[i]` | 1 | 1 | 1 |
//! | add | `a[i] = b[i] + c[i]` | 2 | 1 | 1 |
//! | triad | `a[i] = b[i] + 3 c[i]` | 2 | 1 | 2 |
//! | dot | sum of `b[i] c[i]` | 2 | 0 | 2 |
//!
//! The checksum and `f` are integer operations of [`super::data`] and count no flops. Read, write and copy
//! move words, whatever the type.

mod element;
mod form;
mod layout;
mod operation;

use serde_json::json;

pub use element::Element;
pub(crate) use layout::HOST_PIECE_ELEMENTS;
pub use operation::Operation;

use super::size::size_of;
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, Pipe, PlanError, Profile};

/// Blocks that a grid-stride kernel launches for each multiprocessor: many times what
/// fits, so that the last to end leaves little idle. Of the peak of an H200 that was
/// 0.971 with 48 and 96 blocks and 0.969 with 24 (2026-12; METHOD.md has the table).
pub(super) const BLOCKS_PER_UNIT: u32 = 128;

/// The stream pattern.
pub struct Stream;

impl Pattern for Stream {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn summary(&self) -> &'static str {
        "contiguous read, write, copy, scale, add, triad and dot over arrays too large for any cache"
    }

    fn ids(&self, profile: Profile, kind: DeviceKind) -> Vec<String> {
        let id = |operation: Operation, element: Element| format!("stream/{}/{}", operation.name(), element.name());
        let wanted = |operation: Operation, element: Element| match profile {
            Profile::Quick => {
                element == Element::F32 && [Operation::Read, Operation::Write, Operation::Copy, Operation::Triad].contains(&operation)
            }
            // What moves words is the same for every type.
            Profile::Standard => element == Element::F32 || operation.computes(),
            Profile::Full => true,
        };
        let all = Operation::ALL.into_iter().flat_map(|operation| Element::ALL.map(|element| (operation, element)));
        all.filter(|&(operation, element)| wanted(operation, element) && !no_host_kernel(kind, operation, element))
            .map(|(o, e)| id(o, e))
            .collect()
    }

    fn trials(&self) -> &'static [&'static str] {
        &[
            "stream/read/f32@1000004",
            "stream/write/f32@1000004",
            "stream/copy/f32@1000004",
            "stream/scale/f32@1000004",
            "stream/scale/f64@1000008",
            "stream/scale/f16@1000004",
            "stream/add/f32@1000004",
            "stream/add/f64@1000008",
            "stream/add/f16@1000004",
            "stream/triad/f32@1000004",
            "stream/triad/f64@1000008",
            "stream/triad/f16@1000004",
            "stream/dot/f32@1000004",
            "stream/dot/f64@1000008",
            "stream/dot/f16@1000004",
        ]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let unknown = || PlanError::Unknown(format!("'{id}' is not stream/<read|write|copy|scale|add|triad|dot>/<f32|f64|f16>"));
        let [operation, element] = id.parts()[..] else { return Err(unknown()) };
        let operation = Operation::ALL.into_iter().find(|o| o.name() == operation).ok_or_else(unknown)?;
        let element = Element::ALL.into_iter().find(|e| e.name() == element).ok_or_else(unknown)?;
        if no_host_kernel(facts.kind, operation, element) {
            return Err(PlanError::Unsupported(format!("'{id}': processors compute in f32 and f64, not in f16")));
        }

        let arrays = operation.arrays_read() + operation.arrays_written();
        let sizing = size_of(id, facts, arrays, element.bytes().max(4))?;
        let array = sizing.bytes_each;
        let elements = array / element.bytes();

        let mut parameters = Parameters::new();
        parameters.insert("array_bytes".into(), json!(array));
        parameters.insert("elements".into(), json!(elements));

        let layout = layout::Layout { operation, element, array, facts };
        let (plan, ways) = layout.plan();
        // Beside arrays that just fit stand the sums of all blocks.
        if plan.footprint_bytes() > facts.free_bytes {
            let needed = plan.footprint_bytes();
            return Err(PlanError::TooLarge(format!(
                "'{id}' needs {needed} bytes and {} are free; choose a smaller size after '@'",
                facts.free_bytes
            )));
        }
        Ok(Case {
            id: id.clone(),
            level: Level::of(array * arrays, facts.cache_bytes),
            parameters,
            bytes: Bytes::contiguous(array * operation.arrays_read(), array * operation.arrays_written()),
            flops: elements * operation.flops_per_element(),
            compute_pipe: (operation.computes() && element == Element::F32).then_some(Pipe::FmaF32),
            accesses: None,
            report: None,
            notes: sizing.notes,
            plan,
            ways,
        })
    }
}

/// Whether the host has nothing to compute this with.
fn no_host_kernel(kind: DeviceKind, operation: Operation, element: Element) -> bool {
    kind == DeviceKind::Host && operation.computes() && element == Element::F16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(text: &str) -> Case {
        Stream.case(&CaseId::new(text), &Facts::H200).unwrap()
    }

    #[test]
    fn achieved_bytes_count_reads_and_writes() {
        let array = 64 * (60 << 20);
        for (operation, arrays) in [("read", 1), ("write", 1), ("copy", 2), ("scale", 2), ("add", 3), ("triad", 3), ("dot", 2)] {
            for element in ["f32", "f64", "f16"] {
                assert_eq!(case(&format!("stream/{operation}/{element}")).bytes.requested(), arrays * array, "{operation} {element}");
            }
        }
    }

    #[test]
    fn flops_count_elements_of_the_type() {
        let array = 64 * (60 << 20);
        assert_eq!(case("stream/triad/f32").flops, 2 * array / 4);
        assert_eq!(case("stream/dot/f64").flops, 2 * array / 8);
        assert_eq!(case("stream/add/f16").flops, array / 2);
        assert_eq!((case("stream/copy/f32").flops, case("stream/copy/f32").compute_pipe), (0, None));
    }

    #[test]
    fn what_moves_words_is_written_by_one_family_of_kernels_for_all_types() {
        let family = |id: &str| case(id).ways.unwrap().family;
        assert_eq!(family("stream/copy/f16"), family("stream/copy/f64"));
        assert_ne!(family("stream/scale/f16"), family("stream/scale/f64"));
    }

    #[test]
    fn a_profile_measures_what_differs_and_the_full_one_all() {
        let count = |profile, kind| Stream.ids(profile, kind).len();
        assert_eq!([Profile::Quick, Profile::Standard, Profile::Full].map(|p| count(p, DeviceKind::Cuda)), [4, 15, 21]);
        assert_eq!([Profile::Quick, Profile::Standard, Profile::Full].map(|p| count(p, DeviceKind::Host)), [4, 11, 17]);
    }

    #[test]
    fn a_size_within_the_cache_is_not_called_dram() {
        assert_eq!(case("stream/copy/f32@1048576").level, Level::Cache);
        assert_eq!(case("stream/copy/f32").level, Level::Dram);
    }

    #[test]
    fn a_size_is_whole_elements_and_of_half_precision_whole_pairs() {
        for id in ["stream/add/f64@1004", "stream/add/f16@1002", "stream/read/f32@1002"] {
            assert!(matches!(Stream.case(&CaseId::new(id), &Facts::H200), Err(PlanError::Invalid(_))), "{id}");
        }
    }

    #[test]
    fn other_operations_and_types_are_refused_by_name() {
        for id in ["stream/fly/f32", "stream/copy/f33", "stream", "stream/copy"] {
            let e = Stream.case(&CaseId::new(id), &Facts::H200).unwrap_err();
            assert!(matches!(&e, PlanError::Unknown(m) if m.contains(id)), "{e}");
        }
    }

    #[test]
    fn a_host_computes_in_no_half_precision() {
        let refused = |id: &str| matches!(Stream.case(&CaseId::new(id), &Facts::HOST), Err(PlanError::Unsupported(_)));
        assert!(refused("stream/dot/f16") && !refused("stream/copy/f16"));
    }
}
