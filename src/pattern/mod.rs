//! WHAT runs: the memory access patterns, each with its cases, byte and flop
//! counts, launch geometry and reference results.
//!
//! Nothing here knows a device: a pattern sees the few numbers of [`Facts`] and
//! returns a [`Plan`] of buffers and named kernels, which any device can carry out.

mod cache_state;
mod case;
pub(crate) mod compute;
pub(crate) mod conv3d;
mod copy_engine;
pub mod data;
mod facts;
pub(crate) mod footprint;
mod id;
mod launch_limit;
mod pipe;
mod plan;
mod select;
mod size;
mod stream;
pub(crate) mod stride;

pub use cache_state::{CacheState, eviction_bytes};
pub use case::{Bytes, Case, Level, Parameters};
pub use conv3d::{Convolution, Shape as ConvolutionShape};
pub use data::Data;
pub use facts::{DeviceKind, Facts};
pub use id::CaseId;
pub use pipe::Pipe;
pub use plan::{Arg, Body, Buffer, Content, Launch, Plan, Work};
pub use select::{SelectError, select};
pub use size::{Sizing, default_size};
pub use stream::Operation as StreamOperation;

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
pub const PATTERNS: &[&dyn Pattern] =
    &[&compute::Compute, &stream::Stream, &stride::Stride, &footprint::Footprint, &conv3d::Conv3d, &copy_engine::CopyEngine];

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
