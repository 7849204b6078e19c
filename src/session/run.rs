//! The cases of a run, one after the other, whatever becomes of the children that measure them.

use std::cell::RefCell;
use std::time::Duration;

use super::Forms;
use super::limit;
use super::losses::Losses;
use super::plans::{Planned, Plans};
use super::process::{answered_otherwise, died, ended, no_process, overran, too_long};
use super::protocol::{Answer, Request, Task};
use crate::measure::{Interrupted, Settings, failed};
use crate::pattern::{Case, CaseId};
use crate::record::{self, Measurement, Run, SaveError, Status};

/// Why a session ended early.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// By the user.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The document could not be kept.
    #[error(transparent)]
    Save(#[from] SaveError),
}

/// What happens in a session, in time.
pub enum Event<'a> {
    /// A case begins.
    Started(&'a CaseId),
    /// It was measured, and so many of the seconds of its soak are over.
    Soaked {
        /// The case.
        id: &'a CaseId,
        /// How many are over.
        seconds: f64,
        /// How many there are.
        of: u64,
    },
    /// A case has ended; the document is saved after this.
    Finished(&'a Measurement),
}

/// A child at work. Dropping it ends it.
pub trait Worker: Send {
    /// Says something to it. One that cannot be told any more has ended, which is heard of it next.
    fn tell(&mut self, request: &Request);

    /// Waits for the next that is heard of it; tells it to stop once `go_on` answers no.
    fn hear(&mut self, within: Duration, go_on: &dyn Fn() -> bool) -> Heard;
}

/// What was heard of a child.
#[derive(Debug, Clone)]
pub enum Heard {
    /// It said something.
    Answer(Answer),
    /// Nothing in the time given.
    Nothing,
    /// It has ended; the text says how.
    End(String),
}

/// Starts a child with its first request.
pub type Start<'a> = dyn Fn(&Request) -> std::io::Result<Box<dyn Worker>> + 'a;

/// How a run is measured.
pub struct Session<'a> {
    /// The device, as [`Task::device`] takes it.
    pub device: String,
    /// What to measure.
    pub plans: &'a Plans,
    /// The user's own limit for a case, in place of the rule.
    pub case_limit: Option<Duration>,
    /// The best forms that are known; those that are found are added.
    pub forms: RefCell<Forms>,
    /// Starts a child.
    pub start: &'a Start<'a>,
    /// Whether the user has not asked for the end.
    pub go_on: &'a dyn Fn() -> bool,
    /// Is told what happens.
    pub on: &'a dyn Fn(Event),
    /// Keeps the document.
    pub save: &'a dyn Fn(&Run) -> Result<(), SaveError>,
}

