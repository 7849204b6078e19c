//! HOW it is measured: sampling and stop rules, statistics, verification, verdicts.

mod sampling;
mod session;
pub mod statistics;
mod verdict;

pub use sampling::{Budget, Count, Noise, Samples, StopRule, TimeLimit, sample, stop_rules};
pub use session::{Event, Interrupted, Plans, SessionError, measure, run};
pub use verdict::verdict;
