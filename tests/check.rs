//! `hbmark check`, on documents of this program and of others.

mod common;

use std::path::Path;

use common::{documents, hbmark, recorded, root, text};
use serde_json::{Value, json};

/// The exit code of `check` and what it prints of one document.
fn check(document: &Value) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("run.json");
    std::fs::write(&file, document.to_string()).expect("a file in the temporary folder");
    let output = hbmark().arg("check").arg(folder.path()).output().expect("the program starts");
    (output.status.code(), text(&output.stdout))
}

/// A document with only what another program knows of an RTX 4090: its peak, its cache, and one row.
fn foreign(row: Value) -> Value {
    json!({
        "schema_version": "1.0.0",
        "device": { "memory": { "cache_bytes": 72 << 20 } },
        "peaks": { "memory_gbps": [{ "value": 1008.0, "provenance": "datasheet" }] },
        "measurements": [row],
    })
}

fn published() -> Value {
    let file = root().join("results/h200-sxm-141gb/2026-12-01-f8ea0d3d.json");
    serde_json::from_slice(&std::fs::read(file).expect("a published run")).expect("JSON")
}

#[test]
fn of_every_document_of_the_repository_nothing_but_marks_is_found() {
    let output = hbmark().arg("check").args(documents()).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let said = text(&output.stdout);
    let (last, findings) =
        said.lines().rev().collect::<Vec<_>>().split_first().map(|(last, rest)| (*last, rest.to_vec())).expect("a last line");
    assert!(last.starts_with(&format!("{} documents, ", documents().len())), "{last}");
    for finding in findings {
        assert!(["unstable:", "throttled:", "shared:"].iter().any(|mark| finding.contains(mark)), "{finding}");
    }
}

#[test]
fn more_than_the_bus_can_carry_in_another_programs_figures_is_implausible() {
    let (code, out) = check(&foreign(json!({ "id": "copy", "achieved_gbps": 3868.0 })));
    assert!(code == Some(5) && out.contains(": copy: above_peak: 3868 GB/s, and the memory can carry 1008 GB/s"), "{out}");
    let bytes = json!({ "id": "copy", "bytes": { "requested_read": 1u64 << 32 }, "time_ns": { "median": 1e6 } });
    let (code, out) = check(&foreign(bytes));
    assert!(code == Some(5) && out.contains("above_peak: 4295 GB/s"), "{out}");
}

/// Elements 4 bytes each, read and written: https://github.com/mli/transformers-benchmarks/issues/4, where an RTX 4090 with
/// 1008 GB/s and 72 MiB of L2 seemed to beat an A800.
#[test]
fn figures_that_grow_with_arrays_which_fit_the_cache_are_not_the_memorys() {
    for (elements, gbps) in [(65_536, 196.343), (262_144, 792.595), (1_048_576, 2590.594), (4_194_304, 3868.374)] {
        let row =
            json!({ "id": "mul", "bytes": { "requested_read": 4 * elements, "requested_write": 4 * elements }, "achieved_gbps": gbps });
        let (code, out) = check(&foreign(row));
        assert!(code == Some(5) && out.contains(": mul: cache_resident: ") && !out.contains("above_peak"), "{out}");
    }
}

/// https://github.com/RRZE-HPC/gpu-benches/issues/6: 2^20 doubles an array on an RTX 4060 Ti with 288 GB/s and 32 MiB of L2.
#[test]
fn a_smaller_buffer_that_is_faster_than_the_memory_is_the_caches() {
    let array = 8 << 20;
    let row = json!({ "id": "scale", "bytes": { "requested_read": array, "requested_write": array }, "achieved_gbps": 697.0 });
    let mut document = foreign(row);
    document["peaks"]["memory_gbps"][0]["value"] = json!(288.0);
    document["device"]["memory"]["cache_bytes"] = json!(32 << 20);
    let (code, out) = check(&document);
    assert!(code == Some(5) && out.contains("scale: cache_resident: 697 GB/s, and the memory can carry 288 GB/s"), "{out}");
}

#[test]
fn a_peak_that_counts_twice_what_the_data_sheet_promises_is_named_with_both() {
    let mut document = foreign(json!({ "id": "copy", "achieved_gbps": 1400.0, "verified": true }));
    document["peaks"]["memory_gbps"] =
        json!([{ "value": 3110.4, "provenance": "device-attributes" }, { "value": 1555.0, "provenance": "datasheet" }]);
    let (_, out) = check(&document);
    assert!(out.contains("-: unsound_peak: 3110 GB/s by the device's attributes and 1555 GB/s by the data sheet"), "{out}");
}

