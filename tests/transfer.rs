//! Copies over the link, on a fake driver.
#![cfg(target_os = "linux")]

mod common;

use std::path::Path;

use common::{hbmark, hbmark_on_fake, text};
use hbmark::pattern::Level;
use hbmark::record::{self, Run, Status};

const CASES: [&str; 6] = [
    "transfer/h2d/pinned@1048576",
    "transfer/h2d/pageable@1048576",
    "transfer/d2h/pinned@1048576",
    "transfer/d2h/pageable@1048576",
    "transfer/both/pinned@1048576",
    "transfer/both/pageable@1048576",
];

fn run(settings: &[(&str, &str)], out: &Path, code: i32) -> Run {
    let output = hbmark_on_fake(settings).arg("run").args(CASES).arg("-o").arg(out).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    record::load(out).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn copies_in_each_direction_and_in_both_are_timed_and_verified() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = run(&[], &folder.path().join("out"), 0);
    let call = |id: &str| {
        let row = run.measurements.iter().find(|row| row.id == id).expect("a row");
        assert_eq!((row.status, row.verified, row.level), (Status::Ok, Some(true), Some(Level::Mixed)), "{row:?}");
        assert_eq!((row.fraction_of_peak, row.bytes.map(|bytes| bytes.requested_write)), (None, Some(0)));
        row.variant["call"].as_str().expect("a text").to_owned()
    };
    let calls = CASES.map(call);
    assert_eq!(calls[0..2], ["cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync"]);
    assert_eq!(calls[2..4], ["cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync"]);
    assert_eq!(calls[4..6], ["cuMemcpyHtoDAsync + cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync + cuMemcpyDtoHAsync"]);
}

#[test]
fn wrong_words_at_either_end_of_the_link_are_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Of a MiB in one direction, 262144 words are compared; of both, twice as many.
    for (compared, wrong) in [("262144", &CASES[..4]), ("524288", &CASES[4..])] {
        let run = run(&[("FAKE_WRONG", &format!("{compared} 3 7"))], &folder.path().join(compared), 4);
        let found: Vec<&str> = run.measurements.iter().filter(|row| row.mismatches == Some(3)).map(|row| row.id.as_str()).collect();
        assert_eq!(found, wrong);
    }
}

#[test]
fn a_copy_that_fails_in_one_direction_ends_the_case_and_not_the_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let once = folder.path().join("once");
    // Of both at once, this call is made by a thread of its own.
    let settings = [("FAKE_FAULT", "cuMemcpyDtoHAsync_v2 10 1"), ("FAKE_ONCE", once.to_str().expect("a path"))];
    let output = hbmark_on_fake(&settings).args(["run", CASES[5], CASES[4], "-o"]).arg(&out).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let run = record::load(&out).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(run.measurements.iter().map(|row| row.status).collect::<Vec<_>>(), [Status::Error, Status::Ok]);
    assert!(
        run.measurements[0].reason.as_deref().is_some_and(|why| why.contains("the copy engine failed")),
        "{:?}",
        run.measurements[0].reason
    );
}

#[test]
fn a_host_is_told_why_it_has_none() {
    hbmark()
        .args(["run", "transfer/h2d/pinned", "--device", "host", "-o"])
        .arg(tempfile::tempdir().expect("a folder").path().join("out"))
        .assert()
        .code(2)
        .stderr(predicates::str::contains("does not run on a host"));
}
