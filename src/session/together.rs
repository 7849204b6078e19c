//! All devices at once: each case that all of them have, in a child for each device, from a common
//! start. What it gave goes into the rows that the devices have of it alone.

use std::time::Duration;

use super::Forms;
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
    pub save: Save<'a>,
}

/// Keeps the document of one device.
pub type Save<'a> = Box<dyn Fn(&Run) -> Result<(), SaveError> + 'a>;

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
            let due = due(&cases[at..]);
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
                    let failure = of(seat.member.run, &why);
                    // Processes of one device may fail alike.
                    if !failures.contains(&failure) {
                        failures.push(failure);
                    }
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
                    let start = || {
                        (self.start)(&Request::Together(task(
                            &member.device,
                            member.plans,
                            member.run,
                            Forms::used_by(member.run),
                            due.to_vec(),
                        )))
                    };
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
    // What a latency costs under contention is another question than what a bandwidth does.
    let is_bandwidth = |case: &&Case| case.accesses.is_none();
    let on = |member: &Member<'a>, id: &CaseId| member.plans.case(id).filter(is_bandwidth).filter(|_| has_figures(member.run, id));
    first.plans.planned().iter().filter_map(|(id, _)| members.iter().map(|member| on(member, id)).collect()).collect()
}

/// What a child that begins now is given: the cases of the first one's pattern.
fn due(cases: &[Vec<&Case>]) -> Vec<String> {
    let ids = || cases.iter().map(|on_each| &on_each[0].id);
    ids().take_while(|id| ids().next().is_some_and(|first| first.pattern() == id.pattern())).map(CaseId::to_string).collect()
}

