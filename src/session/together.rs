//! All devices at once: each case that all of them have, in a child for each device, from a common
//! start. What it gave goes into the rows that the devices have of it alone.

use std::time::Duration;

use super::gate::{Passage, Place, gate};
use super::limit;
use super::losses::Losses;
use super::plans::Plans;
use super::process::{LOOK, answered_otherwise, died, ended, no_process, overran, too_long};
use super::protocol::{Answer, Request};
use super::run::{Event, Heard, SessionError, Start, Worker, task};
use crate::device::DeviceError;
use crate::measure::{Interrupted, Window};
use crate::pattern::{Case, CaseId};
use crate::record::{self, Measurement, Run, SaveError, Status};

/// One of the devices.
pub struct Member<'a> {
    /// The device, as [`super::protocol::Task::device`] takes it.
    pub device: String,
    /// What was measured on it alone.
    pub plans: &'a Plans,
    /// The document with the rows of that.
    pub run: &'a mut Run,
    /// Keeps the document.
    pub save: Box<dyn Fn(&Run) -> Result<(), SaveError> + 'a>,
}

/// How devices are measured together.
pub struct Together<'a> {
    /// The user's own limit for a case, in place of the rule. It holds until a device is ready, and
    /// again from the common start on: to wait for the others takes nothing from it.
    pub case_limit: Option<Duration>,
    /// Starts a child.
    pub start: &'a Start<'a>,
    /// Whether the user has not asked for the end.
    pub go_on: &'a (dyn Fn() -> bool + Sync),
    /// Is told what happens.
    pub on: &'a dyn Fn(Event),
}

/// A case that failed while the devices were to be measured together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The case.
    pub id: String,
    /// Which device failed, and how.
    pub why: String,
}

/// A device with its child, from case to case.
struct Seat<'a, 'm> {
    member: &'a mut Member<'m>,
    child: Option<std::io::Result<Box<dyn Worker>>>,
    losses: Losses,
}

/// Why a device gave no figures of a case.
enum Absence {
    /// Another device left, or the user asked for the end.
    CalledOff,
    /// It failed itself.
    Failed { why: String, lost: bool },
}

