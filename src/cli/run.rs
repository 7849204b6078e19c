//! `hbmark run`: measure devices, keep the document, draw, and print the table.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::output::{emit, note, width};
use super::prepare::{Ready, prepare};
use super::progress::Progress;
use super::resume::resume;
use super::{Exit, Failure};
use crate::catalog;
use crate::device::Selector;
use crate::pattern::{CacheState, Data, DeviceKind, Profile};
use crate::record::{self, DOCUMENT_NAME, Run};
use crate::report::{self, Format};
use crate::session::{self, Absent, Forms, Member, Session, SessionError, Together};

/// Arguments of `hbmark run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  hbmark run                              everything of the quick profile, on every CUDA device
  hbmark run stream --device 0            one pattern on one device
  hbmark run stream/copy/f32@8589934592   one case with arrays of 8 GiB
  hbmark run --device host -o ram         the RAM of this machine, into the folder 'ram'
  hbmark run stream/read/f32 --soak 600   and then ten minutes of it: does the card hold its bandwidth when it is hot?
  hbmark run --device all --simultaneous  each card alone, then all at once: what do they cost each other?
  hbmark run -o ram --resume              the same run again where it was broken off, or failed")]
pub struct Args {
    /// Patterns, beginnings of ids, or ids of cases; all of the profile when none is named
    #[arg(value_name = "PATTERN")]
    pub patterns: Vec<String>,
    /// An index as in nvidia-smi, a UUID, 'all', or 'host' for the RAM of this machine; several with commas between
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    pub device: Vec<Selector>,
    /// Measure the devices one after the other and then all at once; one that is named twice, in two processes
    #[arg(long, conflicts_with = "resume")]
    pub simultaneous: bool,
    /// How much to measure [default: quick]
    #[arg(long, value_enum)]
    pub profile: Option<Profile>,
    /// What the arrays hold while they are timed [default: random]
    #[arg(long, value_enum)]
    pub data: Option<Data>,
    /// What the caches hold when an execution begins [default: hot]
    #[arg(long, value_enum)]
    pub cache: Option<CacheState>,
    /// Folder for the document, charts and tables [default: hbmark-out/<card>-<UTC time>]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Complete the run in the output folder: measure what is missing, failed or was skipped there
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Work at each named case for this time without a pause, once it was measured, and keep how that went
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(10..=86_400), conflicts_with_all = ["resume", "simultaneous"])]
    pub soak: Option<u64>,
    /// Search for the best kernels anew, though an earlier run on such a card has found them
    #[arg(long)]
    pub retune: bool,
    /// Give a case up after this time, that of its soak apart [default: a minute or more, by profile and size]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub case_limit: Option<u64>,
    /// A note to keep in the document; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,
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

