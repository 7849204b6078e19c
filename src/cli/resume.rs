//! Before a run is completed: is it this device's, this suite's, and what is missing?

use super::Failure;
use super::exit::check_plans;
use super::prepare::{Ready, name_of};
use super::run::Args;
use crate::device::{self, Selector};
use crate::pattern::{CaseId, DeviceKind, select};
use crate::record::{self, DOCUMENT_NAME, Device, Program, Run, SCHEMA_VERSION, SUITE_VERSION, Status};
use crate::report::{self, ReportError};
use crate::session::{self, Plans};

/// The run whose document is in the output folder, with what it still has to measure: the cases
/// without a row, and those whose row is `error`, `timeout` or `skipped`. Names on the command
/// line add to its cases.
pub fn resume(args: &Args, go_on: &dyn Fn() -> bool) -> Result<Ready, Failure> {
    let folder = args.output.clone().unwrap_or_default();
    let document = folder.join(DOCUMENT_NAME);
    if !document.is_file() {
        return Err(Failure::Usage(format!(
            "{} holds no {DOCUMENT_NAME}, so there is no run to complete; leave out --resume to begin one",
            folder.display()
        )));
    }
    if let Some(path) = report::foreign(&folder) {
        return Err(ReportError::Foreign { path }.into());
    }
    let held = record::hold(&folder)?;
    let mut run = record::load(&document)?;
    let refuse = |why: String| Failure::Usage(format!("{} cannot be completed: {why}", document.display()));
    if let Some(why) = other_program(&run, args) {
        return Err(refuse(why));
    }

    let selected = match &args.device[..] {
        [] => device::list(&selector(&run.device))?.0,
        wishes => device::list_all(wishes)?.0,
    };
    let [one] = selected[..] else {
        return Err(refuse("a run has one device: name it, or leave out --device".into()));
    };
    let name = name_of(one);
    let (identity, facts) = session::probe(&name, go_on)?;
    if !same(&identity, &run.device) {
        return Err(refuse(format!("it is of {}, and this is {}", who(&run.device), who(&identity))));
    }

    let mut ids: Vec<CaseId> = run.cases.iter().map(|id| CaseId::new(id)).collect();
    if ids.is_empty() || !args.patterns.is_empty() {
        let named = select(&args.patterns, run.profile, &facts)?;
        ids.extend(named.into_iter().filter(|id| !run.cases.contains(&id.to_string())));
    }
    let mut plans = Plans::new(&ids, &facts);
    check_plans(&plans, &args.patterns)?;
    run.cases = plans.ids();
    plans.retain(|id| !run.measurements.iter().any(|row| row.id == id && is_kept(row.status)));
    if !plans.is_empty() {
        (run.complete, run.finished_at) = (false, None);
        run.schema_version = SCHEMA_VERSION.into();
    }
    run.labels.extend(args.label.iter().cloned());
    Ok(Ready { device: identity.uuid.unwrap_or(name), plans, run, folder, held })
}

fn is_kept(status: Status) -> bool {
    !matches!(status, Status::Error | Status::Timeout | Status::Skipped)
}

/// Why rows of this program would be other measurements than those of the document.
fn other_program(run: &Run, args: &Args) -> Option<String> {
    let build = Program::this().build;
    if run.suite_version != SUITE_VERSION {
        Some(format!("it is of suite version {}, and this program measures version {SUITE_VERSION}", run.suite_version))
    } else if args.profile.is_some_and(|profile| profile != run.profile) {
        Some(format!("its profile is {}: use '--profile {}', or leave the option out", run.profile, run.profile))
    } else if args.data.is_some_and(|data| data != run.data) {
        Some(format!("its arrays hold {} data: use '--data {}', or leave the option out", run.data, run.data))
    } else if args.cache.is_some_and(|cache| cache != run.cache) {
        Some(format!("its caches were {}: use '--cache {}', or leave the option out", run.cache, run.cache))
    } else if run.program.build != build {
        Some(format!("a {} build measured it, and this is a {build} build", run.program.build))
    } else {
        None
    }
}

/// Where to look for the device of a document.
fn selector(device: &Device) -> Selector {
    match (device.kind, &device.uuid, device.index) {
        (DeviceKind::Host, ..) => Selector::Host,
        (DeviceKind::Cuda, Some(uuid), _) => Selector::Uuid(uuid.clone()),
        (DeviceKind::Cuda, None, index) => Selector::Index(index.unwrap_or_default()),
    }
}

/// Whether two descriptions are of one device; a host, which has no unique id, goes by its processor.
fn same(a: &Device, b: &Device) -> bool {
    a.kind == b.kind && a.uuid == b.uuid && (a.uuid.is_some() || (&a.name, a.units) == (&b.name, b.units))
}

fn who(device: &Device) -> String {
    match &device.uuid {
        Some(uuid) => format!("{} ({uuid})", device.name),
        None => format!("{} ({} threads)", device.name, device.units),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200, host};

    #[test]
    fn a_device_is_told_by_its_uuid_and_a_host_by_its_processor() {
        let gpu = |uuid: &str| Device { uuid: Some(uuid.into()), ..h200().device };
        assert!(same(&gpu("GPU-1"), &gpu("GPU-1")));
        assert!(!same(&gpu("GPU-1"), &gpu("GPU-2")));
        assert!(same(&host().device, &host().device));
        assert!(!same(&host().device, &Device { units: 64, ..host().device }));
        assert!(!same(&host().device, &gpu("GPU-1")));
    }

    #[test]
    fn only_rows_that_say_something_of_the_device_are_kept() {
        for (status, kept) in [
            (Status::Ok, true),
            (Status::Unsupported, true),
            (Status::Unknown, true),
            (Status::Error, false),
            (Status::Timeout, false),
            (Status::Skipped, false),
        ] {
            assert_eq!(is_kept(status), kept, "{status:?}");
        }
    }
}