impl Session<'_> {
    /// Measures every planned case into `run`, saving it after each.
    ///
    /// # Errors
    /// When `go_on` answers no, or the document cannot be saved.
    pub fn measure(&self, run: &mut Run) -> Result<(), SessionError> {
        let mut losses = Losses::default();
        let mut complete = true;
        let mut due = self.plans.planned();
        while let Some(((id, planned), others)) = due.split_first() {
            let reason = match planned {
                Ok(_) => losses.reason_to_skip(id).inspect(|_| complete = false),
                Err(error) => Some(error.to_string()),
            };
            if let Some(reason) = reason {
                (self.on)(Event::Started(id));
                self.enter(run, Measurement::without_figures(&id.to_string(), id.pattern(), Status::Skipped, reason))?;
                due = others;
                continue;
            }
            let measured = self.measure_in_one_child(&batch(due), run, &mut losses)?;
            due = &due[measured..];
        }
        run.finished_at = Some(record::now());
        run.complete = complete;
        Ok((self.save)(run)?)
    }

    /// Measures cases in one child as long as it can go on; says of how many there are rows now.
    fn measure_in_one_child(&self, cases: &[&Case], run: &mut Run, losses: &mut Losses) -> Result<usize, SessionError> {
        if !(self.go_on)() {
            return Err(Interrupted.into());
        }
        let forms = self.forms.borrow().clone();
        let task = task(&self.device, self.plans, run, forms, cases.iter().map(|case| case.id.to_string()).collect());
        let settings = task.settings;
        let mut child = match (self.start)(&Request::Measure(task)) {
            Ok(child) => child,
            Err(error) => return self.not_opened(cases[0], no_process(&error), run, losses),
        };
        for (before, case) in cases.iter().enumerate() {
            match self.hear_of(case, child.as_mut(), settings)? {
                Outcome::Row { row, lost } => {
                    losses.note(&case.id, lost);
                    let goes_on = !matches!(row.status, Status::Error | Status::Timeout);
                    self.enter(run, *row)?;
                    if !goes_on {
                        return Ok(before + 1);
                    }
                }
                Outcome::NotBegun(why) if before == 0 => return self.not_opened(case, why, run, losses),
                // What happens between two cases is the fault of neither: the next gets a fresh child.
                Outcome::NotBegun(_) => return Ok(before),
            }
        }
        // Having nothing more to do, it ends by itself, and is ended if it does not.
        child.hear(limit::ENDING, self.go_on);
        Ok(cases.len())
    }

    /// Listens to a child from before a case begins until it has ended.
    fn hear_of(&self, case: &Case, child: &mut dyn Worker, settings: Settings) -> Result<Outcome, Interrupted> {
        match child.hear(limit::OPENING, self.go_on) {
            Heard::Answer(Answer::Refused(error)) => return Ok(Outcome::NotBegun(error.to_string())),
            Heard::Answer(_) => (self.on)(Event::Started(&case.id)),
            _ if !(self.go_on)() => return Err(Interrupted),
            Heard::Nothing => return Ok(Outcome::NotBegun(too_long())),
            Heard::End(how) => return Ok(Outcome::NotBegun(died(&how))),
        }
        let limit = limit::chosen(self.case_limit, case, settings.profile, self.plans.facts().kind);
        // In a soak the limit is for the time from one answer to the next: a device that hangs is not waited for all day.
        let heard = loop {
            match (child.hear(limit, self.go_on), self.plans.soaks().of(&case.id)) {
                (Heard::Answer(Answer::Soaked(seconds)), Some(of)) => (self.on)(Event::Soaked { id: &case.id, seconds, of }),
                (heard, _) => break heard,
            }
        };
        let (status, reason) = match heard {
            Heard::Answer(Answer::Finished { row, device_lost }) => return Ok(Outcome::Row { row, lost: device_lost }),
            Heard::Answer(_) => (Status::Error, answered_otherwise()),
            _ if !(self.go_on)() => return Err(Interrupted),
            Heard::Nothing => (Status::Timeout, overran(limit)),
            Heard::End(how) => (Status::Error, ended(&how)),
        };
        Ok(Outcome::Row { row: Box::new(failed(case, settings, self.plans.facts(), status, reason)), lost: true })
    }

    /// The device could not be opened for `case`: it was lost in the case before, if in any, otherwise in this one.
    /// Says of how many cases there are rows now.
    fn not_opened(&self, case: &Case, why: String, run: &mut Run, losses: &mut Losses) -> Result<usize, SessionError> {
        let lost_before = losses.any();
        if !lost_before {
            (self.on)(Event::Started(&case.id));
            losses.note(&case.id, true);
            self.enter(
                run,
                failed(case, settings(run), self.plans.facts(), Status::Error, format!("the device could not be opened again: {why}")),
            )?;
        }
        losses.not_opened(why);
        Ok(usize::from(!lost_before))
    }

    /// Puts a row into the document.
    fn enter(&self, run: &mut Run, row: Measurement) -> Result<(), SaveError> {
        (self.on)(Event::Finished(&row));
        if let Some(case) = self.plans.case(&CaseId::new(&row.id)) {
            self.forms.borrow_mut().note(case, &row);
        }
        run.enter(row);
        (self.save)(run)
    }
}

/// What a child is given to do for a run: the cases with these ids.
pub(super) fn task(device: &str, plans: &Plans, run: &Run, forms: Forms, ids: Vec<String>) -> Task {
    Task {
        device: device.to_owned(),
        facts: plans.facts().clone(),
        settings: settings(run),
        peaks: run.peaks.clone(),
        forms,
        soaks: plans.soaks().clone(),
        ids,
    }
}

/// How the cases of a run are measured.
fn settings(run: &Run) -> Settings {
    Settings { profile: run.profile, data: run.data, cache: run.cache }
}

/// What was heard of one case.
enum Outcome {
    /// Its row.
    Row { row: Box<Measurement>, lost: bool },
    /// The child did not come to it.
    NotBegun(String),
}

