//! `hbmark report`: charts and tables from run documents alone.

use std::path::PathBuf;

use super::output::{emit, note};
use super::{Exit, Failure};
use crate::measure::judge_again;
use crate::{record, report};

/// Arguments of `hbmark report`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  hbmark report hbmark-out/h200-sxm-141gb-20260501T120000Z -o h200-report")]
pub struct Args {
    /// Run documents, arrays of them as --format json prints, or folders that hold one
    #[arg(required = true, value_name = "RUN|DIR")]
    runs: Vec<PathBuf>,
    /// Folder to write into; files of an earlier report there are replaced
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<Exit, Failure> {
    let mut runs = args.runs.iter().map(|path| record::load_all(path)).collect::<Result<Vec<_>, _>>()?.concat();
    runs.iter_mut().for_each(judge_again);
    let written = report::write(&runs, &args.output)?;
    for (chart, why) in &written.left_out {
        note(&format!("left out: {chart}: {why}"));
    }
    let mut text = String::new();
    for file in &written.files {
        text += &format!("{}\n", file.display());
    }
    emit(&text)?;
    Ok(Exit::Done)
}
