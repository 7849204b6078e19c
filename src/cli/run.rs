//! `hbmark run`: measure devices, keep the document, draw, and print the table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::check_plans;
use super::output::{emit, note, width};
use super::progress::Progress;
use super::{Exit, Failure};
use crate::catalog;
use crate::device::{self, Device, Selected, Selector, machine};
use crate::measure::{self, Plans, SessionError};
use crate::pattern::{Data, DeviceKind, Profile, select};
use crate::record::{self, DOCUMENT_NAME, Peaks, Program, Run, SaveError};
use crate::report::{self, Format, ReportError};

/// Arguments of `hbmark run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  hbmark run                              everything of the quick profile, on every CUDA device
  hbmark run stream --device 0            one pattern on one device
  hbmark run stream/copy/f32@8589934592   one case with arrays of 8 GiB
  hbmark run --device host -o ram         the RAM of this machine, into the folder 'ram'")]
pub struct Args {
    /// Patterns, beginnings of ids, or ids of cases; all of the profile when none is named
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    /// An index as in nvidia-smi, a UUID, 'all', or 'host' for the RAM of this machine
    #[arg(long, value_name = "DEVICE")]
    device: Option<Selector>,
    /// How much to measure
    #[arg(long, value_enum, default_value = "quick")]
    profile: Profile,
    /// What the arrays hold while they are timed
    #[arg(long, value_enum, default_value = "random")]
    data: Data,
    /// Folder for the document, charts and tables [default: hbmark-out/<card>-<UTC time>]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// A note to keep in the document; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// How to print the results
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("a label is written key=value, such as rack=b12".into()),
    }
}

/// One device, ready to be measured: everything that can be refused has been.
struct Ready {
    device: Box<dyn Device>,
    plans: Plans,
    run: Run,
    folder: PathBuf,
}

pub fn run(args: &Args) -> Result<Exit, Failure> {
    let (selected, why) = device::list(args.device.as_ref().unwrap_or(&Selector::Default))?;
    if let Some(why) = why {
        note(&why);
    }
    let several = selected.len() > 1;
    let interrupted = Arc::new(AtomicBool::new(false));
    stop_on_interrupt(&interrupted);
    // Everything that can be refused is refused before anything is measured.
    let mut exit = Exit::Done;
    let mut all_ready = Vec::new();
    for one in selected {
        match prepare(args, one, several) {
            Ok(ready) => all_ready.push(ready),
            // One device of several that cannot be measured does not keep the others from it.
            Err(failure) if several => {
                note(&format!("error: {one}: {failure}"));
                exit = exit.and(failure.exit());
            }
            Err(failure) => return Err(failure),
        }
    }
    let mut runs = Vec::new();
    for ready in all_ready {
        let (run, outcome) = measure_one(ready, &interrupted);
        exit = exit.and(outcome);
        runs.push(run);
        if interrupted.load(Ordering::SeqCst) {
            break;
        }
    }
    // What was found out about the devices is not lost with a table that cannot be written.
    let printed = report::render(&runs, args.format, width()).map_err(Failure::from).and_then(|text| Ok(emit(&text)?));
    if let Err(failure) = printed {
        note(&format!("error: {failure}"));
        exit = exit.and(failure.exit());
    }
    Ok(exit)
}

/// The first interrupt lets the sample in flight end and keeps what is finished;
/// a second one ends the program at once.
fn stop_on_interrupt(interrupted: &Arc<AtomicBool>) {
    let flag = Arc::clone(interrupted);
    let handler = move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(Exit::Interrupted as i32);
        }
        note("interrupted: ending after the current sample");
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        note(&format!("warning: Ctrl-C will end the program at once: {error}"));
    }
}

