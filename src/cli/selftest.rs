//! `hbmark selftest`: proves on a device that its results are right and that wrong ones are seen.

use super::output::{emit, note};
use super::{Exit, Failure};
use crate::device::{self, Selector};
use crate::measure::{Fault, Outcome, with_fault, wrong_ways};
use crate::pattern::{self, CaseId, PATTERNS, PlanError};

/// Arguments of `hbmark selftest`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  hbmark selftest --device 0     every kernel at a small, awkward size; then the same with faults put in")]
pub struct Args {
    /// An index as in nvidia-smi, a UUID, 'all', or 'host' for the RAM of this machine
    #[arg(long, value_name = "DEVICE")]
    device: Option<Selector>,
}

pub fn run(args: &Args) -> Result<Exit, Failure> {
    let (selected, why) = device::list(args.device.as_ref().unwrap_or(&Selector::Default))?;
    if let Some(why) = why {
        note(&why);
    }
    let mut exit = Exit::Done;
    for one in selected {
        let mut device = device::open(one)?;
        let facts = device.facts()?;
        let mut text = format!("{}\n{:<36} {:>6}", device.identity()?.name, "case", "right");
        Fault::ALL.iter().for_each(|fault| text += &format!("  {:>15}", fault.name()));
        text += "\n";
        for id in PATTERNS.iter().flat_map(|pattern| pattern.trials()) {
            let case = match pattern::plan(&CaseId::new(id), &facts) {
                Err(PlanError::Unsupported(_)) => continue,
                case => case.map_err(Failure::Plan)?,
            };
            let wrong = wrong_ways(&case, device.as_mut())?;
            for form in &wrong {
                note(&format!("{id}: wrong results of the form {form:?}"));
            }
            let right = with_fault(&case, device.as_mut(), None)? == Outcome::Right && wrong.is_empty();
            text += &format!("{id:<36} {:>6}", if right { "yes" } else { "NO" });
            let mut good = right;
            for fault in Fault::ALL {
                let outcome = with_fault(&case, device.as_mut(), Some(fault))?;
                good &= outcome != Outcome::Right;
                let word = match outcome {
                    Outcome::Wrong => "seen",
                    Outcome::Right => "NOT SEEN",
                    Outcome::NotApplicable => "-",
                };
                text += &format!("  {word:>15}");
            }
            text += "\n";
            if !good {
                exit = Exit::WrongData;
            }
        }
        emit(&text)?;
    }
    Ok(exit)
}
