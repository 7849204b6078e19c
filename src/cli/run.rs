//! `hbmark run`: measure devices, keep the document, draw, and print the table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::check_plans;
use super::progress::Progress;
use super::{Exit, Failure, output::emit};
use crate::device::{self, Device, Selected, Selector, machine};
use crate::measure::{self, Plans, SessionError};
use crate::pattern::{DeviceKind, Profile, select};
use crate::record::{self, DOCUMENT_NAME, Missing, Peak, Peaks, Program, Provenance, Run};
use crate::report::{self, Format};

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
        eprintln!("{why}");
    }
    let several = selected.len() > 1;
    let interrupted = Arc::new(AtomicBool::new(false));
    stop_on_interrupt(&interrupted);
    let mut exit = Exit::Done;
    for one in selected {
        let outcome = prepare(args, one, several).and_then(|ready| measure_one(args, ready, &interrupted));
        exit = exit.and(match outcome {
            Ok(exit) => exit,
            // One device of several that cannot be measured does not keep the others from it.
            Err(failure) if several => {
                eprintln!("error: {one}: {failure}");
                failure.exit()
            }
            Err(failure) => return Err(failure),
        });
        if exit == Exit::Interrupted {
            break;
        }
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
        eprintln!("interrupted: ending after the current sample");
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("warning: Ctrl-C will end the program at once: {error}");
    }
}

fn prepare(args: &Args, selected: Selected, several: bool) -> Result<Ready, Failure> {
    let device = device::open(selected)?;
    let facts = device.facts()?;
    let ids = select(&args.patterns, args.profile, facts.kind)?;
    let plans = Plans::new(&ids, &facts);
    check_plans(&plans)?;
    let identity = device.identity()?;
    let started_at = record::now();
    let folder = folder(args, &identity, &started_at, several);
    let run = Run {
        schema_version: record::SCHEMA_VERSION.into(),
        suite_version: record::SUITE_VERSION.into(),
        program: Program::this(),
        started_at,
        finished_at: None,
        complete: false,
        profile: args.profile,
        host: machine::host(),
        labels: args.label.iter().cloned().collect::<BTreeMap<_, _>>(),
        peaks: peaks(&identity),
        device: identity,
        measurements: Vec::new(),
    };
    claim(&folder)?;
    record::save(&run, &folder.join(DOCUMENT_NAME))?;
    Ok(Ready { device, plans, run, folder })
}

fn folder(args: &Args, device: &record::Device, started_at: &str, several: bool) -> PathBuf {
    let index = match device.index {
        Some(index) if several => format!("-{index}"),
        _ => String::new(),
    };
    match &args.output {
        Some(chosen) if several => chosen.join(format!("{}{index}", device.card)),
        Some(chosen) => chosen.clone(),
        None => {
            let time: String = started_at.chars().filter(|c| *c != '-' && *c != ':').collect();
            Path::new("hbmark-out").join(format!("{}{index}-{time}", device.card))
        }
    }
}

/// Makes the folder, unless a run is in it already: nothing measured is overwritten.
fn claim(folder: &Path) -> Result<(), Failure> {
    if folder.join(DOCUMENT_NAME).exists() {
        return Err(Failure::Usage(format!(
            "{} holds a run already, which stays as it is; choose another folder with -o",
            folder.display()
        )));
    }
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::Usage(format!("cannot make the folder {}: {error}; nothing was measured, choose another with -o", folder.display()))
    })
}

/// The theoretical peak: two transfers a clock over the whole bus.
fn peaks(device: &record::Device) -> Peaks {
    let mut peaks = Peaks::default();
    match (device.memory.clock_mhz, device.memory.bus_width_bits) {
        (Some(mhz), Some(bits)) => {
            let gbps = 2.0 * mhz * f64::from(bits) / 8.0 / 1e3;
            peaks.memory_gbps.push(Peak { value: gbps, provenance: Provenance::DeviceAttributes });
        }
        _ => {
            let reason = match device.kind {
                DeviceKind::Host => "the operating system does not tell the clock and width of the memory",
                DeviceKind::Cuda => "the driver does not tell the clock and width of the memory",
            };
            peaks.missing = Missing::from([("memory_gbps".to_owned(), reason.to_owned())]);
        }
    }
    peaks
}

fn measure_one(args: &Args, ready: Ready, interrupted: &AtomicBool) -> Result<Exit, Failure> {
    let Ready { mut device, plans, mut run, folder } = ready;
    let document = folder.join(DOCUMENT_NAME);
    eprintln!("measuring {} ({} cases, profile {})", run.device.name, plans.len(), run.profile);
    if run.device.kind == DeviceKind::Host && cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build, whose host kernels are slow; use 'cargo run --release -- run'");
    }
    let progress = Progress::new(plans.len());
    let outcome =
        measure::run(device.as_mut(), &plans, &mut run, &|| !interrupted.load(Ordering::SeqCst), &mut |event| progress.on(event), &|run| {
            record::save(run, &document)
        });
    drop(progress);
    let exit = match outcome {
        Ok(()) => Exit::of(&run),
        Err(SessionError::Interrupted(_)) => Exit::Interrupted,
        Err(SessionError::Save(error)) => return Err(error.into()),
    };
    let runs = [run];
    emit(&report::render(&runs, args.format)?)?;
    let written = report::write(&runs, &folder)?;
    eprintln!("document: {}", document.display());
    if let Some(charts) = written.files.iter().find(|file| file.extension().is_some_and(|e| e == "svg")).and_then(|file| file.parent()) {
        eprintln!("charts:   {}", charts.display());
    }
    for row in runs[0].measurements.iter().filter(|row| row.reason.is_some()) {
        eprintln!("{}: {}", row.id, row.reason.as_deref().unwrap_or_default());
    }
    Ok(exit)
}
