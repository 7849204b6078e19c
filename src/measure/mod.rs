//! HOW it is measured: sampling and stop rules, statistics, verification, verdicts.

mod case;
mod sampling;
pub mod statistics;
#[cfg(test)]
pub(crate) mod testing;
mod verdict;

pub use case::{Interrupted, Measured, failed, measure};
pub use sampling::{Budget, Count, Noise, Samples, StopRule, TimeLimit, sample, stop_rules};
pub use verdict::verdict;
