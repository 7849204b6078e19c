//! WHERE it runs: devices that carry out plans and keep the time.

pub mod cuda;
pub mod host;
pub mod machine;
mod select;
mod sensors;

pub use select::{Selected, Selector, list, list_all, open};
pub use sensors::{Reading, Sensors};

use crate::pattern::{Data, Facts, Plan, Way};
use crate::record;

/// Why a device could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum DeviceError {
    /// The device cannot be used at all; the text says what was found and what to do.
    #[error("{0}")]
    Unusable(String),
    /// The request names no device that is here.
    #[error("{0}")]
    NotFound(String),
    /// The plan needs something that this device does not have.
    #[error("{0}")]
    Unsupported(String),
    /// Memory ran out.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The device failed while working, and may do the next thing all the same.
    #[error("{0}")]
    Failed(String),
    /// The device failed in a way after which this process gets nothing more from it.
    #[error("the device was lost to this run: {0}")]
    Lost(String),
}

/// How a case was written for this device: kernel, vector width, threads and the like.
pub type Variant = serde_json::Map<String, serde_json::Value>;

/// What the device's own clocks say of one stretch of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// The time between its start and its end, in nanoseconds.
    pub ns: f64,
    /// The mean clock of the multiprocessors over it, in MHz; none where it cannot be read.
    pub sm_clock_mhz: Option<f64>,
}

/// Words on both sides of each output that no case may write: a write past its end by up
/// to 64 KiB shows.
pub const GUARD_WORDS: u64 = 16 << 10;

/// What comparing a result with its expectation gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Verification {
    /// How many results (elements or checksums) were wrong.
    pub mismatches: u64,
    /// The lowest wrong index, when any is.
    pub first_bad: Option<u64>,
    /// How many words beside the buffers were overwritten.
    pub stray: u64,
}

impl Verification {
    /// From the status words that a check adds to.
    ///
    /// The balance is what was expected of all results together less what they are,
    /// modulo 2^64: it shows what no single comparison was answerable for. A check that
    /// compared other than `expected` results has not done its work.
    pub(crate) fn from_status([mismatches, first_bad, balance, compared]: [u64; 4], expected: u64, stray: u64) -> Self {
        let unchecked = expected.abs_diff(compared);
        Self {
            mismatches: mismatches.max(u64::from(balance != 0)).saturating_add(unchecked),
            first_bad: (mismatches > 0).then_some(first_bad),
            stray,
        }
    }

    /// Whether everything was right.
    pub fn passed(&self) -> bool {
        self.mismatches == 0 && self.stray == 0
    }

    /// Both together: what either found.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            mismatches: self.mismatches.saturating_add(other.mismatches),
            first_bad: self.first_bad.into_iter().chain(other.first_bad).min(),
            stray: self.stray.max(other.stray),
        }
    }
}

/// Status words before a check: nothing wrong, no index yet, balanced, nothing compared.
pub(crate) const STATUS_START: [u64; 4] = [0, u64::MAX, 0, 0];

/// A place where cases run.
pub trait Device {
    /// The numbers that patterns plan with, read now (free memory changes).
    ///
    /// # Errors
    /// When the device no longer answers.
    fn facts(&self) -> Result<Facts, DeviceError>;

    /// Who this device is and in which state, for the document.
    ///
    /// # Errors
    /// When the device no longer answers.
    fn identity(&self) -> Result<record::Device, DeviceError>;

    /// Its sensors, for the time of one case.
    ///
    /// # Errors
    /// The reason, where it has none that can be read here, or those of an earlier case hang.
    fn sensors(&mut self) -> Result<Box<dyn Sensors>, String>;

    /// Makes a plan ready: allocates its buffers, loads its kernels. What the buffers hold
    /// is up to [`Program::prepare`], which comes first.
    ///
    /// # Errors
    /// When memory runs out, a kernel cannot be loaded, or the device fails.
    fn load<'a>(&'a mut self, plan: &'a Plan) -> Result<Box<dyn Program + 'a>, DeviceError>;
}

/// A plan that is ready to run.
pub trait Program {
    /// How the case is written for this device.
    fn variant(&self) -> Variant;

    /// Runs the work `executions` times without a pause.
    ///
    /// # Errors
    /// When the device fails.
    fn execute(&mut self, executions: u32) -> Result<Timing, DeviceError>;

    /// Does the work in another of the case's ways from now on.
    ///
    /// # Errors
    /// When the device has no such kernel.
    fn take(&mut self, way: &Way) -> Result<(), DeviceError>;

    /// Fills every cache with other memory, as [`crate::pattern::CacheState::Cold`] says.
    ///
    /// # Errors
    /// When the device fails, or has no room for that memory.
    fn evict_caches(&mut self) -> Result<(), DeviceError>;

    /// By how much the free memory fell when the buffers were allocated, in bytes.
    ///
    /// # Errors
    /// Why it is not known.
    fn memory_taken_bytes(&self) -> Result<u64, String>;

    /// Gives inputs the data (unless they were given it before: what the work did to them
    /// must show) and poisons outputs.
    ///
    /// # Errors
    /// When the device fails.
    fn prepare(&mut self, data: Data) -> Result<(), DeviceError>;

    /// Compares every result of the last execution, and what stands beside the buffers.
    ///
    /// # Errors
    /// When the device fails; wrong results are no error here but a finding.
    fn check(&mut self) -> Result<Verification, DeviceError>;

    /// Has `change` alter the words of a buffer of the plan, and of an output the
    /// [`GUARD_WORDS`] after them, to prove that a check sees it.
    ///
    /// # Errors
    /// When the device fails.
    fn alter(&mut self, buffer: usize, change: &dyn Fn(&mut [u32])) -> Result<(), DeviceError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_did_not_run_is_no_pass() {
        assert!(!Verification::from_status(STATUS_START, 1000, 0).passed());
        assert!(Verification::from_status([0, u64::MAX, 0, 1000], 1000, 0).passed());
    }

    #[test]
    fn results_that_do_not_balance_are_wrong_though_each_compared_well() {
        let unbalanced = Verification::from_status([0, u64::MAX, 7, 1000], 1000, 0);
        assert_eq!(unbalanced, Verification { mismatches: 1, first_bad: None, stray: 0 });
    }

    #[test]
    fn the_lowest_wrong_index_is_kept() {
        assert_eq!(Verification::from_status([2, 40, 0, 100], 100, 0), Verification { mismatches: 2, first_bad: Some(40), stray: 0 });
    }

    #[test]
    fn a_write_beside_the_buffers_is_no_pass() {
        assert!(!Verification::from_status([0, u64::MAX, 0, 1000], 1000, 1).passed());
    }

    #[test]
    fn two_verifications_together_find_what_either_found() {
        let right = Verification { mismatches: 0, first_bad: None, stray: 0 };
        let wrong = Verification { mismatches: 2, first_bad: Some(7), stray: 1 };
        assert_eq!(right.and(wrong), wrong);
        assert_eq!(wrong.and(Verification { first_bad: Some(3), ..wrong }), Verification { mismatches: 4, first_bad: Some(3), stray: 1 });
    }
}
