//! A child process, as its parent sees it.

use std::io::{BufRead, BufReader, Error, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::limit;
use super::protocol::{Answer, Request, line};
use super::run::{Heard, Worker};
use crate::device::DeviceError;
use crate::pattern::Facts;
use crate::record;

/// The subcommand that makes this program a child.
pub const CHILD_COMMAND: &str = "child";

/// How often a waiting parent looks whether the user wants it to end.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// How often a parent looks whether a child that has said its last is gone.
const LOOK_ENDED: Duration = Duration::from_millis(2);

/// Starts a child with its first request.
///
/// # Errors
/// When the system starts no process.
pub fn start(request: &Request) -> std::io::Result<Box<dyn Worker>> {
    Ok(Box::new(Process::start(request)?))
}

/// Opens the device in a child, and asks who it is and what cases are planned with.
///
/// # Errors
/// What opening the device gave; [`DeviceError::Unusable`] when it took too long or the child died.
pub fn probe(device: &str, go_on: &dyn Fn() -> bool) -> Result<(record::Device, Facts), DeviceError> {
    let failed = |why: String| DeviceError::Unusable(format!("the device '{device}' cannot be opened: {why}"));
    let mut child = Process::start(&Request::Probe(device.to_owned())).map_err(|error| failed(no_process(&error)))?;
    match child.hear(limit::OPENING, go_on) {
        Heard::Answer(Answer::Probed { identity, facts }) => {
            // A child that has done its work ends by itself.
            child.hear(limit::ENDING, go_on);
            Ok((*identity, facts))
        }
        Heard::Answer(Answer::Refused(error)) => Err(error),
        Heard::Answer(_) => Err(failed("the process that tried gave another answer; please report this".into())),
        Heard::Nothing => Err(failed(too_long())),
        Heard::End(how) => Err(failed(died(&how))),
    }
}

/// Why a device is not open after its time.
pub(super) fn too_long() -> String {
    format!("this had not ended after {} s; look for the cause with 'dmesg'", limit::OPENING.as_secs())
}

/// Why a device is not open when the child is gone.
pub(super) fn died(how: &str) -> String {
    format!("the process that tried came to an unexpected end ({how})")
}

/// Why a case has no figures after its time.
pub(super) fn overran(limit: Duration) -> String {
    format!("it had not ended after {} s, the limit for this case; '--case-limit' sets another", limit.as_secs())
}

/// Why a case has no figures when its child is gone.
pub(super) fn ended(how: &str) -> String {
    format!("the process that measured it came to an unexpected end ({how})")
}

/// Why a case has no figures when its child said what nobody asked.
pub(super) fn answered_otherwise() -> String {
    "its process answered something else; please report this".to_owned()
}

/// Why there is no child.
pub(super) fn no_process(error: &Error) -> String {
    format!("the system starts no process for it: {error}")
}

struct Process {
    child: Child,
    /// Open as long as this lives: when it closes, so that the parent is gone, the child ends.
    requests: ChildStdin,
    answers: Receiver<Answer>,
    told_to_stop: bool,
}

impl Process {
    fn start(request: &Request) -> std::io::Result<Self> {
        let mut child = this_program()?.arg(CHILD_COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(mut requests), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::other("it has no pipes"));
        };
        // One that dies before it has read this shows as an end without an answer.
        let _ = requests.write_all(line(request)?.as_bytes());
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || pass_on(BufReader::new(output), &sender));
        Ok(Self { child, requests, answers, told_to_stop: false })
    }

    /// How the child ended, if it does within this time.
    fn exit(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < deadline => thread::sleep(LOOK_ENDED),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }
}

/// The very program that runs, also when its file was replaced meanwhile, by a new build say.
fn this_program() -> std::io::Result<Command> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("hbmark");
        Ok(command)
    }
    #[cfg(not(target_os = "linux"))]
    {
        std::env::current_exe().map(Command::new)
    }
}

/// Hands on each answer until the child's output ends. A line that is none comes from some
/// library in the child, and goes to standard error as the child's own remarks do.
fn pass_on(output: impl BufRead, answers: &Sender<Answer>) {
    for line in output.split(b'\n').map_while(Result::ok) {
        let Ok(answer) = serde_json::from_slice(&line) else {
            let _ = writeln!(std::io::stderr(), "{}", String::from_utf8_lossy(&line));
            continue;
        };
        // Nobody listens any more: the child is being ended.
        if answers.send(answer).is_err() {
            return;
        }
    }
}

impl Worker for Process {
    fn tell(&mut self, request: &Request) {
        let _ = line(request).and_then(|line| self.requests.write_all(line.as_bytes()));
    }

    fn hear(&mut self, within: Duration, go_on: &dyn Fn() -> bool) -> Heard {
        // Counted in waits, not by the clock: a program that is suspended for a while loses no case by it.
        let mut left = within;
        loop {
            if !self.told_to_stop && !go_on() {
                self.told_to_stop = true;
                self.tell(&Request::Stop);
            }
            let wait = left.min(LOOK);
            match self.answers.recv_timeout(wait) {
                Ok(answer) => return Heard::Answer(answer),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Heard::Nothing,
                Err(RecvTimeoutError::Timeout) => left -= wait,
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.exit(limit::ENDING);
                    return Heard::End(status.map_or("it closed its output and lives on".into(), |status| status.to_string()));
                }
            }
        }
    }
}

impl Drop for Process {
    /// Ends the child if it has not ended, and waits until its memory and contexts are given back;
    /// not for ever, because a process inside a driver that hangs cannot be ended.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.exit(limit::ENDING);
    }
}
