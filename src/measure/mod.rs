//! HOW it is measured: sampling and stop rules, statistics, verification, verdicts.

mod case;
mod fault;
mod marks;
mod poll;
mod sampling;
mod soak;
pub mod statistics;
mod telemetry;
#[cfg(test)]
pub(crate) mod testing;
mod together;
mod tune;
mod verdict;
mod verification;

pub use case::{Interrupted, Measured, Particulars, Settings, failed, measure};
pub use fault::{Fault, Outcome, with_fault, wrong_ways};
pub(crate) use marks::is_limit;
pub use sampling::{Budget, Count, Noise, Samples, Stable, StopRule, TimeLimit, sample, stop_rules, warm_up};
pub use soak::Soaking;
pub use together::{Window, measure_together};
pub use tune::Found;
pub use verdict::{Bounds, judge_again, verdict};
pub use verification::verify;
