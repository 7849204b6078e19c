//! The command line: arguments, validation, the call, and all that is printed.

mod exit;
mod list;
mod output;
mod progress;
mod report;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use exit::{Exit, Failure};

const ABOUT: &str = "Measures what the memory of a GPU, HBM or GDDR, really delivers, and how busy its compute units are meanwhile.";

const EXIT_CODES: &str = "Exit codes:
  0    done; what was measured is verified and plausible
  1    internal error
  2    wrong usage or unreadable input
  3    the device asked for is not usable here
  4    a verification failed: the device returned wrong data
  5    an implausible result, such as a bandwidth above the physical peak
  7    some case ended as error or timeout
  130  interrupted; the document is valid and holds what was finished
When several hold: 130, then 4, 5, 7.";

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
    /// Show what there is: patterns, cases or devices
    List(list::Args),
    /// Write charts, CSV and Markdown from run documents; needs no device
    Report(report::Args),
}

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::List(args) => list::run(&args),
        Command::Report(args) => report::run(&args),
    };
    let exit = result.unwrap_or_else(|failure| {
        eprintln!("error: {failure}");
        failure.exit()
    });
    ExitCode::from(exit as u8)
}
