//! Which cases a run has.

use serde::{Deserialize, Serialize};

use crate::pattern::{self, Case, CaseId, Facts, Pipe, PlanError};

/// Every case of a run, planned against one reading of the device.
pub struct Plans {
    facts: Facts,
    planned: Vec<Planned>,
    soaks: Soaks,
}

/// Cases at which the device is to work for long, once they were measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Soaks {
    /// How long, in seconds.
    pub seconds: u64,
    /// Their ids.
    pub ids: Vec<String>,
}

impl Soaks {
    /// How long at this case; none where it is not one of them.
    pub fn of(&self, id: &CaseId) -> Option<u64> {
        self.ids.contains(&id.to_string()).then_some(self.seconds)
    }
}

/// A case, or why it cannot be one here.
pub(super) type Planned = (CaseId, Result<Case, PlanError>);

impl Plans {
    /// Plans `ids`, preceded by the compute peaks that they refer to.
    pub fn new(ids: &[CaseId], facts: &Facts) -> Self {
        let plan = |id: &CaseId| (id.clone(), pattern::plan(id, facts));
        let mut planned: Vec<_> = ids.iter().map(plan).collect();
        let mut pipes: Vec<Pipe> = planned.iter().filter_map(|(_, case)| case.as_ref().ok()?.compute_pipe).collect();
        pipes.sort();
        pipes.dedup();
        let peaks = pipes.into_iter().map(Pipe::peak_case).filter(|peak| !ids.contains(peak)).map(|peak| plan(&peak));
        // No case measures the peak of every pipe: rows that refer to one that is not say so.
        planned.splice(0..0, peaks.filter(|(_, case)| !matches!(case, Err(PlanError::Unknown(_)))).collect::<Vec<_>>());
        Self { facts: facts.clone(), planned, soaks: Soaks::default() }
    }

    /// Has the device work at these of the cases for so many seconds, once they were measured.
    ///
    /// # Errors
    /// The first that measures a latency: what it moves is not its figure.
    pub fn soak(&mut self, seconds: u64, ids: &[CaseId]) -> Result<(), CaseId> {
        if let Some(latency) = ids.iter().find(|id| self.case(id).is_some_and(|case| case.accesses.is_some())) {
            return Err(latency.clone());
        }
        self.soaks = Soaks { seconds, ids: ids.iter().map(CaseId::to_string).collect() };
        Ok(())
    }

    pub(super) fn soaks(&self) -> &Soaks {
        &self.soaks
    }

    /// The ids, in the order in which they are measured.
    pub fn ids(&self) -> Vec<String> {
        self.planned.iter().map(|(id, _)| id.to_string()).collect()
    }

    /// Leaves out the cases that need not be measured.
    pub fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.planned.retain(|(id, _)| wanted(&id.to_string()));
    }

    /// How many cases there are.
    pub fn len(&self) -> usize {
        self.planned.len()
    }

    /// Whether there is nothing to measure.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    /// What the cases were planned with.
    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn planned(&self) -> &[Planned] {
        &self.planned
    }

    /// The case with this id, if it could be planned.
    pub(super) fn case(&self, id: &CaseId) -> Option<&Case> {
        self.planned.iter().find(|(planned, _)| planned == id)?.1.as_ref().ok()
    }

    /// The first case with a plan error for which `wanted` is true, and the error.
    pub fn error(&self, wanted: impl Fn(&CaseId, &PlanError) -> bool) -> Option<(&CaseId, &PlanError)> {
        self.planned.iter().find_map(|(id, case)| Some((id, case.as_ref().err().filter(|e| wanted(id, e))?)))
    }

    /// Whether no case is left that exercises the memory itself.
    pub fn no_dram_left(&self) -> bool {
        !self.planned.iter().any(|(_, case)| case.as_ref().is_ok_and(|case| case.level == pattern::Level::Dram))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_each_pipe_is_planned_first_and_once() {
        let ids = ["stream/copy/f32", "stream/triad/f32"].map(CaseId::new);
        let plans = Plans::new(&ids, &Facts::H200);
        assert_eq!(plans.ids(), ["compute/fma/f32", "stream/copy/f32", "stream/triad/f32"]);
    }

    #[test]
    fn a_soak_is_of_the_cases_that_were_named_and_not_of_the_peaks_that_they_refer_to() {
        let triad = [CaseId::new("stream/triad/f32")];
        let mut plans = Plans::new(&triad, &Facts::H200);
        plans.soak(600, &triad).unwrap();
        assert_eq!((plans.soaks().of(&triad[0]), plans.soaks().of(&CaseId::new("compute/fma/f32"))), (Some(600), None));
    }

    #[test]
    fn a_latency_is_not_soaked() {
        let ids = ["stream/read/f32", "latency/chase/16384"].map(CaseId::new);
        let mut plans = Plans::new(&ids, &Facts::H200);
        assert_eq!(plans.soak(600, &ids), Err(ids[1].clone()));
    }

    #[test]
    fn a_pipe_whose_peak_no_case_measures_adds_none() {
        let planned = |case: &str| pattern::plan(&CaseId::new(case), &Facts::H200);
        let peak = planned("matvec/f16/8").unwrap().compute_pipe.unwrap().peak_case();
        let plans = Plans::new(&[CaseId::new("matvec/f16/8")], &Facts::H200);
        assert_eq!(plans.ids().contains(&peak.to_string()), planned(&peak.to_string()).is_ok());
        assert!(plans.error(|_, _| true).is_none());
    }
}
