//! Before a new run: everything that can be refused is refused before anything is measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::exit::check_plans;
use super::run::Args;
use super::{Exit, Failure, note};
use crate::catalog;
use crate::device::{self, Selected, machine};
use crate::pattern::{CacheState, Profile, select};
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

/// Prepares a new run of each device that the arguments mean, and takes no folder before all were
/// looked at. One device of several that cannot be measured does not keep the others from it, unless
/// all are to be measured at once: the code says how that went.
pub fn prepare(args: &Args, go_on: &dyn Fn() -> bool) -> Result<(Vec<Ready>, Exit), Failure> {
    check_soak(args)?;
    let (selected, why) = device::list_all(&args.device)?;
    if let Some(why) = why {
        note(&why);
    }
    check_number(&selected, args.simultaneous)?;
    let several = selected.len() > 1;
    let mut exit = Exit::Done;
    let mut spare = |one: Selected, failure: Failure| {
        if !several || args.simultaneous {
            return Err(failure);
        }
        note(&format!("error: {one}: {failure}"));
        exit = exit.and(failure.exit());
        Ok(())
    };
    let times = |one: Selected, among: &[Selected]| among.iter().filter(|other| **other == one).count();
    let mut found = Vec::new();
    for (at, &one) in selected.iter().enumerate() {
        let (processes, nth) = (times(one, &selected), times(one, &selected[..=at]));
        if processes > 1 && nth == 1 {
            note(&format!("{one}: {processes} processes will share its memory, so each plans with an equal part of what is free"));
        }
        match look(args, one, processes as u64, go_on) {
            Ok(ready) => found.push((one, nth, ready)),
            Err(failure) => spare(one, failure)?,
        }
    }
    let mut all_ready = Vec::new();
    for (one, nth, found) in found {
        match take(args, found, several, nth) {
            Ok(ready) => all_ready.push(ready),
            Err(failure) => spare(one, failure)?,
        }
    }
    Ok((all_ready, exit))
}

/// Refuses a device that is named twice, and several at once that are one.
fn check_number(selected: &[Selected], simultaneous: bool) -> Result<(), Failure> {
    if simultaneous {
        return match selected {
            [_, _, ..] => Ok(()),
            _ => Err(Failure::Usage(
                "'--simultaneous' measures several devices at once: name two, such as '--device 0,host', or one twice, such as \
                 '--device host,host'"
                    .into(),
            )),
        };
    }
    match selected.iter().enumerate().find(|(at, one)| selected[..*at].contains(one)) {
        Some((_, twice)) => Err(Failure::Usage(format!(
            "{twice} is named twice with '--device': name it once, or add '--simultaneous' to measure it in two processes at once"
        ))),
        None => Ok(()),
    }
}

/// Refuses a soak of nothing in particular, and one that would need a pause before each execution.
fn check_soak(args: &Args) -> Result<(), Failure> {
    let usage = |why: &str| Err(Failure::Usage(why.into()));
    match args.soak {
        Some(_) if args.patterns.is_empty() => {
            usage("'--soak' works at one case, or at a few, for long: name them, as in 'hbmark run stream/read/f32 --soak 600'")
        }
        Some(_) if args.cache == Some(CacheState::Cold) => {
            usage("'--soak' works without a pause and '--cache cold' needs one before each execution: leave one of them out")
        }
        _ => Ok(()),
    }
}

/// Time that a soak may take for names that mean several cases each, in seconds.
const MOST_SOAK_S: u64 = 3600;

/// Refuses a soak of so many cases that nobody would wait for it, unless each was named.
fn check_soak_of(args: &Args, seconds: u64, cases: usize) -> Result<(), Failure> {
    let all_s = seconds.saturating_mul(cases as u64);
    if cases <= args.patterns.len() || all_s <= MOST_SOAK_S {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "'{}' means {cases} cases, and '--soak {seconds}' of each takes {:.1} hours: name the cases by their ids, which 'hbmark list cases' \
         shows, or choose a shorter time",
        args.patterns.join(" "),
        all_s as f64 / 3600.0
    )))
}

/// A device as a child takes it.
pub fn name_of(selected: Selected) -> String {
    match selected {
        Selected::Cuda(index) => index.to_string(),
        Selected::Host => "host".to_owned(),
    }
}

/// A device that can be measured, with what is to be measured on it.
struct Found {
    name: String,
    identity: record::Device,
    profile: Profile,
    plans: Plans,
}

/// Looks at a device and plans for it. Its memory has to do for all processes that use it at once.
fn look(args: &Args, selected: Selected, processes: u64, go_on: &dyn Fn() -> bool) -> Result<Found, Failure> {
    let name = name_of(selected);
    let (identity, mut facts) = session::probe(&name, go_on)?;
    facts.free_bytes /= processes;
    facts.main_free_bytes /= processes;
    let profile = args.profile.unwrap_or(Profile::Quick);
    let ids = select(&args.patterns, profile, &facts)?;
    let mut plans = Plans::new(&ids, &facts);
    check_plans(&plans, &args.patterns)?;
    if let Some(seconds) = args.soak {
        check_soak_of(args, seconds, ids.len())?;
        plans.soak(seconds, &ids).map_err(|latency| {
            Failure::Usage(format!("{latency} measures a latency, and '--soak' shows how a bandwidth goes: name another case"))
        })?;
    }
    Ok(Found { name, identity, profile, plans })
}

/// Takes a folder for the `nth` run of a device.
fn take(args: &Args, Found { name, identity, profile, plans }: Found, several: bool, nth: usize) -> Result<Ready, Failure> {
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
    let folder = claim(args, &run, several, nth)?;
    let held = record::hold(&folder)?;
    Ok(Ready { device, plans, run, folder, held })
}

/// Takes a folder by writing the document, without rows, into it; nothing measured is ever overwritten.
fn claim(args: &Args, run: &Run, several: bool, nth: usize) -> Result<PathBuf, Failure> {
    let index = run.device.index.map(|index| format!("-{index}")).unwrap_or_default();
    let (mut folder, numbered) = match &args.output {
        Some(chosen) if several => {
            let again = if nth > 1 { format!("-{nth}") } else { String::new() };
            (chosen.join(format!("{}{index}{again}", run.device.card)), 0..0)
        }
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