#[test]
fn a_plausible_row_that_nobody_verified_is_told_and_leaves_0() {
    let (code, out) = check(&foreign(json!({ "id": "copy", "achieved_gbps": 930.0 })));
    assert!(code == Some(0) && out.contains("not_verified") && out.ends_with("1 document, 1 finding\n"), "{out}");
}

#[test]
fn a_row_whose_figure_was_raised_by_hand_does_not_add_up() {
    let mut run = published();
    run["measurements"][1]["achieved_gbps"] = json!(4700.0);
    let (code, out) = check(&run);
    assert!(code == Some(5) && out.contains("stream/read/f32: does_not_add_up: 4700 GB/s achieved"), "{out}");
}

#[test]
fn a_row_whose_time_was_lowered_with_its_figure_does_not_add_up_with_its_samples() {
    let mut run = published();
    let row = &mut run["measurements"][1];
    for (field, factor) in [("/time_ns/median", 0.98), ("/achieved_gbps", 1.0 / 0.98)] {
        let value = row.pointer_mut(field).expect("a figure");
        *value = json!(value.as_f64().expect("a number") * factor);
    }
    let (code, out) = check(&run);
    assert!(code == Some(5) && out.contains("stream/read/f32: does_not_add_up: ") && out.contains("samples of "), "{out}");
}

#[test]
fn wrong_data_outweigh_what_is_implausible_and_what_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut run = published();
    run["measurements"][1]["verified"] = json!(false);
    run["measurements"][2]["achieved_gbps"] = json!(9e9);
    std::fs::write(folder.path().join("run.json"), run.to_string()).expect("a file in the temporary folder");
    let broken = |more: &[&Path]| {
        let output = hbmark().arg("check").arg(folder.path().join("absent.json")).args(more).output().expect("the program starts");
        (output.status.code(), text(&output.stdout))
    };
    let (code, out) = broken(&[]);
    assert!(
        code == Some(2) && out.contains("absent.json: -: unreadable: cannot read") && out.ends_with("0 documents, 1 finding\n"),
        "{out}"
    );
    assert_eq!(broken(&[&recorded()]).0, Some(2));
    assert_eq!(broken(&[folder.path()]).0, Some(4));
}

#[test]
fn a_higher_schema_major_is_unreadable() {
    let mut run = published();
    run["schema_version"] = json!("2.0.0");
    let (code, out) = check(&run);
    assert!(code == Some(2) && out.contains("use a newer hbmark"), "{out}");
}

#[test]
fn failed_cases_and_broken_off_runs_are_told() {
    let mut run = published();
    run["complete"] = json!(false);
    run["program"]["build"] = json!("debug");
    run["measurements"][1]["status"] = json!("timeout");
    let (code, out) = check(&run);
    assert!(code == Some(7) && out.contains("stream/read/f32: failed: the case ended as timeout"), "{out}");
    assert!(out.contains("-: incomplete:") && out.contains("-: debug_build:"), "{out}");
}

#[test]
fn json_has_the_same_findings() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("run.json");
    std::fs::write(&file, foreign(json!({ "id": "copy", "achieved_gbps": 3868.0, "verified": true })).to_string()).expect("a file");
    let output = hbmark().args(["check", "--format", "json"]).arg(&file).output().expect("the program starts");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), &found["documents"]), (Some(5), &json!(1)));
    assert_eq!((&found["findings"][0]["case"], &found["findings"][0]["what"]), (&json!("copy"), &json!("above_peak")));
}

#[test]
fn a_report_draws_no_row_that_check_calls_implausible() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, out) = (folder.path().join("run.json"), folder.path().join("report"));
    let mut run = published();
    run["peaks"]["memory_gbps"][0]["value"] = json!(1008.0);
    std::fs::write(&file, run.to_string()).expect("a file in the temporary folder");
    hbmark().arg("report").arg(&file).arg("-o").arg(&out).assert().code(0);
    let summary = std::fs::read_to_string(out.join("summary.md")).expect("a summary");
    assert!(summary.contains(r"above\_peak"), "{summary}");
    assert!(!out.join("charts/bandwidth.svg").exists());
}
