//! `hbmark doctor`: what is here, what is missing, why, and what to do about it.

mod diagnosis;
mod text;

use self::diagnosis::Diagnosis;
use super::output::{Format, emit};
use super::{Exit, Failure};

/// Arguments of `hbmark doctor`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  hbmark doctor                 for people
  hbmark doctor --format json   for programs; send this with a question

The exit code is 0 when CUDA would work on some device here, and 3 when only the host could be measured.")]
pub struct Args {
    /// How to print it
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub fn run(args: &Args) -> Result<Exit, Failure> {
    let diagnosis = Diagnosis::of_this_machine();
    emit(&match args.format {
        Format::Table => text::text(&diagnosis),
        Format::Json => format!("{:#}\n", serde_json::to_value(&diagnosis).map_err(std::io::Error::from)?),
    })?;
    Ok(if diagnosis.usable { Exit::Done } else { Exit::Device })
}
