//! Exit codes, and the failures that lead to them.

use crate::device::DeviceError;
use crate::pattern::{CaseId, PlanError, SelectError};
use crate::record::{LoadError, Run, SaveError, Status, Verdict};
use crate::report::ReportError;
use crate::session::{Plans, ServeError};

/// How the program ended, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; what was measured is verified and plausible.
    Done = 0,
    /// A fault of this program.
    Internal = 1,
    /// Wrong usage, unreadable input, or output that cannot be written.
    Usage = 2,
    /// The device asked for is not usable here.
    Device = 3,
    /// The device returned wrong data.
    WrongData = 4,
    /// A figure that cannot be.
    Implausible = 5,
    /// Some case ended as error or timeout.
    CaseFailed = 7,
    /// Ended by the user.
    Interrupted = 130,
}

impl Exit {
    /// What a finished document leads to.
    pub fn of(run: &Run) -> Self {
        let any_verdict = |verdict| run.measurements.iter().any(|m| m.verdict == Some(verdict));
        if any_verdict(Verdict::Unverified) {
            Self::WrongData
        } else if [Verdict::AbovePeak, Verdict::CacheResident, Verdict::Compressed, Verdict::Spilled].into_iter().any(any_verdict) {
            Self::Implausible
        } else if run.measurements.iter().any(|m| matches!(m.status, Status::Error | Status::Timeout)) {
            Self::CaseFailed
        } else {
            Self::Done
        }
    }

    /// The more important of two codes, when several hold: what was found out about a
    /// device outweighs that something could not be read or written.
    pub fn and(self, other: Self) -> Self {
        const ORDER: [Exit; 8] = [
            Exit::Interrupted,
            Exit::Internal,
            Exit::WrongData,
            Exit::Implausible,
            Exit::Device,
            Exit::Usage,
            Exit::CaseFailed,
            Exit::Done,
        ];
        ORDER.into_iter().find(|&exit| exit == self || exit == other).unwrap_or(self)
    }
}

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Wrong usage; the text says what to do.
    #[error("{0}")]
    Usage(String),
    /// A name that selects nothing.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// A case that cannot be as written.
    #[error(transparent)]
    Plan(PlanError),
    /// A device that cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A document that cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A document that cannot be written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// A child without a parent.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A report that cannot be made.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Output that could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

impl Failure {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_)
            | Self::Select(_)
            | Self::Plan(_)
            | Self::Load(_)
            | Self::Save(_)
            | Self::Serve(_)
            | Self::Report(_)
            | Self::Output(_) => Exit::Usage,
            Self::Device(DeviceError::NotFound(_)) => Exit::Usage,
            Self::Device(_) => Exit::Device,
        }
    }
}

/// Refuses, before anything is measured, what cannot be measured as wished: a
/// size that does not fit and that one of the `names` or an id has, or a device with too little memory for any default.
pub(super) fn check_plans(plans: &Plans, names: &[String]) -> Result<(), Failure> {
    let is_named = |id: &CaseId| id.size().is_some() || names.contains(&id.to_string());
    if let Some((id, error)) = plans.error(|id, error| is_named(id) || !matches!(error, PlanError::TooLarge(_))) {
        let says = error.to_string();
        // Reasons that many cases of a run share name none of them.
        return Err(if says.contains(&id.to_string()) { Failure::Plan(error.clone()) } else { Failure::Usage(format!("'{id}': {says}")) });
    }
    match plans.error(|_, _| true) {
        Some((_, error)) if plans.no_dram_left() => Err(DeviceError::Unusable(error.to_string()).into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Facts, Profile, select};

    #[test]
    fn a_document_leads_to_the_code_of_its_gravest_row() {
        let mut run = crate::chart::testing::h200();
        assert_eq!(Exit::of(&run), Exit::Done);
        run.measurements[0].status = Status::Error;
        assert_eq!(Exit::of(&run), Exit::CaseFailed);
        run.measurements[1].verdict = Some(Verdict::AbovePeak);
        assert_eq!(Exit::of(&run), Exit::Implausible);
        run.measurements[1].verdict = Some(Verdict::CacheResident);
        assert_eq!(Exit::of(&run), Exit::Implausible);
        run.measurements[2].verdict = Some(Verdict::Unverified);
        assert_eq!(Exit::of(&run), Exit::WrongData);
    }

    #[test]
    fn footprints_of_a_sweep_that_a_card_does_not_hold_keep_no_run_from_beginning() {
        let facts = Facts { free_bytes: 8 << 30, ..Facts::H200 };
        let plans = Plans::new(&select(&["footprint".to_owned()], Profile::Full, &facts).unwrap(), &facts);
        assert!(plans.error(|_, error| matches!(error, PlanError::TooLarge(_))).is_some());
        assert!(check_plans(&plans, &[]).is_ok());
        // Asked for by name, they are not passed over.
        let named = plans.ids();
        assert!(matches!(check_plans(&plans, &named), Err(Failure::Usage(_) | Failure::Plan(_))));
    }

    #[test]
    fn the_graver_of_two_codes_wins() {
        assert_eq!(Exit::Done.and(Exit::CaseFailed), Exit::CaseFailed);
        assert_eq!(Exit::CaseFailed.and(Exit::WrongData), Exit::WrongData);
        assert_eq!(Exit::WrongData.and(Exit::Interrupted), Exit::Interrupted);
        assert_eq!(Exit::Implausible.and(Exit::WrongData), Exit::WrongData);
        assert_eq!(Exit::Usage.and(Exit::WrongData), Exit::WrongData);
    }
}
