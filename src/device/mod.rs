//! WHERE it runs: devices that carry out plans and keep the time.

pub mod cuda;
pub mod host;
pub mod machine;
mod select;

pub use select::{Selected, Selector, list, open};

use crate::pattern::{Facts, Plan};
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

/// What comparing a result with its expectation gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verification {
    /// How many results (elements or checksums) were wrong.
    pub mismatches: u64,
    /// The lowest wrong index, when any is.
    pub first_bad: Option<u64>,
}

impl Verification {
    /// From the status words that a check adds to.
    ///
    /// The balance is what was expected of all results together less what they are,
    /// modulo 2^64: it shows what no single comparison was answerable for. A check that
    /// compared other than `expected` results has not done its work.
    pub(crate) fn from_status([mismatches, first_bad, balance, compared]: [u64; 4], expected: u64) -> Self {
        let unchecked = expected.abs_diff(compared);
        Self {
            mismatches: mismatches.max(u64::from(balance != 0)).saturating_add(unchecked),
            first_bad: (mismatches > 0).then_some(first_bad),
        }
    }

    /// Whether everything was right.
    pub fn passed(&self) -> bool {
        self.mismatches == 0
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

    /// Makes a plan ready: allocates and fills its buffers, loads its kernels.
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

    /// Poisons the outputs, runs the work once, and checks every result.
    ///
    /// # Errors
    /// When the device fails; wrong results are no error here but a finding.
    fn verify(&mut self) -> Result<Verification, DeviceError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_did_not_run_is_no_pass() {
        assert!(!Verification::from_status(STATUS_START, 1000).passed());
        assert!(Verification::from_status([0, u64::MAX, 0, 1000], 1000).passed());
    }

    #[test]
    fn results_that_do_not_balance_are_wrong_though_each_compared_well() {
        let unbalanced = Verification::from_status([0, u64::MAX, 7, 1000], 1000);
        assert_eq!(unbalanced, Verification { mismatches: 1, first_bad: None });
    }

    #[test]
    fn the_lowest_wrong_index_is_kept() {
        assert_eq!(Verification::from_status([2, 40, 0, 100], 100), Verification { mismatches: 2, first_bad: Some(40) });
    }
}