/// The cases of the first one's pattern, up to the first that could not be planned.
fn batch(due: &[Planned]) -> Vec<&Case> {
    let pattern = due.first().map(|(id, _)| id.pattern());
    due.iter().take_while(|(id, _)| Some(id.pattern()) == pattern).map_while(|(_, planned)| planned.as_ref().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::VecDeque;

    use super::*;
    use crate::device::DeviceError;
    use crate::pattern::Facts;

    /// A child that says what is listed, and ends.
    struct Scripted(VecDeque<Heard>);

    impl Worker for Scripted {
        fn tell(&mut self, request: &Request) {
            panic!("nobody waits for {request:?}");
        }
        fn hear(&mut self, _within: Duration, _go_on: &dyn Fn() -> bool) -> Heard {
            self.0.pop_front().unwrap_or(Heard::End("exit status: 0".into()))
        }
    }

    const CASES: [&str; 5] = ["stream/read/f32", "stream/write/f32", "stream/copy/f32", "stride/read/4", "copy_engine/d2d"];

    fn started(id: &str) -> Heard {
        Heard::Answer(Answer::Started(id.into()))
    }

    fn finished(id: &str, status: Status, device_lost: bool) -> Vec<Heard> {
        let row = Box::new(Measurement::without_figures(id, CaseId::new(id).pattern(), status, "as the test says".into()));
        vec![started(id), Heard::Answer(Answer::Finished { row, device_lost })]
    }

    fn well(id: &str) -> Vec<Heard> {
        finished(id, Status::Ok, false)
    }

    fn lost(id: &str) -> Vec<Heard> {
        finished(id, Status::Error, true)
    }

    /// In the middle of a case, this is heard of its child.
    fn amid(id: &str, heard: Heard) -> Vec<Heard> {
        vec![started(id), heard]
    }

    fn session<'a>(plans: &'a Plans, start: &'a Start<'a>, go_on: &'a dyn Fn() -> bool) -> Session<'a> {
        let case_limit = Some(Duration::from_secs(7));
        Session { device: "GPU-1".into(), plans, case_limit, forms: RefCell::default(), start, go_on, on: &|_| {}, save: &|_| Ok(()) }
    }

    fn document(plans: &Plans) -> Run {
        Run { cases: plans.ids(), measurements: Vec::new(), complete: false, finished_at: None, ..crate::chart::testing::h200() }
    }

    /// A run of [`CASES`] with these children, and the cases that each was asked for.
    fn run_with(children: Vec<Vec<Heard>>) -> (Run, Vec<Vec<String>>) {
        run_plans_with(Plans::new(&CASES.map(CaseId::new), &Facts::H200), children)
    }

    fn run_plans_with(plans: Plans, children: Vec<Vec<Heard>>) -> (Run, Vec<Vec<String>>) {
        let asked = RefCell::new(Vec::new());
        let children = RefCell::new(VecDeque::from(children));
        let start = |request: &Request| -> std::io::Result<Box<dyn Worker>> {
            let Request::Measure(task) = request else { panic!("{request:?}") };
            asked.borrow_mut().push(task.ids.clone());
            let child = children.borrow_mut().pop_front().unwrap_or_else(|| panic!("nobody should ask for {:?}", task.ids));
            Ok(Box::new(Scripted(child.into())))
        };
        let mut run = document(&plans);
        session(&plans, &start, &|| true).measure(&mut run).unwrap();
        assert_eq!(run.measurements.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), CASES);
        assert!(children.into_inner().is_empty());
        (run, asked.into_inner())
    }

    fn statuses(run: &Run) -> Vec<Status> {
        run.measurements.iter().map(|row| row.status).collect()
    }

    fn reason(run: &Run, row: usize) -> &str {
        run.measurements[row].reason.as_deref().unwrap_or_default()
    }

    use Status::{Error, Ok as Well, Skipped, Timeout};

    /// The children of the patterns after `stream`, when all is well.
    fn others_well() -> [Vec<Heard>; 2] {
        [well(CASES[3]), well(CASES[4])]
    }

    fn stream_well() -> Vec<Heard> {
        CASES[..3].iter().flat_map(|id| well(id)).collect()
    }

    #[test]
    fn each_pattern_has_a_child_of_its_own() {
        let [stride, copy_engine] = others_well();
        let (run, asked) = run_with(vec![stream_well(), stride, copy_engine]);
        assert_eq!(asked, [&CASES[..3], &CASES[3..4], &CASES[4..]]);
        assert!(run.complete && run.finished_at.is_some());
    }

    #[test]
    fn after_each_kind_of_failure_the_next_case_has_a_fresh_child() {
        for (failure, status, why) in [
            (lost(CASES[1]), Error, "as the test says"),
            (finished(CASES[1], Error, false), Error, "as the test says"),
            (amid(CASES[1], Heard::Nothing), Timeout, "7 s"),
            (amid(CASES[1], Heard::End("signal: 11 (SIGSEGV)".into())), Error, "signal: 11 (SIGSEGV)"),
            (amid(CASES[1], started("another")), Error, "something else"),
        ] {
            let [stride, copy_engine] = others_well();
            let (run, asked) = run_with(vec![[well(CASES[0]), failure].concat(), well(CASES[2]), stride, copy_engine]);
            assert_eq!(asked[..2], [&CASES[..3], &CASES[2..3]]);
            assert_eq!(statuses(&run), [Well, status, Well, Well, Well]);
            assert!(reason(&run, 1).contains(why), "{}", reason(&run, 1));
            assert!(run.complete);
        }
    }

    #[test]
    fn the_limit_of_a_case_begins_anew_with_each_answer_of_its_soak_and_a_soak_that_hangs_is_found() {
        let mut plans = Plans::new(&CASES.map(CaseId::new), &Facts::H200);
        plans.soak(20, &CASES[..2].iter().map(|id| CaseId::new(id)).collect::<Vec<_>>()).unwrap();
        let soaked = |seconds| Heard::Answer(Answer::Soaked(seconds));
        let mut first = well(CASES[0]);
        first.splice(1..1, [soaked(0.25), soaked(20.0)]);
        let second = vec![started(CASES[1]), soaked(0.25), Heard::Nothing];
        let [stride, copy_engine] = others_well();
        let (run, _) = run_plans_with(plans, vec![[first, second].concat(), well(CASES[2]), stride, copy_engine]);
        assert_eq!(statuses(&run), [Well, Timeout, Well, Well, Well]);
    }

    #[test]
    fn a_row_that_the_parent_makes_tells_the_parameters_of_its_case() {
        let [stride, copy_engine] = others_well();
        let (run, _) = run_with(vec![amid(CASES[0], Heard::Nothing), [well(CASES[1]), well(CASES[2])].concat(), stride, copy_engine]);
        assert!(run.measurements[0].level.is_some() && !run.measurements[0].parameters.is_empty());
    }

    #[test]
    fn a_child_that_ends_between_two_cases_loses_none() {
        let [stride, copy_engine] = others_well();
        let (run, asked) = run_with(vec![well(CASES[0]), [well(CASES[1]), well(CASES[2])].concat(), stride, copy_engine]);
        assert_eq!(asked[1], CASES[1..3]);
        assert_eq!(statuses(&run), [Well; 5]);
    }

    /// What is heard of children that cannot open the device.
    fn cannot_open() -> [Heard; 3] {
        let refused = Answer::Refused(DeviceError::Unusable("no such device".into()));
        [Heard::Answer(refused), Heard::Nothing, Heard::End("signal: 9 (SIGKILL)".into())]
    }

    #[test]
    fn a_device_that_cannot_be_opened_again_is_not_asked_again_and_the_rows_name_the_case_that_lost_it() {
        for heard in cannot_open() {
            let (run, _) = run_with(vec![[well(CASES[0]), lost(CASES[1])].concat(), vec![heard]]);
            assert_eq!(statuses(&run), [Well, Error, Skipped, Skipped, Skipped]);
            assert!((2..5).all(|row| reason(&run, row).contains("lost to this run in stream/write/f32 and could not be opened again")));
            assert!(!run.complete && run.finished_at.is_some());
        }
    }

    #[test]
    fn a_device_that_disappears_between_two_patterns_is_an_error_of_the_next_case() {
        for heard in cannot_open() {
            let (run, _) = run_with(vec![stream_well(), vec![heard]]);
            assert_eq!(statuses(&run), [Well, Well, Well, Error, Skipped]);
            assert!(reason(&run, 3).contains("opened again") && reason(&run, 4).contains("stride/read/4"));
        }
    }

    #[test]
    fn two_losses_in_a_row_end_their_pattern_and_a_third_the_run() {
        let [stride, copy_engine] = others_well();
        let (run, _) = run_with(vec![lost(CASES[0]), lost(CASES[1]), stride, copy_engine]);
        assert_eq!(statuses(&run), [Error, Error, Skipped, Well, Well]);
        assert!(!run.complete);
        let (run, _) = run_with(vec![lost(CASES[0]), lost(CASES[1]), lost(CASES[3])]);
        assert_eq!(statuses(&run), [Error, Error, Skipped, Error, Skipped]);
    }

    #[test]
    fn an_interruption_keeps_the_finished_rows_and_begins_no_further_child() {
        let going = Cell::new(true);
        let start = |_: &Request| -> std::io::Result<Box<dyn Worker>> {
            going.set(false);
            let child = [well(CASES[0]), amid(CASES[1], Heard::End("exit status: 0".into()))].concat();
            Ok(Box::new(Scripted(child.into())))
        };
        let plans = Plans::new(&CASES.map(CaseId::new), &Facts::H200);
        let mut run = document(&plans);
        assert!(matches!(session(&plans, &start, &|| going.get()).measure(&mut run), Err(SessionError::Interrupted(_))));
        assert_eq!(statuses(&run), [Well]);
        assert!(!run.complete && run.finished_at.is_none());
    }
}
