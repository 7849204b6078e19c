//! `hbmark check`: may these documents be trusted? From files alone.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::output::{Format, emit};
use super::{Exit, Failure};
use crate::chart::words::clean;
use crate::check::{Finding, What, check};
use crate::record;

const AFTER_HELP: &str = "Exit codes, the first that holds:
  4  unverified rows
  5  rows that are above_peak, cache_resident, compressed, spilled, or do not add up
  2  files that cannot be read, and rows without figures
  7  cases that failed
  0  nothing, or remarks only

Example:
  hbmark check results/h200-sxm-141gb/*.json";

/// Arguments of `hbmark check`.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Run documents, arrays of them as --format json prints, or folders that hold one; of rows that another
    /// program wrote, id and achieved_gbps, or bytes and time_ns, are enough
    #[arg(required = true, value_name = "RUN|DIR")]
    runs: Vec<PathBuf>,
    /// How to print what was found
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Findings with the file that each is about.
type Found<'a> = Vec<(&'a Path, Finding)>;

pub fn run(args: &Args) -> Result<Exit, Failure> {
    let mut documents = 0;
    let mut found: Found = Vec::new();
    for path in &args.runs {
        match record::load_claims(path) {
            Ok(all) => {
                documents += all.len();
                found.extend(all.iter().flat_map(check).map(|finding| (path.as_path(), finding)));
            }
            Err(error) => found.push((path, Finding { case: None, what: What::Unreadable, says: error.to_string() })),
        }
    }
    emit(&match args.format {
        Format::Table => lines(documents, &found),
        Format::Json => object(documents, &found),
    })?;
    Ok(found.iter().fold(Exit::Done, |exit, (_, finding)| exit.and(exit_of(finding.what))))
}

/// The code that a run ends with when it finds this in its own rows.
const fn exit_of(what: What) -> Exit {
    match what {
        What::Unreadable | What::NoFigures => Exit::Usage,
        What::Unverified => Exit::WrongData,
        What::AbovePeak | What::CacheResident | What::Compressed | What::Spilled | What::DoesNotAddUp => Exit::Implausible,
        What::Failed => Exit::CaseFailed,
        What::Incomplete
        | What::DebugBuild
        | What::UnsoundPeak
        | What::NotVerified
        | What::Unstable
        | What::Throttled
        | What::Shared
        | What::Unknown => Exit::Done,
    }
}

fn lines(documents: usize, found: &Found) -> String {
    let mut text = String::new();
    for (file, Finding { case, what, says }) in found {
        let case = case.as_deref().map_or("-".to_owned(), clean);
        text += &format!("{}: {case}: {}: {}\n", clean(&file.display().to_string()), what.name(), clean(says));
    }
    let plural = |n| if n == 1 { "" } else { "s" };
    text + &format!("{documents} document{}, {} finding{}\n", plural(documents), found.len(), plural(found.len()))
}

fn object(documents: usize, found: &Found) -> String {
    let findings: Vec<_> = found
        .iter()
        .map(|(file, Finding { case, what, says })| json!({ "file": file.display().to_string(), "case": case, "what": what, "says": says }))
        .collect();
    format!("{:#}\n", json!({ "documents": documents, "findings": findings }))
}
