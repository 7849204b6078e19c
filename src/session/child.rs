//! What a child does: open the device, measure what it is asked, answer, end.

use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::Forms;
use super::protocol::{Answer, Request, Task, line};
use crate::device::{self, Device, DeviceError, Selector};
use crate::measure::{Interrupted, measure};
use crate::pattern::{self, CaseId};
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
    thread::spawn(move || watch(requests, &flag));
    match request {
        Request::Probe(device) => say(&probe(&device).unwrap_or_else(Answer::Refused))?,
        Request::Measure(task) => carry_out(&task, &|| !stopped.load(Ordering::SeqCst))?,
        Request::Stop => {}
    }
    Ok(())
}

/// Waits for a request to stop, and ends the process at once when the parent is gone, whatever
/// the other threads hang in.
fn watch(requests: impl Iterator<Item = String>, stopped: &AtomicBool) {
    for line in requests {
        if let Ok(Request::Stop) = serde_json::from_str(&line) {
            stopped.store(true, Ordering::SeqCst);
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

fn carry_out(task: &Task, go_on: &dyn Fn() -> bool) -> std::io::Result<()> {
    let mut device = match open(&task.device) {
        Ok(device) => device,
        Err(error) => return say(&Answer::Refused(error)),
    };
    let (mut peaks, mut forms) = (task.peaks.clone(), task.forms.clone());
    for id in &task.ids {
        say(&Answer::Started(id.clone()))?;
        let Ok((row, device_lost)) = one(id, device.as_mut(), task, &peaks, &mut forms, go_on) else { return Ok(()) };
        peaks.note(&row);
        let failed = row.status == Status::Error;
        say(&Answer::Finished { row: Box::new(row), device_lost })?;
        // Whatever failed may have left something behind: the next case gets a fresh context.
        if failed {
            return Ok(());
        }
    }
    Ok(())
}

fn one(
    id: &str,
    device: &mut dyn Device,
    task: &Task,
    peaks: &Peaks,
    forms: &mut Forms,
    go_on: &dyn Fn() -> bool,
) -> Result<(Measurement, bool), Interrupted> {
    let id = CaseId::new(id);
    match pattern::plan(&id, &task.facts) {
        Ok(case) => {
            let measured = measure(&case, device, &task.facts, task.settings, peaks, forms.of(&case), go_on)?;
            forms.note(&case, &measured.row);
            Ok((measured.row, measured.device_lost))
        }
        Err(error) => Ok((Measurement::without_figures(&id.to_string(), id.pattern(), Status::Skipped, error.to_string()), false)),
    }
}
