//! What a choice among several ways to write a case gave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Missing;
use crate::pattern::Form;

/// How the ways in which a case can be written compare. The row's own figures are those of the best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tuning {
    /// The best, with which the row was measured.
    pub form: Form,
    /// Where it comes from.
    pub source: TuningSource,
    /// How many ways were timed in the search; 0 where it was known.
    pub tried: u32,
    /// Bandwidth of the simplest way, one element of 8 bytes a thread, verified like the row: requested bytes over
    /// the median, 10^9 B/s.
    pub naive_gbps: Option<f64>,
    /// KiB of loads in flight on a multiprocessor with which 90 % of the row's bandwidth is reached.
    pub ease_kib_per_unit: Option<f64>,
    /// The bandwidth with so many bytes in flight.
    pub in_flight: Vec<InFlight>,
    /// Why fields above are null.
    pub missing: Missing,
}

/// One point of bandwidth against bytes in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InFlight {
    /// KiB that all resident threads of a multiprocessor have asked for before the first of them is used.
    pub kib_per_unit: f64,
    /// Requested bytes over the median, 10^9 B/s; not verified.
    pub gbps: f64,
}

/// Where a form comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TuningSource {
    /// This case was searched for it.
    Searched,
    /// An earlier search on such a card, or in the same run, found it.
    Known,
    /// Something that a newer program knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}
