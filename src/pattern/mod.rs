//! WHAT runs: the memory access patterns, each with its cases, byte and flop
//! counts, launch geometry and reference results.
//!
//! Nothing here knows a device: a pattern sees the few numbers of [`Facts`] and
//! returns a [`Plan`] of buffers and named kernels, which any device can carry out.

mod cache_state;
mod case;
mod chunks;
pub(crate) mod compute;
pub(crate) mod conv3d;
mod copy_engine;
pub mod data;
mod facts;
pub(crate) mod footprint;
mod gather;
mod id;
pub(crate) mod latency;
mod launch_limit;
pub(crate) mod matvec;
pub(crate) mod permutation;
mod pipe;
mod plan;
pub(crate) mod reading;
mod saturation;
mod scatter;
mod select;
mod size;
mod stream;
pub(crate) mod stride;
mod transfer;
mod ways;

pub use cache_state::{CacheState, eviction_bytes};
pub use case::{Bytes, Case, Level, Parameters, Report, Told};
pub use conv3d::{Convolution, Shape as ConvolutionShape};
pub use data::Data;
pub use facts::{DeviceKind, Facts};
pub use id::CaseId;
pub use matvec::Shape as MatvecShape;
pub use pipe::Pipe;
pub use plan::{Arg, Body, Buffer, BufferCopy, Content, LINE_BYTES, Launch, Place, Plan, Work};
pub use select::{SelectError, select};
pub use size::{Sizing, default_size};
pub(crate) use stream::HOST_PIECE_ELEMENTS;
pub use stream::Operation as StreamOperation;
pub use transfer::link_directions;
pub use ways::{Form, Rung, Way, Ways};

/// How much a run measures.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The headline figures, in seconds.
    Quick,
    /// Every pattern with its default parameters.
    Standard,
    /// Every sweep.
    Full,
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        })
    }
}

/// Why a case cannot be planned on a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The id names nothing that this pattern has.
    #[error("{0}")]
    Unknown(String),
    /// A size or parameter that the pattern cannot have.
    #[error("{0}")]
    Invalid(String),
    /// The case is meant for another kind of device.
    #[error("{0}")]
    Unsupported(String),
    /// The buffers do not fit into the free memory.
    #[error("{0}")]
    TooLarge(String),
}

/// A family of memory accesses.
pub trait Pattern: Sync {
    /// The first part of its cases' ids.
    fn name(&self) -> &'static str;

    /// One line for people.
    fn summary(&self) -> &'static str;

    /// The ids, without sizes, that `profile` measures on a device of this kind.
    fn ids(&self, profile: Profile, kind: DeviceKind) -> Vec<String>;

    /// As [`Self::ids`], on one device: some patterns go as far as its memory or its multiprocessors do.
    fn ids_on(&self, profile: Profile, facts: &Facts) -> Vec<String> {
        self.ids(profile, facts.kind)
    }

    /// Small cases of awkward sizes that together run every kernel of the pattern: with
    /// them a device shows in a moment that it computes and checks right.
    fn trials(&self) -> &'static [&'static str];

    /// Fixes every parameter of one case on a device with these `facts`.
    ///
    /// # Errors
    /// When the id names no case of this pattern, or the case does not fit the device.
    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError>;
}

/// All patterns, in the order in which they are measured: compute peaks come
/// first because every later row's compute utilization refers to them.
pub const PATTERNS: &[&dyn Pattern] = &[
    &compute::Compute,
    &stream::Stream,
    &stride::Stride,
    &footprint::Footprint,
    &gather::Gather,
    &scatter::Scatter,
    &conv3d::Conv3d,
    &matvec::Matvec,
    &copy_engine::CopyEngine,
    &transfer::Transfer,
    &saturation::Saturation,
    &latency::Latency,
];

/// The pattern that an id belongs to.
pub fn pattern_of(id: &CaseId) -> Option<&'static dyn Pattern> {
    PATTERNS.iter().copied().find(|p| p.name() == id.pattern())
}

