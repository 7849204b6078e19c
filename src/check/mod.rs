//! Whether a document may be trusted: the rules by which a run judges its own rows, applied to files.

mod document;
mod row;

use serde::Serialize;

use crate::measure::Bounds;
use crate::record::Claims;

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The file holds no document that this program can read.
    Unreadable,
    /// Not every case has its row.
    Incomplete,
    /// A debug build measured.
    DebugBuild,
    /// A theoretical peak that is none, or two that contradict each other.
    UnsoundPeak,
    /// The case ended as error or timeout.
    Failed,
    /// The check found wrong results.
    Unverified,
    /// More bytes a second than the memory bus can carry.
    AbovePeak,
    /// The last cache served what claims the memory.
    CacheResident,
    /// Faster than the memory bus on data that can be compressed.
    Compressed,
    /// The data were in the main memory of the machine.
    Spilled,
    /// A figure that is none, a bandwidth that is not its bytes over its time, or a median outside of its samples.
    DoesNotAddUp,
    /// Neither a bandwidth nor bytes and a time.
    NoFigures,
    /// Nobody checked the results.
    NotVerified,
    /// The times are noisy, or a clock moved.
    Unstable,
    /// The clocks were held back.
    Throttled,
    /// Another process was on the card.
    Shared,
    /// Something that a newer program knows.
    Unknown,
}

impl What {
    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Incomplete => "incomplete",
            Self::DebugBuild => "debug_build",
            Self::UnsoundPeak => "unsound_peak",
            Self::Failed => "failed",
            Self::Unverified => "unverified",
            Self::AbovePeak => "above_peak",
            Self::CacheResident => "cache_resident",
            Self::Compressed => "compressed",
            Self::Spilled => "spilled",
            Self::DoesNotAddUp => "does_not_add_up",
            Self::NoFigures => "no_figures",
            Self::NotVerified => "not_verified",
            Self::Unstable => "unstable",
            Self::Throttled => "throttled",
            Self::Shared => "shared",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that a reader of a document should know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The row's id; none when it is about the whole document.
    pub case: Option<String>,
    /// What it is.
    pub what: What,
    /// The numbers behind it.
    pub says: String,
}

/// All findings of a document: those about the whole of it, then row by row.
pub fn check(claims: &Claims) -> Vec<Finding> {
    let bounds = Bounds::of(&claims.peaks, claims.device.memory.cache_bytes);
    let about_all = document::findings(claims).into_iter().map(|(what, says)| Finding { case: None, what, says });
    let about_rows = claims.measurements.iter().flat_map(|claim| {
        row::findings(claim, bounds).into_iter().map(|(what, says)| Finding { case: Some(claim.id.clone()), what, says })
    });
    about_all.chain(about_rows).collect()
}
