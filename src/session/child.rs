//! What a child does: open the device, measure what it is asked, answer, end.

use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use super::Forms;
use super::protocol::{Answer, Request, Task, line};
use crate::device::{self, Device, DeviceError, Selector};
use crate::measure::{Particulars, Soaking, measure, measure_together};
use crate::pattern::{self, CaseId, PlanError};
use crate::record::{Measurement, Peaks, Status};

/// Why a child did not do what it is for.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Somebody else than this program called it.
    #[error("this subcommand is a part of 'hbmark run' and takes its requests from there")]
    NoRequest,
    /// The parent no longer listens.
    #[error("the answer cannot be written: {0}")]
    Answer(#[from] std::io::Error),
}

/// Does what the first line on standard input asks and answers on standard output.
///
/// # Errors
/// When there is no request, or nobody to take the answers.
pub fn serve() -> Result<(), ServeError> {
    // A terminal sends Ctrl-C to parent and child alike: the parent decides what it means. Where
    // this cannot be arranged, the child ends, and the parent sees that it was interrupted too.
    let _ = ctrlc::set_handler(|| {});
    // Buffered here and not by a lock of standard input, which could not go to another thread.
    let mut requests = BufReader::new(std::io::stdin()).lines().map_while(Result::ok);
    let request = requests.next().and_then(|line| serde_json::from_str(&line).ok());
    let request: Request = request.ok_or(ServeError::NoRequest)?;
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    let (go, gone) = mpsc::channel();
    thread::spawn(move || watch(requests, &flag, go));
    let go_on = || !stopped.load(Ordering::SeqCst);
    match request {
        Request::Probe(device) => say(&probe(&device).unwrap_or_else(Answer::Refused))?,
        Request::Measure(task) => {
            let (mut peaks, mut forms) = (task.peaks.clone(), task.forms.clone());
            carry_out(&task, |id, device| alone(id, device, &task, &mut peaks, &mut forms, &go_on))?;
        }
        Request::Together(task) => {
            // Nobody to say it to is nobody to start for.
            let mut start = || say(&Answer::Ready).is_ok() && gone.recv().is_ok();
            carry_out(&task, |id, device| together(id, device, &task, &mut start, &go_on))?;
        }
        Request::Go | Request::Stop => {}
    }
    Ok(())
}

/// Hands on each request to go, until one to stop; and ends the process at once when the parent is
/// gone, whatever the other threads hang in.
fn watch(requests: impl Iterator<Item = String>, stopped: &AtomicBool, go: Sender<()>) {
    let mut go = Some(go);
    for line in requests {
        match serde_json::from_str(&line) {
            // One that no longer waits has ended.
            Ok(Request::Go) => go = go.filter(|go| go.send(()).is_ok()),
            Ok(Request::Stop) => {
                stopped.store(true, Ordering::SeqCst);
                // Its end says to one who waits that there is no start.
                go = None;
            }
            _ => {}
        }
    }
    std::process::abort();
}

fn say(answer: &Answer) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(line(answer)?.as_bytes())?;
    out.flush()
}

fn open(device: &str) -> Result<Box<dyn Device>, DeviceError> {
    let selector: Selector = device.parse().map_err(DeviceError::NotFound)?;
    match device::list(&selector)?.0[..] {
        [one] => device::open(one),
        _ => Err(DeviceError::NotFound(format!("'{device}' is not one device"))),
    }
}

fn probe(device: &str) -> Result<Answer, DeviceError> {
    let device = open(device)?;
    let facts = device.facts()?;
    Ok(Answer::Probed { identity: Box::new(device.identity()?), facts })
}

/// Opens the device and has `one` carry out each case, until that gives no answer, being told to stop.
fn carry_out(task: &Task, mut one: impl FnMut(&CaseId, &mut dyn Device) -> Option<Answer>) -> std::io::Result<()> {
    let mut device = match open(&task.device) {
        Ok(device) => device,
        Err(error) => return say(&Answer::Refused(error)),
    };
    for id in &task.ids {
        say(&Answer::Started(id.clone()))?;
        let Some(answer) = one(&CaseId::new(id), device.as_mut()) else { return Ok(()) };
        say(&answer)?;
        // Whatever failed may have left something behind: the next case gets a fresh context.
        if answer.is_failure() {
            return Ok(());
        }
    }
    Ok(())
}

fn alone(
    id: &CaseId,
    device: &mut dyn Device,
    task: &Task,
    peaks: &mut Peaks,
    forms: &mut Forms,
    go_on: &dyn Fn() -> bool,
) -> Option<Answer> {
    let (row, device_lost) = match pattern::plan(id, &task.facts) {
        Ok(case) => {
            // Nobody to say it to: this process is about to end.
            let on = |seconds| _ = say(&Answer::Soaked(seconds));
            let soak = task.soaks.of(id).map(|seconds| Soaking { seconds, on: &on });
            let own = Particulars { form: forms.of(&case), soak };
            let measured = measure(&case, device, &task.facts, task.settings, peaks, own, go_on).ok()?;
            forms.note(&case, &measured.row);
            (measured.row, measured.device_lost)
        }
        Err(error) => (Measurement::without_figures(&id.to_string(), id.pattern(), Status::Skipped, error.to_string()), false),
    };
    peaks.note(&row);
    Some(Answer::Finished { row: Box::new(row), device_lost })
}

fn together(
    id: &CaseId,
    device: &mut dyn Device,
    task: &Task,
    start: &mut dyn FnMut() -> bool,
    go_on: &dyn Fn() -> bool,
) -> Option<Answer> {
    let planned = pattern::plan(id, &task.facts).map_err(|error: PlanError| DeviceError::Failed(error.to_string()));
    let outcome =
        planned.and_then(|case| measure_together(&case, device, task.facts.kind, task.settings, task.forms.of(&case), start, go_on));
    Some(Answer::Together(outcome.transpose()?.map(Box::new)))
}