/// Opens a document again, in which each row says what would be true of it if this were the end.
fn begin(member: &mut Member, cases: &[Vec<&Case>]) -> Result<(), SaveError> {
    (member.run.complete, member.run.finished_at) = (false, None);
    for row in member.run.measurements.iter_mut().filter(|row| row.status == Status::Ok) {
        let why = match cases.iter().any(|on_each| on_each[0].id.to_string() == row.id) {
            true => "the run ended before the devices were measured together",
            false => "not measured together: a latency, or not all of the devices have figures of this case",
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::chart::testing::h200;
    use crate::device::Verification;
    use crate::measure::testing::{Steady, peaks, row};
    use crate::pattern::Facts;
    use crate::record::Verdict;

    const CASES: [&str; 3] = ["stream/read/f32", "stream/copy/f32", "stride/read/4"];
    const LIMIT: Duration = Duration::from_secs(7);

    /// The number of a device that is not ready before a child of another has died.
    const LATE: usize = 3;

    /// What children said and were told, and for how long they were listened to, by the device's number.
    type Log = Mutex<Vec<(usize, String)>>;

    /// A child that says what is listed, after `Ready` not before it is told to go, and ends.
    struct Scripted {
        device: usize,
        says: VecDeque<Heard>,
        waits: bool,
        log: Arc<Log>,
        going: Arc<AtomicBool>,
    }

    impl Scripted {
        fn note(&self, what: String) {
            self.log.lock().unwrap().push((self.device, what));
        }
        fn somebody_has_died(&self) -> bool {
            self.log.lock().unwrap().iter().any(|(_, said)| said.contains("signal: "))
        }
    }

    impl Worker for Scripted {
        fn tell(&mut self, request: &Request) {
            assert_eq!(*request, Request::Go);
            self.note("go".into());
            self.waits = false;
        }
        fn hear(&mut self, within: Duration, go_on: &dyn Fn() -> bool) -> Heard {
            if !go_on() {
                return Heard::End("exit status: 0".into());
            }
            if self.waits && !matches!(self.says.front(), Some(Heard::End(_))) {
                assert_eq!(within, Duration::ZERO);
                return Heard::Nothing;
            }
            while self.device == LATE && matches!(self.says.front(), Some(Heard::Answer(Answer::Ready))) && !self.somebody_has_died() {
                std::thread::yield_now();
            }
            let heard = self.says.pop_front().unwrap_or(Heard::End("exit status: 0".into()));
            let said = match &heard {
                Heard::Answer(Answer::Started(id)) => id.clone(),
                Heard::Answer(Answer::Ready) => "ready".into(),
                Heard::Answer(_) => "window".into(),
                // As Ctrl-C while the device gets ready.
                Heard::End(how) if how == "interrupt" => {
                    self.going.store(false, Ordering::SeqCst);
                    "interrupted".into()
                }
                other => format!("{other:?}"),
            };
            self.waits = said == "ready";
            self.note(format!("{said} within {} s", within.as_secs()));
            heard
        }
    }

    fn started(id: &str) -> Heard {
        Heard::Answer(Answer::Started(id.into()))
    }

    fn ready() -> Heard {
        Heard::Answer(Answer::Ready)
    }

    fn failure(error: DeviceError) -> Heard {
        Heard::Answer(Answer::Together(Err(error)))
    }

    /// Half as fast as alone, with this many wrong results, from 1 s to 2 s.
    fn window(mismatches: u64) -> Heard {
        let mut time = alone(CASES[0]).time_ns.unwrap();
        time.median *= 2.0;
        let verification = Verification { mismatches, first_bad: None, stray: 0 };
        let window = Window { time, verification, began_unix_ns: 1_000_000_000, ended_unix_ns: 2_000_000_000 };
        Heard::Answer(Answer::Together(Ok(Box::new(window))))
    }

    fn well(id: &str) -> Vec<Heard> {
        vec![started(id), ready(), window(0)]
    }

    fn alone(id: &str) -> Measurement {
        let mut device = Steady { ns: 3e6, ..Steady::default() };
        row(id, &mut device, &peaks(4814.3, 65_000.0))
    }

    fn document(uuid: &str, cases: &[&str]) -> Run {
        let mut run = h200();
        run.device.uuid = Some(uuid.into());
        run.cases = cases.iter().map(|id| (*id).to_owned()).collect();
        run.measurements = cases.iter().map(|id| alone(id)).collect();
        (run.complete, run.finished_at) = (true, Some(record::now()));
        run
    }

    /// What came of a session.
    struct Came {
        runs: Vec<Run>,
        absent: Result<Vec<Absent>, SessionError>,
        log: Vec<(usize, String)>,
    }

    /// A session of devices with these documents and the children of each, in the order in which they are started.
    fn together(mut runs: Vec<Run>, children: Vec<Vec<Vec<Heard>>>) -> Came {
        let (log, going) = (Arc::new(Log::default()), Arc::new(AtomicBool::new(true)));
        let children = RefCell::new(children.into_iter().map(VecDeque::from).collect::<Vec<_>>());
        let start = |request: &Request| -> std::io::Result<Box<dyn Worker>> {
            let Request::Together(task) = request else { panic!("{request:?}") };
            let device: usize = task.device.parse().unwrap();
            let says = children.borrow_mut()[device].pop_front().unwrap_or_else(|| panic!("nobody should ask {task:?}"));
            let (log, going) = (Arc::clone(&log), Arc::clone(&going));
            Ok(Box::new(Scripted { device, says: says.into(), waits: false, log, going }))
        };
        let plans: Vec<Plans> =
            runs.iter().map(|run| Plans::new(&run.cases.iter().map(|id| CaseId::new(id)).collect::<Vec<_>>(), &Facts::H200)).collect();
        let saved = RefCell::new(0);
        let mut members: Vec<Member> = runs
            .iter_mut()
            .zip(&plans)
            .enumerate()
            .map(|(device, (run, plans))| {
                let save = Box::new(|_: &Run| {
                    *saved.borrow_mut() += 1;
                    Ok(())
                });
                Member { device: device.to_string(), plans, run, save }
            })
            .collect();
        let session = Together { case_limit: Some(LIMIT), start: &start, go_on: &|| going.load(Ordering::SeqCst), on: &|_| {} };
        let absent = session.measure(&mut members);
        drop(members);
        assert!(children.into_inner().iter().all(VecDeque::is_empty));
        assert!(saved.into_inner() >= runs.len());
        let log = log.lock().unwrap().clone();
        Came { runs, absent, log }
    }

    fn two(cases: &[&str]) -> Vec<Run> {
        ["GPU-1", "GPU-2"].map(|uuid| document(uuid, cases)).into()
    }

    fn why<'a>(run: &'a Run, id: &str) -> &'a str {
        let row = run.measurements.iter().find(|row| row.id == id).unwrap();
        assert_eq!(row.contention, None);
        &row.missing["contention"]
    }

    #[test]
    fn nobody_starts_before_all_are_ready_and_waiting_takes_nothing_from_the_limit() {
        let came = together(two(&CASES[..1]), vec![vec![well(CASES[0])], vec![well(CASES[0])]]);
        assert_eq!(came.absent.unwrap(), []);
        let first_go = came.log.iter().position(|(_, said)| said == "go").unwrap();
        assert_eq!(came.log[..first_go].iter().filter(|(_, said)| said == "ready within 7 s").count(), 2);
        for device in [0, 1] {
            let own: Vec<&str> = came.log.iter().filter(|(of, _)| *of == device).map(|(_, said)| said.as_str()).collect();
            assert_eq!(own[..4], ["stream/read/f32 within 120 s", "ready within 7 s", "go", "window within 7 s"]);
        }
    }

    #[test]
    fn each_row_has_its_factor_and_the_documents_are_complete_again() {
        let child = |ids: &[&str]| ids.iter().flat_map(|id| well(id)).collect::<Vec<_>>();
        let children = || vec![child(&CASES[..2]), child(&CASES[2..])];
        let came = together(two(&CASES), vec![children(), children()]);
        for (run, other) in came.runs.iter().zip(["GPU-2", "GPU-1"]) {
            assert!(run.complete && run.finished_at.is_some());
            for row in &run.measurements {
                let contention = row.contention.as_ref().unwrap();
                assert_eq!((contention.factor, contention.overlap_fraction, &contention.others[..]), (0.5, 1.0, &[other.to_owned()][..]));
                assert!(row.is_sound() && !row.missing.contains_key("contention"));
            }
        }
    }

    #[test]
    fn a_device_that_fails_before_the_start_blocks_nobody_and_the_next_case_is_measured_by_fresh_children() {
        let out_of_memory = || failure(DeviceError::OutOfMemory("none left".into()));
        for (fails, reason) in [
            (vec![started(CASES[0]), out_of_memory()], "out of memory: none left"),
            (vec![started(CASES[0]), Heard::Nothing], "7 s, the limit for this case"),
            (vec![started(CASES[0]), Heard::End("signal: 11 (SIGSEGV)".into())], "signal: 11"),
            (vec![Heard::Answer(Answer::Refused(DeviceError::Unusable("no such device".into())))], "no such device"),
            (vec![Heard::Nothing], "120 s"),
            (vec![Heard::End("signal: 6 (SIGABRT)".into())], "signal: 6"),
        ] {
            let waits = vec![started(CASES[0]), ready()];
            let runs = ["GPU-1", "GPU-2", "GPU-3"].map(|uuid| document(uuid, &CASES[..2])).into();
            let children = [waits.clone(), fails, waits].map(|first| vec![first, well(CASES[1])]).into();
            let came = together(runs, children);
            let absent = came.absent.unwrap();
            assert!(absent.len() == 1 && absent[0].id == CASES[0] && absent[0].why.contains(reason), "{absent:?}");
            for run in &came.runs {
                assert!(why(run, CASES[0]).contains("GPU-2: ") && why(run, CASES[0]).contains(reason), "{}", why(run, CASES[0]));
                assert!(run.measurements[0].is_sound() && run.measurements[1].contention.is_some());
                assert!(run.complete);
            }
        }
    }

    #[test]
    fn a_child_that_dies_at_the_gate_is_noticed_there() {
        let runs = ["GPU-1", "GPU-2", "GPU-3", "GPU-4"].map(|uuid| document(uuid, &CASES[..1])).into();
        let waits = vec![started(CASES[0]), ready()];
        let dies = [waits.clone(), vec![Heard::End("signal: 9 (SIGKILL)".into())]].concat();
        let came = together(runs, [waits.clone(), dies, waits.clone(), waits].map(|child| vec![child]).into());
        assert!(came.runs.iter().all(|run| why(run, CASES[0]).contains("GPU-2: ") && why(run, CASES[0]).contains("signal: 9")));
        assert!(came.log.iter().all(|(_, said)| said != "go"));
    }

    #[test]
    fn a_device_that_fails_after_the_start_leaves_no_factor_to_anybody() {
        for (fails, reason) in [(Heard::Nothing, "limit"), (failure(DeviceError::Lost("700".into())), "700")] {
            let children = vec![vec![well(CASES[0])], vec![vec![started(CASES[0]), ready(), fails]]];
            let came = together(two(&CASES[..1]), children);
            assert_eq!(came.absent.unwrap().len(), 1);
            assert!(came.runs.iter().all(|run| why(run, CASES[0]).contains(reason)));
        }
    }

    #[test]
    fn an_interruption_while_one_waits_at_the_gate_keeps_what_was_finished() {
        let first = |last: Vec<Heard>| vec![[well(CASES[0]), last].concat()];
        let waits = first(vec![started(CASES[1]), ready()]);
        let interrupts = first(vec![started(CASES[1]), Heard::End("interrupt".into())]);
        let came = together(two(&CASES), vec![waits, interrupts]);
        assert!(matches!(came.absent, Err(SessionError::Interrupted(_))));
        for run in &came.runs {
            assert!(!run.complete && run.finished_at.is_none());
            assert!(run.measurements[0].contention.is_some());
            assert!(why(run, CASES[1]).contains("the run ended before") && why(run, CASES[2]).contains("the run ended before"));
        }
        assert_eq!(came.log.iter().filter(|(_, said)| said == "go").count(), 2);
    }

    #[test]
    fn a_device_that_was_lost_three_times_is_not_asked_again() {
        const MANY: [&str; 5] = ["stream/read/f32", "stream/write/f32", "stream/copy/f32", "stride/read/4", "stride/read/8"];
        // Two losses end their pattern, the third the rest.
        let tried = [MANY[0], MANY[1], MANY[3]];
        let waits = tried.map(|id| vec![started(id), ready()]).into();
        let loses = tried.map(|id| vec![started(id), failure(DeviceError::Lost("700".into()))]).into();
        let came = together(two(&MANY), vec![waits, loses]);
        assert_eq!(came.absent.unwrap().len(), 5);
        assert!(why(&came.runs[0], MANY[4]).contains("GPU-2: not measured: the device was lost"));
    }

    #[test]
    fn wrong_results_under_contention_make_the_row_of_that_device_unverified() {
        let came = together(two(&CASES[..1]), vec![vec![well(CASES[0])], vec![vec![started(CASES[0]), ready(), window(3)]]]);
        let verdicts: Vec<_> = came.runs.iter().map(|run| run.measurements[0].verdict).collect();
        assert_eq!(verdicts, [Some(Verdict::Ok), Some(Verdict::Unverified)]);
    }

    #[test]
    fn a_case_that_not_all_have_figures_of_is_left_to_those_alone() {
        let mut runs = vec![document("GPU-1", &CASES[..2]), document("GPU-2", &CASES[..2])];
        runs[1].measurements[0] = Measurement::without_figures(CASES[0], "stream", Status::Timeout, "too slow".into());
        let came = together(runs, vec![vec![well(CASES[1])], vec![well(CASES[1])]]);
        assert_eq!(came.absent.unwrap(), []);
        assert!(why(&came.runs[0], CASES[0]).contains("not all of the devices"));
        assert!(came.runs.iter().all(|run| run.measurements[1].contention.is_some()));
    }
}
