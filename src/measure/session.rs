//! One run of one device: plan every case, measure each, keep the document current.

use super::{Interrupted, measure};
use crate::device::Device;
use crate::pattern::{self, Case, CaseId, Facts, Pipe, PlanError};
use crate::record::{self, Measurement, Peak, Peaks, Provenance, Run, Status};

/// Why a session ended early.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// By the user.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The document could not be kept.
    #[error(transparent)]
    Save(#[from] record::SaveError),
}

/// Every case of a run, planned against one reading of the device.
pub struct Plans {
    facts: Facts,
    planned: Vec<(CaseId, Result<Case, PlanError>)>,
}

impl Plans {
    /// Plans `ids`, preceded by the compute peaks that they refer to.
    pub fn new(ids: &[CaseId], facts: &Facts) -> Self {
        let plan = |id: &CaseId| (id.clone(), pattern::plan(id, facts));
        let mut planned: Vec<_> = ids.iter().map(plan).collect();
        let mut pipes: Vec<Pipe> = planned.iter().filter_map(|(_, case)| case.as_ref().ok()?.compute_pipe).collect();
        pipes.sort();
        pipes.dedup();
        let peaks = pipes.into_iter().map(Pipe::peak_case).filter(|peak| !ids.contains(peak));
        planned.splice(0..0, peaks.map(|peak| plan(&peak)).collect::<Vec<_>>());
        Self { facts: facts.clone(), planned }
    }

    /// How many rows the run will have.
    pub fn len(&self) -> usize {
        self.planned.len()
    }

    /// Whether there is nothing to measure.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty()
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

/// What happens in a session, in time.
pub enum Event<'a> {
    /// A case begins.
    Started(&'a CaseId),
    /// A case has ended; the document is saved after this.
    Finished(&'a Measurement),
}

/// Measures every planned case into `run`, calling `save` after each.
///
/// # Errors
/// When `go_on` answers no, or the document cannot be saved.
pub fn run(
    device: &mut dyn Device,
    plans: &Plans,
    run: &mut Run,
    go_on: &dyn Fn() -> bool,
    on: &mut dyn FnMut(Event),
    save: &dyn Fn(&Run) -> Result<(), record::SaveError>,
) -> Result<(), SessionError> {
    for (id, planned) in &plans.planned {
        on(Event::Started(id));
        let row = match planned {
            Ok(case) => measure(case, device, &plans.facts, run.profile, &run.peaks, go_on)?,
            Err(error) => Measurement::without_figures(&id.to_string(), id.pattern(), Status::Skipped, error.to_string()),
        };
        note_peak(&mut run.peaks, &row);
        on(Event::Finished(&row));
        run.measurements.push(row);
        save(run)?;
    }
    run.finished_at = Some(record::now());
    run.complete = true;
    save(run)?;
    Ok(())
}

/// Enters a measured compute peak among those that later rows refer to.
fn note_peak(peaks: &mut Peaks, row: &Measurement) {
    if row.pattern == "compute"
        && row.is_sound()
        && let (Some(pipe), Some(value)) = (&row.compute_pipe, row.achieved_gflops)
    {
        peaks.compute_gflops.entry(pipe.clone()).or_default().push(Peak { value, provenance: Provenance::Measured });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{Steady, row};

    #[test]
    fn a_wrong_compute_peak_is_no_reference() {
        for (mismatches, known) in [(0, true), (1, false)] {
            let mut peaks = Peaks::default();
            let mut device = Steady { ns: 3e6, mismatches, failing: false };
            note_peak(&mut peaks, &row("compute/fma/f32", &mut device, &Peaks::default()));
            assert_eq!(peaks.compute_measured_gflops("fma/f32").is_some(), known);
        }
    }

    #[test]
    fn the_peak_of_each_pipe_is_planned_first_and_once() {
        let ids = ["stream/copy/f32", "stream/triad/f32"].map(CaseId::new);
        let plans = Plans::new(&ids, &Facts::H200);
        let planned: Vec<String> = plans.planned.iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(planned, ["compute/fma/f32", "stream/copy/f32", "stream/triad/f32"]);
    }
}