pub fn run(args: &Args) -> Result<Exit, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    stop_on_interrupt(&interrupted);
    let go_on = || !interrupted.load(Ordering::SeqCst);
    let prepared = if args.resume { resume(args, &go_on).map(|ready| (vec![ready], Exit::Done)) } else { prepare(args, &go_on) };
    let (all_ready, mut exit) = match prepared {
        // Ctrl-C may reach a child before it can leave that to its parent.
        Err(_) if !go_on() => return Ok(Exit::Interrupted),
        prepared => prepared?,
    };
    let case_limit = args.case_limit.map(Duration::from_secs);
    let mut measured = Vec::new();
    for mut ready in all_ready {
        // However the device before it ended.
        if !go_on() {
            note(&format!("not measured: {}{}", ready.run.device.name, which(&ready.run)));
            exit = exit.and(Exit::Interrupted);
            continue;
        }
        if let Some(seconds) = args.soak {
            note(&format!("each named case is measured, and then worked at for {seconds} s without a pause"));
        }
        exit = exit.and(measure_alone(&mut ready, case_limit, args.retune, &go_on));
        if !args.simultaneous {
            exit = exit.and(publish(&ready));
        }
        measured.push(ready);
    }
    if args.simultaneous {
        if go_on() {
            exit = exit.and(measure_together(&mut measured, case_limit, &go_on));
        } else {
            exit = exit.and(Exit::Interrupted);
        }
        exit = measured.iter().fold(exit, |exit, ready| exit.and(publish(ready)));
    }
    let runs: Vec<Run> = measured.into_iter().map(|Ready { run, held: _held, .. }| run).collect();
    if runs.is_empty() {
        return Ok(exit);
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

/// `, CUDA device 0`, after a device's name.
fn which(run: &Run) -> String {
    run.device.index.map(|index| format!(", CUDA device {index}")).unwrap_or_default()
}

/// Measures one device.
fn measure_alone(ready: &mut Ready, case_limit: Option<Duration>, retune: bool, go_on: &dyn Fn() -> bool) -> Exit {
    let Ready { device, plans, run, folder, held: _ } = ready;
    let document = folder.join(DOCUMENT_NAME);
    note(&format!("measuring {}{} ({} cases, profile {})", run.device.name, which(run), plans.len(), run.profile));
    if run.device.kind == DeviceKind::Host && cfg!(debug_assertions) {
        note("warning: this is a debug build, whose host kernels are slow; use 'cargo run --release -- run'");
    }
    if run.device.kind == DeviceKind::Cuda && catalog::of_device(&run.device).is_none() {
        note("the catalog does not know this card: it is measured all the same, without data-sheet figures");
    }
    let file = session::forms_file(&run.device.card).filter(|_| run.device.kind == DeviceKind::Cuda);
    let known = file.as_deref().filter(|_| !retune).map(Forms::load).unwrap_or_default();
    let progress = Progress::new(plans.len());
    let session = Session {
        device: device.clone(),
        plans,
        case_limit,
        forms: RefCell::new(known.clone()),
        start: &session::start,
        go_on,
        on: &|event| progress.on(event),
        save: &|run| record::save(run, &document),
    };
    let outcome = if plans.is_empty() && run.complete {
        note("nothing is left to measure: every case has its row");
        Ok(())
    } else {
        session.measure(run)
    };
    let forms = session.forms.into_inner();
    drop(progress);
    // A search that has to be done again costs seconds and no figure.
    if let (Some(file), true) = (file, forms != known)
        && let Err(error) = forms.save(&file)
    {
        note(&format!("warning: the best kernels cannot be kept in {}: {error}; the next run searches for them again", file.display()));
    }
    exit_of(outcome)
}

/// Measures devices that were measured alone at the same time.
fn measure_together(measured: &mut [Ready], case_limit: Option<Duration>, go_on: &(dyn Fn() -> bool + Sync)) -> Exit {
    note(&format!("measuring all {} at once", measured.len()));
    let progress = Progress::new(measured.iter().map(|ready| ready.plans.len()).min().unwrap_or_default());
    let mut members: Vec<Member> = Vec::new();
    for Ready { device, plans, run, folder, held: _ } in measured {
        let document = folder.join(DOCUMENT_NAME);
        let save = Box::new(move |run: &Run| record::save(run, &document));
        members.push(Member { device: device.clone(), plans, run, save });
    }
    let together = Together { case_limit, start: &session::start, go_on, on: &|event| progress.on(event) };
    let outcome = together.measure(&mut members);
    drop(progress);
    outcome.map_or_else(
        |error| exit_of(Err(error)),
        |absent| {
            absent.iter().for_each(|Absent { id, why }| note(&format!("{id}: not measured together: {why}")));
            if absent.is_empty() { Exit::Done } else { Exit::CaseFailed }
        },
    )
}

/// How a session ended, apart from what it measured.
fn exit_of(outcome: Result<(), SessionError>) -> Exit {
    match outcome {
        Ok(()) => Exit::Done,
        Err(SessionError::Interrupted(_)) => Exit::Interrupted,
        Err(SessionError::Save(error)) => {
            note(&format!("error: {error}; the rows since are missing from the document"));
            Failure::Save(error).exit()
        }
    }
}

/// Says what became of a run, and writes tables and charts beside its document.
fn publish(Ready { run, folder, .. }: &Ready) -> Exit {
    let mut exit = Exit::of(run);
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
    note(&format!("document: {}", folder.join(DOCUMENT_NAME).display()));
    match report::write(std::slice::from_ref(run), folder) {
        Ok(written) if written.files.iter().any(|file| file.extension().is_some_and(|e| e == "svg")) => {
            note(&format!("charts:   {}", folder.join(report::CHARTS).display()));
        }
        Ok(_) => {}
        Err(error) => {
            note(&format!("error: {error}"));
            exit = exit.and(Failure::Report(error).exit());
        }
    }
    exit
}
