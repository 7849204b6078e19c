//! Which cases a run has.

use crate::pattern::{self, Case, CaseId, Facts, Pipe, PlanError};

/// Every case of a run, planned against one reading of the device.
pub struct Plans {
    facts: Facts,
    planned: Vec<Planned>,
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
        Self { facts: facts.clone(), planned }
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

    /// The first plan error, for which `wanted` is true.
    pub fn error(&self, wanted: impl Fn(&CaseId, &PlanError) -> bool) -> Option<&PlanError> {
        self.planned.iter().find_map(|(id, case)| case.as_ref().err().filter(|e| wanted(id, e)))
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
    fn a_pipe_whose_peak_no_case_measures_adds_none() {
        let planned = |case: &str| pattern::plan(&CaseId::new(case), &Facts::H200);
        let peak = planned("matvec/f16/8").unwrap().compute_pipe.unwrap().peak_case();
        let plans = Plans::new(&[CaseId::new("matvec/f16/8")], &Facts::H200);
        assert_eq!(plans.ids().contains(&peak.to_string()), planned(&peak.to_string()).is_ok());
        assert!(plans.error(|_, _| true).is_none());
    }
}
