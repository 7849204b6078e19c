//! `hbmark run --resume`: what is there stays, what is missing or failed is measured, and what is
//! of another device or program is refused.

mod common;

use std::path::Path;

use assert_cmd::Command;
use common::{hbmark, hbmark_on_fake, small_run, text};
use hbmark::record::{self, Run, Status};

const CASES: [&str; 4] = ["stream/write/f32", "copy_engine/d2d", "copy_engine/d2d@1048576", "copy_engine/d2d@2097152"];

fn fake_run(settings: &[(&str, &str)], cases: &[&str], out: &Path) -> Run {
    hbmark_on_fake(settings).arg("run").args(cases).arg("-o").arg(out).output().expect("the program starts");
    record::load(out).unwrap_or_else(|error| panic!("{error}"))
}

fn resume(mut command: Command, out: &Path) -> Command {
    command.args(["run", "--resume", "-o"]).arg(out);
    command
}

fn statuses(run: &Run) -> Vec<Status> {
    run.measurements.iter().map(|row| row.status).collect()
}

#[test]
fn failed_and_skipped_cases_are_measured_and_the_others_stay_as_they_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let before = fake_run(&[("FAKE_FAULT", "cuMemcpyDtoDAsync_v2 1 719")], &CASES, &out);
    assert_eq!(statuses(&before), [Status::Ok, Status::Error, Status::Error, Status::Skipped]);
    resume(hbmark_on_fake(&[]), &out).assert().code(0).stdout(predicates::str::contains("copy_engine/d2d@2097152"));
    let after = record::load(&out).expect("the document loads");
    assert_eq!(statuses(&after), [Status::Ok; 4]);
    assert_eq!(after.measurements.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), CASES);
    assert_eq!(after.measurements[0], before.measurements[0]);
    assert_eq!((after.complete, &after.started_at), (true, &before.started_at));
    assert!(after.finished_at.is_some());
}

#[test]
fn a_complete_run_has_nothing_left_and_its_document_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    fake_run(&[], &CASES[..1], &out);
    let before = std::fs::read(out.join("run.json")).expect("the document");
    resume(hbmark_on_fake(&[]), &out).assert().code(0).stderr(predicates::str::contains("nothing is left to measure"));
    assert_eq!(std::fs::read(out.join("run.json")).expect("the document"), before);
}

#[test]
fn a_peak_of_the_document_is_not_measured_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    small_run(&out, &["stream/triad/f32@1048576"]).assert().code(0);
    let whole = record::load(&out).expect("the document loads");
    let mut cut = whole.clone();
    cut.measurements.truncate(1);
    cut.complete = false;
    record::save(&cut, &out.join("run.json")).expect("the document can be written");
    resume(hbmark(), &out).assert().code(0);
    let run = record::load(&out).expect("the document loads");
    assert_eq!(run.measurements[0], whole.measurements[0]);
    assert_eq!(run.peaks, whole.peaks);
    assert!(run.complete && run.measurements[1].compute_utilization.is_some_and(|u| u > 0.0));
}

#[test]
fn names_add_cases_to_a_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    fake_run(&[], &CASES[..1], &out);
    resume(hbmark_on_fake(&[]), &out).arg("stream/write/f32@1048576").assert().code(0);
    let run = record::load(&out).expect("the document loads");
    assert_eq!(run.measurements.len(), 2);
    assert_eq!(run.cases, [CASES[0], "stream/write/f32@1048576"]);
}

#[test]
fn without_a_document_there_is_nothing_to_resume() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    resume(hbmark(), folder.path()).assert().code(2).stderr(predicates::str::contains("there is no run to complete"));
    hbmark().args(["run", "--resume"]).assert().code(2).stderr(predicates::str::contains("--output"));
}

#[test]
fn the_run_of_another_device_is_refused_with_both_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let settings = [("FAKE_DEVICES", "2")];
    hbmark_on_fake(&settings).args(["run", CASES[0], "--device", "0", "-o"]).arg(&out).assert().code(0);
    let says = text(&resume(hbmark_on_fake(&settings), &out).args(["--device", "1"]).assert().code(2).get_output().stderr);
    assert!(says.contains("(GPU-00000000-") && says.contains("(GPU-01010101-"), "{says}");
    resume(hbmark_on_fake(&settings), &out).args(["--device", "host"]).assert().code(2);
    resume(hbmark_on_fake(&settings), &out).args(["--device", "all"]).assert().code(2).stderr(predicates::str::contains("one device"));
    resume(hbmark_on_fake(&settings), &out).assert().code(0);
}

#[test]
fn a_run_of_another_suite_profile_or_build_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let run = fake_run(&[], &CASES[..1], &out);
    let other_build = if run.program.build == "debug" { "release" } else { "debug" };
    for (other, why) in [
        (Run { suite_version: "0".into(), ..run.clone() }, "suite version 0"),
        (Run { program: record::Program { build: other_build.into(), ..run.program.clone() }, ..run.clone() }, "build"),
    ] {
        record::save(&other, &out.join("run.json")).expect("the document can be written");
        resume(hbmark_on_fake(&[]), &out).assert().code(2).stderr(predicates::str::contains(why));
    }
    record::save(&run, &out.join("run.json")).expect("the document can be written");
    let other = resume(hbmark_on_fake(&[]), &out).args(["--profile", "full"]).assert().code(2).get_output().stderr.clone();
    assert!(text(&other).contains("profile is quick"), "{}", text(&other));
}
