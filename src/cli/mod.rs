//! The command line: arguments, validation, the call, and all that is printed.

mod check;
mod doctor;
mod exit;
mod list;
mod output;
mod prepare;
mod progress;
mod report;
mod resume;
mod run;
mod selftest;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::output::note;
use crate::session::{CHILD_COMMAND, serve};

pub use exit::{Exit, Failure};

const ABOUT: &str = "Measures what the memory of a GPU, HBM or GDDR, really delivers, and how busy its compute units are meanwhile.";

const EXIT_CODES: &str = "Exit codes:
  0    done; what was measured is verified and plausible
  1    internal error
  2    wrong usage, unreadable input, or output that cannot be written
  3    the device asked for is not usable here
  4    a verification failed: the device returned wrong data
  5    an implausible result, such as a bandwidth above the physical peak
  7    some case ended as error or timeout
  130  interrupted; the document is valid and holds what was finished
When several hold, the first of 130, 1, 4, 5, 3, 2, 7.";

#[derive(Parser)]
#[command(name = "hbmark", version, about = ABOUT, after_long_help = EXIT_CODES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure devices and write a run document with charts
    Run(run::Args),
    /// Say what is here, what is missing, why, and what to do about it; measures nothing
    Doctor(doctor::Args),
    /// Show what there is: patterns, cases, cards or devices
    List(list::Args),
    /// Write charts, CSV and Markdown from run documents; needs no device
    Report(report::Args),
    /// Say whether run documents may be trusted: figures that cannot be, rows that nobody verified; needs no device
    Check(check::Args),
    /// Prove that results are right, and that wrong ones are seen
    Selftest(selftest::Args),
    /// Measure what standard input asks for: a part of 'run', never called by hand
    #[command(name = CHILD_COMMAND, hide = true)]
    Child,
}

/// Reads the command line and does what it says.
///
/// A panic is a fault of this program: it is said in one line and ends in exit code 1.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no message");
        note(&format!("internal error{place}: {what}; please report this"));
    }));
    std::panic::catch_unwind(command).unwrap_or(ExitCode::from(Exit::Internal as u8))
}

fn command() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::List(args) => list::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Selftest(args) => selftest::run(&args),
        Command::Child => serve().map(|()| Exit::Done).map_err(Failure::from),
    };
    let exit = result.unwrap_or_else(|failure| {
        note(&format!("error: {failure}"));
        failure.exit()
    });
    ExitCode::from(exit as u8)
}