impl Together<'_> {
    /// Measures every case that all members have figures of, entering into their rows what it gave,
    /// and saves the documents after each. Says which cases failed.
    ///
    /// # Errors
    /// When `go_on` answers no, or a document cannot be saved.
    pub fn measure(&self, members: &mut [Member]) -> Result<Vec<Absent>, SessionError> {
        let cases = common(members);
        let complete: Vec<bool> = members.iter().map(|member| member.run.complete).collect();
        members.iter_mut().try_for_each(|member| begin(member, &cases))?;
        let mut seats: Vec<Seat> = members.iter_mut().map(|member| Seat { member, child: None, losses: Losses::default() }).collect();
        let mut absent = Vec::new();
        for (at, on_each) in cases.iter().enumerate() {
            if !(self.go_on)() {
                return Err(Interrupted.into());
            }
            let id = &on_each[0].id;
            (self.on)(Event::Started(id));
            let due: Vec<String> = cases[at..]
                .iter()
                .map(|on_each| &on_each[0].id)
                .take_while(|due| due.pattern() == id.pattern())
                .map(CaseId::to_string)
                .collect();
            match self.windows(&mut seats, on_each, &due)? {
                Ok(windows) => enter(&mut seats, id, &windows),
                Err(why) => {
                    seats.iter_mut().for_each(|seat| leave_out(seat.member.run, id, &why));
                    absent.push(Absent { id: id.to_string(), why });
                }
            }
            for seat in &mut seats {
                (seat.member.save)(seat.member.run)?;
                // Having nothing more to do, it ends by itself, and is ended if it does not.
                if due.len() == 1
                    && let Some(Ok(mut child)) = seat.child.take()
                {
                    child.hear(limit::ENDING, self.go_on);
                }
            }
            if let Some(row) = row_of(seats[0].member.run, id) {
                (self.on)(Event::Finished(row));
            }
        }
        for (Seat { member, .. }, complete) in seats.iter_mut().zip(complete) {
            (member.run.complete, member.run.finished_at) = (complete, Some(record::now()));
            (member.save)(member.run)?;
        }
        Ok(absent)
    }

    /// Measures a case on all devices, or says why that failed.
    fn windows(&self, seats: &mut [Seat], on_each: &[&Case], due: &[String]) -> Result<Result<Vec<Window>, String>, Interrupted> {
        let id = &on_each[0].id;
        if let Some(why) = seats.iter().find_map(|seat| Some(of(seat.member.run, &seat.losses.reason_to_skip(id)?))) {
            return Ok(Err(why));
        }
        let outcomes = self.attempts(seats, on_each, due);
        if outcomes.iter().any(Result::is_err) && !(self.go_on)() {
            return Err(Interrupted);
        }
        let (mut windows, mut failures) = (Vec::new(), Vec::new());
        for (seat, outcome) in seats.iter_mut().zip(outcomes) {
            match outcome {
                Ok(window) => {
                    seat.losses.note(id, false);
                    windows.push(window);
                }
                Err(Absence::Failed { why, lost }) => {
                    seat.losses.note(id, lost);
                    failures.push(of(seat.member.run, &why));
                }
                Err(Absence::CalledOff) => {}
            }
        }
        if failures.is_empty() {
            return Ok(Ok(windows));
        }
        // Children that wait for a start that does not come are of no more use.
        seats.iter_mut().for_each(|seat| seat.child = None);
        Ok(Err(failures.join("; ")))
    }

    /// One attempt at a case on each device, all at the same time; children are started where there are none.
    fn attempts(&self, seats: &mut [Seat], on_each: &[&Case], due: &[String]) -> Vec<Result<Window, Absence>> {
        let places = gate(seats.len());
        std::thread::scope(|scope| {
            let threads: Vec<_> = seats
                .iter_mut()
                .zip(places)
                .zip(on_each)
                .map(|((Seat { member, child, .. }, place), case)| {
                    let start = || (self.start)(&Request::Together(task(&member.device, member.plans, member.run, due.to_vec())));
                    let child = child.get_or_insert_with(start);
                    let limit = limit::chosen(self.case_limit, case, member.run.profile, member.plans.facts().kind);
                    let go_on = self.go_on;
                    scope.spawn(move || attempt(child, &place, limit, go_on))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    }
}

/// One device's way through a case: ready, at the gate, and sampled.
fn attempt(
    child: &mut std::io::Result<Box<dyn Worker>>,
    place: &Place,
    limit: Duration,
    go_on: &dyn Fn() -> bool,
) -> Result<Window, Absence> {
    let lost = |why| Absence::Failed { why, lost: true };
    let child = child.as_mut().map_err(|error| lost(no_process(error)))?;
    match child.hear(limit::OPENING, go_on) {
        Heard::Answer(Answer::Started(_)) => {}
        _ if !go_on() => return Err(Absence::CalledOff),
        Heard::Answer(Answer::Refused(error)) => return Err(lost(error.to_string())),
        Heard::Answer(_) => return Err(lost(answered_otherwise())),
        Heard::Nothing => return Err(lost(too_long())),
        Heard::End(how) => return Err(lost(died(&how))),
    }
    // What is heard other than what should be.
    let failed = |heard| match heard {
        _ if !go_on() => Absence::CalledOff,
        Heard::Answer(Answer::Together(Err(error))) => {
            Absence::Failed { why: error.to_string(), lost: matches!(error, DeviceError::Lost(_)) }
        }
        Heard::Answer(_) => lost(answered_otherwise()),
        Heard::Nothing => lost(overran(limit)),
        Heard::End(how) => lost(ended(&how)),
    };
    match child.hear(limit, go_on) {
        Heard::Answer(Answer::Ready) => place.arrive(),
        other => return Err(failed(other)),
    }
    loop {
        match place.wait(LOOK) {
            Passage::Open => break,
            Passage::Closed => return Err(Absence::CalledOff),
            Passage::Waiting => {}
        }
        match child.hear(Duration::ZERO, go_on) {
            Heard::Nothing if go_on() => {}
            other => return Err(failed(other)),
        }
    }
    child.tell(&Request::Go);
    match child.hear(limit, go_on) {
        Heard::Answer(Answer::Together(Ok(window))) => Ok(*window),
        other => Err(failed(other)),
    }
}

/// The cases that every member has figures of, in the order of the first; of each, how each member has it.
fn common<'a>(members: &[Member<'a>]) -> Vec<Vec<&'a Case>> {
    let Some(first) = members.first() else { return Vec::new() };
    let has_figures = |run: &Run, id: &CaseId| {
        let id = id.to_string();
        run.measurements.iter().any(|row| row.id == id && row.status == Status::Ok)
    };
    let on = |member: &Member<'a>, id: &CaseId| member.plans.case(id).filter(|_| has_figures(member.run, id));
    first.plans.planned().iter().filter_map(|(id, _)| members.iter().map(|member| on(member, id)).collect()).collect()
}

/// Opens a document again, in which each row says what would be true of it if this were the end.
fn begin(member: &mut Member, cases: &[Vec<&Case>]) -> Result<(), SaveError> {
    (member.run.complete, member.run.finished_at) = (false, None);
    for row in member.run.measurements.iter_mut().filter(|row| row.status == Status::Ok) {
        let why = match cases.iter().any(|on_each| on_each[0].id.to_string() == row.id) {
            true => "the run ended before the devices were measured together",
            false => "not measured together: not all of the devices have figures of this case",
        };
        row.missing.insert("contention".into(), why.into());
    }
    (member.save)(member.run)
}

/// Enters what a case gave on all devices.
fn enter(seats: &mut [Seat], id: &CaseId, windows: &[Window]) {
    let names: Vec<String> = seats.iter().map(|seat| label(seat.member.run).to_owned()).collect();
    for (at, (seat, window)) in seats.iter_mut().zip(windows).enumerate() {
        let others = names.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, name)| name.clone()).collect();
        if let Some(row) = row_of(seat.member.run, id) {
            window.enter(row, others, window.overlap_fraction(windows));
        }
    }
}

/// Notes why a case was not measured together.
fn leave_out(run: &mut Run, id: &CaseId, why: &str) {
    if let Some(row) = row_of(run, id) {
        row.missing.insert("contention".into(), format!("not measured together: {why}"));
    }
}

fn row_of<'a>(run: &'a mut Run, id: &CaseId) -> Option<&'a mut Measurement> {
    let id = id.to_string();
    run.measurements.iter_mut().find(|row| row.id == id)
}

/// Who a run is of: the UUID, or the name where there is none.
fn label(run: &Run) -> &str {
    run.device.uuid.as_deref().unwrap_or(&run.device.name)
}

fn of(run: &Run, why: &str) -> String {
    format!("{}: {why}", label(run))
}
