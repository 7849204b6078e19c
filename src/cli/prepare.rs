//! Before a new run: everything that can be refused is refused before anything is measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::exit::check_plans;
use super::run::Args;
use super::{Exit, Failure, note};
use crate::catalog;
use crate::device::{self, Selected, Selector, machine};
use crate::pattern::{Profile, select};
use crate::record::{self, DOCUMENT_NAME, Held, Peaks, Program, Run, SaveError};
use crate::report::{self, ReportError};
use crate::session::{self, Plans};

/// One device, ready to be measured.
pub struct Ready {
    /// As a child takes it.
    pub device: String,
    /// What is to be measured.
    pub plans: Plans,
    /// The document so far; it is in the folder.
    pub run: Run,
    /// Where it is.
    pub folder: PathBuf,
    /// Keeps others from completing it meanwhile.
    pub held: Held,
}

/// Prepares a new run of each device that the arguments mean. One device of several that cannot
/// be measured does not keep the others from it: the code says how that went.
pub fn prepare(args: &Args, go_on: &dyn Fn() -> bool) -> Result<(Vec<Ready>, Exit), Failure> {
    let (selected, why) = device::list(args.device.as_ref().unwrap_or(&Selector::Default))?;
    if let Some(why) = why {
        note(&why);
    }
    let several = selected.len() > 1;
    let mut exit = Exit::Done;
    let mut all_ready = Vec::new();
    for one in selected {
        match prepare_one(args, one, several, go_on) {
            Ok(ready) => all_ready.push(ready),
            Err(failure) if several => {
                note(&format!("error: {one}: {failure}"));
                exit = exit.and(failure.exit());
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok((all_ready, exit))
}

/// A device as a child takes it.
pub fn name_of(selected: Selected) -> String {
    match selected {
        Selected::Cuda(index) => index.to_string(),
        Selected::Host => "host".to_owned(),
    }
}

fn prepare_one(args: &Args, selected: Selected, several: bool, go_on: &dyn Fn() -> bool) -> Result<Ready, Failure> {
    let name = name_of(selected);
    let (identity, facts) = session::probe(&name, go_on)?;
    let profile = args.profile.unwrap_or(Profile::Quick);
    let plans = Plans::new(&select(&args.patterns, profile, &facts)?, &facts);
    check_plans(&plans)?;
    let device = identity.uuid.clone().unwrap_or(name);
    let run = Run {
        schema_version: record::SCHEMA_VERSION.into(),
        suite_version: record::SUITE_VERSION.into(),
        program: Program::this(),
        started_at: record::now(),
        finished_at: None,
        complete: false,
        profile,
        data: args.data.unwrap_or_default(),
        cache: args.cache.unwrap_or_default(),
        host: machine::host(),
        labels: args.label.iter().cloned().collect::<BTreeMap<_, _>>(),
        peaks: Peaks::known_beforehand(&identity, catalog::of_device(&identity).map(|card| card.memory.bandwidth_gbps)),
        device: identity,
        cases: plans.ids(),
        measurements: Vec::new(),
    };
    let folder = claim(args, &run, several)?;
    let held = record::hold(&folder)?;
    Ok(Ready { device, plans, run, folder, held })
}

/// Takes a folder by writing the document, without rows, into it; nothing measured is ever overwritten.
fn claim(args: &Args, run: &Run, several: bool) -> Result<PathBuf, Failure> {
    let index = run.device.index.map(|index| format!("-{index}")).unwrap_or_default();
    let (mut folder, numbered) = match &args.output {
        Some(chosen) if several => (chosen.join(format!("{}{index}", run.device.card)), 0..0),
        Some(chosen) => (chosen.clone(), 0..0),
        None => {
            let time: String = run.started_at.chars().filter(|c| *c != '-' && *c != ':').collect();
            let index = if several { index } else { String::new() };
            // Several runs may start in one second.
            (Path::new("hbmark-out").join(format!("{}{index}-{time}", run.device.card)), 2..100)
        }
    };
    let stem = folder.display().to_string();
    let mut others = numbered.map(|n| PathBuf::from(format!("{stem}-{n}")));
    loop {
        // Tables and charts of somebody else would be replaced without a word.
        if let Some(path) = report::foreign(&folder) {
            return Err(ReportError::Foreign { path }.into());
        }
        match record::create(run, &folder.join(DOCUMENT_NAME)) {
            Ok(()) => return Ok(folder),
            Err(error @ SaveError::Exists { .. }) => folder = others.next().ok_or(error)?,
            Err(error) => {
                return Err(Failure::Usage(format!("{error}; nothing was measured; choose with -o a folder that can be written")));
            }
        }
    }
}
