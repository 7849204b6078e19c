//! `hbmark run` on the host device.

mod common;

use std::time::{Duration, Instant};

use common::{document, hbmark, small_run, text, unexplained};
use hbmark::record::{self, Status, Verdict};

#[test]
fn a_run_leaves_a_document_charts_and_tables() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let cases = ["stream/copy/f32@1048576", "stream/triad/f32@1048576", "stride/read/256@1048576", "conv3d/direct/f32/1x16"];
    let output = small_run(&out, &cases).args(["--label", "rack=b12"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("stream/copy/f32@1048576"));
    let run = record::load(&out).expect("the document loads");
    assert!(run.complete && run.finished_at.is_some());
    assert_eq!(run.labels["rack"], "b12");
    for row in &run.measurements {
        assert_eq!((row.status, row.verdict, row.verified), (Status::Ok, Some(Verdict::Ok), Some(true)), "{}", row.id);
        assert!(row.achieved_gbps.is_some_and(|g| g > 0.0) && row.compute_utilization.is_some(), "{}", row.id);
    }
    for file in ["summary.md", "measurements.csv"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    assert!(std::fs::read_dir(out.join("charts")).expect("a folder of charts").count() > 0);
}

#[test]
fn the_compute_peak_comes_first_even_when_not_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    small_run(&out, &["stream/triad/f32@1048576"]).assert().code(0);
    let run = record::load(&out).expect("the document loads");
    assert_eq!(run.measurements[0].id, "compute/fma/f32");
    assert!(run.peaks.compute_measured_gflops("fma/f32").is_some());
    let triad = &run.measurements[1];
    assert!(triad.compute_utilization.is_some_and(|u| u > 0.0 && u < 1.0));
}

#[test]
fn every_null_field_of_a_document_has_a_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    small_run(&out, &["stream/copy/f32@1048576"]).assert().code(0);
    assert_eq!(unexplained(&document(&out)), [""; 0]);
}

#[test]
fn a_mistyped_pattern_is_refused_with_the_nearest_name() {
    hbmark()
        .args(["run", "strem", "--device", "host"])
        .assert()
        .code(2)
        .stderr(predicates::str::contains("did you mean 'stream'?"))
        .stdout("");
}

#[test]
fn a_mistyped_device_is_refused_with_the_nearest_name() {
    hbmark().args(["run", "--device", "hots"]).assert().code(2).stderr(predicates::str::contains("did you mean 'host'?"));
}

#[test]
fn a_size_that_does_not_fit_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    small_run(&out, &["stream/copy/f32@4611686018427387904"]).assert().code(2).stderr(predicates::str::contains("smaller size"));
    assert!(!out.exists());
}

#[test]
fn a_stride_that_cannot_be_is_refused_with_one_that_can() {
    for (case, cure) in [("stride/read/48", "64 would be"), ("stride/copy/8192@4096", "@8192 would be")] {
        hbmark().args(["run", case, "--device", "host"]).assert().code(2).stderr(predicates::str::contains(cure)).stdout("");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_found_out_before_measuring() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").expect("a file in the temporary folder");
    small_run(&file.join("out"), &["stream/copy/f32@1048576"])
        .assert()
        .code(2)
        .stderr(predicates::str::contains("nothing was measured"))
        .stdout("");
}

#[test]
fn a_run_is_never_overwritten() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    small_run(&out, &["stream/copy/f32@1048576"]).assert().code(0);
    let before = std::fs::read(out.join("run.json")).expect("a document");
    small_run(&out, &["stream/copy/f32@1048576"]).assert().code(2).stderr(predicates::str::contains("is there already"));
    assert_eq!(std::fs::read(out.join("run.json")).expect("a document"), before);
}

#[test]
fn a_folder_with_other_files_of_a_reports_names_is_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("summary.md"), "mine").expect("a file in the temporary folder");
    small_run(folder.path(), &["stream/copy/f32@1048576"]).assert().code(2).stderr(predicates::str::contains("summary.md"));
    assert_eq!(std::fs::read_to_string(folder.path().join("summary.md")).expect("the file"), "mine");
    assert!(!folder.path().join("run.json").exists());
}

#[test]
fn nobody_reading_standard_error_stops_no_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("hbmark"))
        .args(["run", "stream/copy/f32@1048576", "--device", "host", "-o"])
        .arg(&out)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("the program ends").code(), Some(0));
    assert!(record::load(&out).expect("the document loads").complete);
}

#[test]
fn of_runs_that_choose_one_folder_one_wins_and_none_is_overwritten() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let codes: Vec<Option<i32>> = std::thread::scope(|scope| {
        let start = || scope.spawn(|| small_run(&out, &["stream/copy/f32@1048576"]).output().expect("the program starts").status.code());
        let runs: Vec<_> = (0..4).map(|_| start()).collect();
        runs.into_iter().map(|run| run.join().expect("the run ends")).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == Some(2)).count(), 3, "{codes:?}");
}

#[test]
fn one_case_has_one_spelling() {
    for id in
        ["stream/copy/f32@04096", "stream/copy/f32@+4096", "stride/read/04", "conv3d/direct/f32/01x16", "conv3d/direct/f32/1x16@8x8x08"]
    {
        hbmark().args(["run", id, "--device", "host"]).assert().code(2);
    }
}

#[test]
fn a_label_without_a_key_is_refused() {
    hbmark().args(["run", "--label", "=x", "--device", "host"]).assert().code(2).stderr(predicates::str::contains("key=value"));
}

#[test]
fn every_format_prints_the_rows() {
    for format in ["table", "json", "csv", "markdown"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        small_run(&folder.path().join("out"), &["stream/copy/f32@1048576"])
            .args(["--format", format])
            .assert()
            .code(0)
            .stdout(predicates::str::contains("stream/copy/f32@1048576"));
    }
}

/// The document must load at any moment; this asks for it as soon as it is there.
#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_the_finished_cases() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("hbmark"))
        .args(["run", "stride", "stream", "--profile", "full", "--device", "host", "-o"])
        .arg(&out)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    let finished = || record::load(&out).map(|run| run.measurements.len()).unwrap_or(0);
    while finished() == 0 {
        assert!(Instant::now() < deadline, "no case was finished in a minute");
        // Polled, not timed: the test waits for a fact, and leaves the cores to the run.
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    assert_eq!(child.wait().expect("the program ends").code(), Some(130));
    let run = record::load(&out).expect("the document loads");
    assert!(!run.complete && run.finished_at.is_none());
    assert!(!run.measurements.is_empty() && run.measurements.iter().all(|row| row.status == Status::Ok));
}
