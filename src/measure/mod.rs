//! HOW it is measured: sampling and stop rules, statistics, verification, verdicts.

mod case;
mod marks;
mod poll;
mod sampling;
mod session;
pub mod statistics;
mod telemetry;
#[cfg(test)]
mod testing;
mod verdict;

pub use case::{Interrupted, Measured, measure};
pub use sampling::{Budget, Count, Noise, Samples, StopRule, TimeLimit, sample, stop_rules, warm_up};
pub use session::{Event, Plans, SessionError, run};
pub use verdict::verdict;