/// Plans the case with this id.
///
/// # Errors
/// As [`Pattern::case`]; [`PlanError::Unknown`] when no pattern has that name.
pub fn plan(id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
    let pattern = pattern_of(id).ok_or_else(|| PlanError::Unknown(format!("no pattern is called '{}'", id.pattern())))?;
    let case = pattern.case(id, facts)?;
    launch_limit::fits_a_launch(&case, facts)?;
    Ok(case)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A card and a host with room for any size.
    fn vast() -> [Facts; 2] {
        [Facts { free_bytes: u64::MAX, ..Facts::H200 }, Facts { free_bytes: u64::MAX, ..Facts::HOST }]
    }

    /// A number near a power of two, or any.
    fn awkward() -> impl Strategy<Value = u64> {
        let near_a_power = (0u32..64, -5i64..=5).prop_map(|(power, beside)| (1u64 << power).saturating_add_signed(beside));
        prop_oneof![near_a_power, any::<u64>()]
    }

    #[test]
    fn what_a_row_records_of_a_default_size_names_the_same_case() {
        for facts in vast() {
            for id in PATTERNS.iter().flat_map(|pattern| pattern.ids(Profile::Full, facts.kind)) {
                let chosen = plan(&CaseId::new(&id), &facts).unwrap();
                let size = match (chosen.parameters.get("array_bytes"), chosen.parameters.get("extent")) {
                    (Some(bytes), _) => format!("@{bytes}"),
                    (_, Some(extent)) => format!("@{}x{}x{}", extent[0], extent[1], extent[2]),
                    _ => continue,
                };
                let named = plan(&CaseId::new(&format!("{}{size}", chosen.id.name())), &facts).unwrap();
                assert_eq!((named.parameters, named.bytes, named.plan), (chosen.parameters, chosen.bytes, chosen.plan), "{id}");
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_are_exact_on_both_sides_of_31_and_32_bits_of_elements_and_of_bytes(power in 28u32..35, beside in -5i64..=5) {
            let elements = (1u64 << power).saturating_add_signed(beside);
            let bytes = 4 * elements;
            for (name, read, written, flops) in [
                ("stream/read/f32", 1, 0, 0),
                ("stream/write/f32", 0, 1, 0),
                ("stream/copy/f32", 1, 1, 0),
                ("stream/triad/f32", 2, 1, 2),
                ("copy_engine/d2d", 1, 1, 0),
            ] {
                for facts in vast() {
                    let case = match plan(&CaseId::new(&format!("{name}@{bytes}")), &facts) {
                        Err(PlanError::Unsupported(_)) => continue,
                        planned => planned.unwrap(),
                    };
                    prop_assert_eq!((case.bytes.requested_read, case.bytes.requested_write), (read * bytes, written * bytes));
                    prop_assert_eq!((case.bytes.compulsory, case.flops), ((read + written) * bytes, flops * elements));
                    prop_assert!(case.plan.buffers.iter().filter(|buffer| buffer.bytes == bytes).count() as u64 == read + written);
                    prop_assert!(written == 0 || case.plan.compared == elements);
                }
            }
        }

        #[test]
        fn a_strided_pass_of_any_size_counts_four_bytes_an_access_and_every_sector(log_stride in 2u32..20, power in 28u32..36, beside in 0u64..5) {
            for facts in vast() {
                let (stride, sector) = (1u64 << log_stride, facts.kind.sector_bytes());
                let bytes = (1 << power) + beside * stride.max(sector);
                let case = plan(&CaseId::new(&format!("stride/copy/{stride}@{bytes}")), &facts).unwrap();
                prop_assert_eq!((case.bytes.requested_read, case.bytes.requested_write), (bytes / stride.min(sector) * 4, bytes / stride.min(sector) * 4));
                prop_assert_eq!(case.bytes.compulsory, 2 * bytes);
            }
        }

        #[test]
        fn any_size_is_a_case_that_fits_or_is_refused(sizes in [awkward(), awkward(), awkward()], free_bytes in awkward()) {
            let [a, b, c] = sizes;
            let mut ids: Vec<String> = PATTERNS.iter().flat_map(|pattern| pattern.trials()).flat_map(|trial| {
                let name = CaseId::new(trial).name().to_owned();
                [format!("{name}@{a}"), format!("{name}@{a}x{b}x{c}")]
            }).collect();
            ids.extend([format!("stride/read/{a}"), format!("stride/copy/{a}@{b}")]);
            ids.extend(["direct", "depthwise"].map(|kind| format!("conv3d/{kind}/f32/{a}x{b}@{c}x3x5")));
            ids.push(format!("conv3d/depthwise/f32/{a}x{a}@{b}x{c}x1"));
            for facts in vast() {
                let facts = Facts { free_bytes, ..facts };
                for id in &ids {
                    if let Ok(case) = plan(&CaseId::new(id), &facts) {
                        prop_assert!(case.plan.footprint_bytes() <= free_bytes, "{id}");
                    }
                }
            }
        }
    }
}
