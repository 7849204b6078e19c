//! What a case gave while other devices were at work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// A case on all devices of a run at the same time, as one of them saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// The other devices: the UUID of each, or its name where it has none.
    pub others: Vec<String>,
    /// Requested bytes over the median while all ran, 10^9 B/s.
    pub achieved_gbps: f64,
    /// Times of one execution while all ran.
    pub time_ns: Time,
    /// The share of its sampling time in which every other device was sampling too, a fraction.
    pub overlap_fraction: f64,
    /// Achieved while all ran over achieved alone, a fraction that is never clamped: 1 without contention.
    pub factor: f64,
}