fn prepare(args: &Args, selected: Selected, several: bool) -> Result<Ready, Failure> {
    let device = device::open(selected)?;
    let facts = device.facts()?;
    let ids = select(&args.patterns, args.profile, &facts)?;
    let plans = Plans::new(&ids, &facts);
    check_plans(&plans)?;
    let identity = device.identity()?;
    let started_at = record::now();
    let run = Run {
        schema_version: record::SCHEMA_VERSION.into(),
        suite_version: record::SUITE_VERSION.into(),
        program: Program::this(),
        started_at,
        finished_at: None,
        complete: false,
        profile: args.profile,
        data: args.data,
        host: machine::host(),
        labels: args.label.iter().cloned().collect::<BTreeMap<_, _>>(),
        peaks: Peaks::known_beforehand(&identity, catalog::of_device(&identity).map(|card| card.memory.bandwidth_gbps)),
        device: identity,
        measurements: Vec::new(),
    };
    let folder = claim(args, &run, several)?;
    Ok(Ready { device, plans, run, folder })
}

/// Takes a folder by writing the document, without rows, into it; nothing measured is ever overwritten.
fn claim(args: &Args, run: &Run, several: bool) -> Result<PathBuf, Failure> {
    let index = run.device.index.map(|index| format!("-{index}")).unwrap_or_default();
    let (mut folder, numbered) = match &args.output {
        Some(chosen) if several => (chosen.join(format!("{}{index}", run.device.card)), 0..0),
        Some(chosen) => (chosen.clone(), 0..0),
        None => {
            let time: String = run.started_at.chars().filter(|c| *c != '-' && *c != ':').collect();
            // Several runs may start in one second, on the cards of one machine say.
            (Path::new("hbmark-out").join(format!("{}-{time}", run.device.card)), 2..100)
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

/// Measures one device and writes tables and charts beside its document.
fn measure_one(ready: Ready, interrupted: &AtomicBool) -> (Run, Exit) {
    let Ready { mut device, plans, mut run, folder } = ready;
    let document = folder.join(DOCUMENT_NAME);
    let which = run.device.index.map(|index| format!(", CUDA device {index}")).unwrap_or_default();
    note(&format!("measuring {}{which} ({} cases, profile {})", run.device.name, plans.len(), run.profile));
    if run.device.kind == DeviceKind::Host && cfg!(debug_assertions) {
        note("warning: this is a debug build, whose host kernels are slow; use 'cargo run --release -- run'");
    }
    if run.device.kind == DeviceKind::Cuda && catalog::of_device(&run.device).is_none() {
        note("the catalog does not know this card: it is measured all the same, without data-sheet figures");
    }
    let progress = Progress::new(plans.len());
    let outcome =
        measure::run(device.as_mut(), &plans, &mut run, &|| !interrupted.load(Ordering::SeqCst), &mut |event| progress.on(event), &|run| {
            record::save(run, &document)
        });
    drop(progress);
    let mut exit = match outcome {
        Ok(()) => Exit::of(&run),
        Err(SessionError::Interrupted(_)) => Exit::Interrupted,
        Err(SessionError::Save(error)) => {
            note(&format!("error: {error}; the rows since are missing from the document"));
            Exit::of(&run).and(Failure::Save(error).exit())
        }
    };
    // In the order of the rows: the loss of a device stands before what it kept from being measured.
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (id, reason) in run.measurements.iter().filter_map(|row| Some((&row.id, row.reason.as_ref()?))) {
        match by_reason.iter_mut().find(|(known, _)| known == reason) {
            Some((_, ids)) => ids.push(id),
            None => by_reason.push((reason, vec![id])),
        }
    }
    for (reason, ids) in by_reason {
        note(&format!("{}: {reason}", ids.join(", ")));
    }
    note(&format!("document: {}", document.display()));
    match report::write(std::slice::from_ref(&run), &folder) {
        Ok(written) if written.files.iter().any(|file| file.extension().is_some_and(|e| e == "svg")) => {
            note(&format!("charts:   {}", folder.join(report::CHARTS).display()));
        }
        Ok(_) => {}
        Err(error) => {
            note(&format!("error: {error}"));
            exit = exit.and(Failure::Report(error).exit());
        }
    }
    (run, exit)
}
