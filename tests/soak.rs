//! `hbmark run CASE --soak SECONDS`: on a fake card, whose clock runs as fast as it is asked to work.

mod common;

use std::path::Path;

use common::{document, hbmark, hbmark_on_fake, text, unexplained};
use hbmark::record::{self, Run, Status};

/// A copy that takes 50 ms of the fake card's clock, so that a soak takes some thousand calls.
fn soak(settings: &[(&str, &str)], out: &Path) -> assert_cmd::Command {
    let mut command = hbmark_on_fake(&[&[("FAKE_LAUNCH_MS", "50")], settings].concat());
    command.args(["run", "copy_engine/d2d", "--soak", "60", "-o"]).arg(out);
    command
}

fn load(folder: &Path) -> Run {
    record::load(folder).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_soaked_row_keeps_its_own_figures_and_how_it_went_in_document_tables_and_chart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = soak(&[], folder.path()).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(unexplained(&document(folder.path())), [""; 0]);
    let run = load(folder.path());
    let row = run.measurements.iter().find(|row| row.id == "copy_engine/d2d").expect("a row");
    let soak = row.soak.as_ref().expect("a soak");
    assert!(row.is_sound() && (60.0..60.5).contains(&soak.run_s), "{}", soak.run_s);
    assert_eq!((soak.asked_s, soak.last_over_first_fraction), (60, Some(1.0)));
    assert!((100..=120).contains(&soak.intervals.len()), "{}", soak.intervals.len());
    assert!((soak.first_10_s_gbps / row.achieved_gbps.expect("GB/s") - 1.0).abs() < 1e-9);
    // This card has no sensors.
    assert!(soak.joules_per_gb.is_none() && soak.missing.contains_key("intervals.temperature_gpu_c"));
    let printed = text(&output.stdout);
    assert!(printed.contains("\nsoak\n") && printed.contains("100.00"), "{printed}");
    let summary = std::fs::read_to_string(folder.path().join("summary.md")).expect("a summary");
    assert!(summary.contains("## Soak") && summary.contains("charts/soak.svg"), "{summary}");
}

#[test]
fn sensors_that_a_card_has_are_read_over_the_whole_soak() {
    if cfg!(target_os = "linux") {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = common::hbmark_on_fake_card(&[("FAKE_LAUNCH_MS", "50"), ("FAKE_NVML_REASONS", "4")]);
        command.args(["run", "copy_engine/d2d", "--soak", "20", "-o"]).arg(folder.path()).assert().code(0);
        let run = load(folder.path());
        let soak = run.measurements[0].soak.as_ref().expect("a soak");
        assert_eq!((soak.power_mean_w, soak.temperature_memory_max_c, soak.throttled_fraction), (Some(600.0), Some(52.0), Some(1.0)));
        assert_eq!(soak.throttle_reasons.as_ref().expect("reasons")["SwPowerCap"], 1.0);
    }
}

#[test]
fn a_card_that_is_lost_in_a_soak_is_a_row_with_the_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Far beyond what the measurement alone asks for.
    soak(&[("FAKE_FAULT", "cuMemcpyDtoDAsync_v2 600 719")], folder.path()).assert().code(7);
    let run = load(folder.path());
    assert_eq!((run.measurements[0].status, run.measurements[0].soak.is_none()), (Status::Error, true));
    assert!(run.measurements[0].reason.as_ref().is_some_and(|why| why.contains("719")), "{:?}", run.measurements[0].reason);
}

#[test]
fn a_card_that_hangs_in_a_soak_is_found_after_the_limit_of_the_case_and_not_after_that_of_the_soak() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    soak(&[("FAKE_FAULT", "cuMemcpyDtoDAsync_v2 600 hang")], folder.path()).args(["--case-limit", "2"]).assert().code(7);
    assert_eq!(load(folder.path()).measurements[0].status, Status::Timeout);
}

#[test]
fn what_cannot_be_soaked_is_refused_with_what_to_do_before_anything_is_measured() {
    for (arguments, says) in [
        (&["--soak", "60"][..], "name them"),
        (&["stream", "--soak", "3000"], "name the cases by their ids"),
        (&["latency/chase/16384", "--soak", "60"], "measures a latency"),
        (&["stream/read/f32", "--soak", "60", "--cache", "cold"], "'--cache cold'"),
        (&["stream/read/f32", "--soak", "60", "--resume", "-o", "out"], "'--resume'"),
        (&["stream/read/f32", "--soak", "60", "--simultaneous"], "'--simultaneous'"),
        (&["stream/read/f32", "--soak", "9"], "10..=86400"),
        (&["stream/read/f32", "--soak", "86401"], "10..=86400"),
    ] {
        let refused = hbmark().arg("run").args(arguments).args(["--device", "host"]).assert().code(2).stdout("");
        refused.stderr(predicates::str::contains(says)).stderr(predicates::str::contains("--soak"));
    }
}
