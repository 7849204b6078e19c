//! `hbmark report`, from files alone.

mod common;

use std::path::Path;

use common::{hbmark, recorded};

fn report(run: &Path, out: &Path) -> assert_cmd::assert::Assert {
    hbmark().arg("report").arg(run).arg("-o").arg(out).assert()
}

#[test]
fn a_recorded_run_gives_charts_and_tables() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("report");
    report(&recorded(), &out).code(0).stdout(predicates::str::contains("summary.md"));
    for name in ["bandwidth-host", "stride-host", "conv3d-host"] {
        for ending in ["svg", "png"] {
            let file = out.join("charts").join(format!("{name}.{ending}"));
            assert!(std::fs::metadata(&file).is_ok_and(|m| m.len() > 5_000), "{}", file.display());
        }
    }
}

/// A document that was changed by `edit`, and the report's verdict on it.
fn with(edit: impl FnOnce(String) -> String) -> (assert_cmd::assert::Assert, bool) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("run.json");
    let text = std::fs::read_to_string(recorded()).expect("the recorded run");
    std::fs::write(&run, edit(text)).expect("a file in the temporary folder");
    let out = folder.path().join("report");
    let assert = report(&run, &out);
    let written = out.exists();
    (assert, written)
}

#[test]
fn a_file_that_is_not_json_is_named_and_nothing_is_written() {
    let (assert, written) = with(|_| "hello".into());
    assert.code(2).stderr(predicates::str::contains("run.json is not a whole JSON document"));
    assert!(!written);
}

#[test]
fn a_file_that_is_cut_off_is_said_to_be() {
    let (assert, written) = with(|text| text[..text.len() / 2].to_owned());
    assert.code(2).stderr(predicates::str::contains("cut off"));
    assert!(!written);
}

#[test]
fn a_higher_schema_major_asks_for_a_newer_program() {
    let (assert, written) = with(|text| text.replacen("\"schema_version\": \"1.", "\"schema_version\": \"2.", 1));
    assert.code(2).stderr(predicates::str::contains("use a newer hbmark"));
    assert!(!written);
}

#[test]
fn a_higher_schema_minor_with_unknown_fields_is_read() {
    let (assert, _) = with(|text| text.replacen("\"schema_version\": \"1.0.0\",", "\"schema_version\": \"1.9.0\", \"novelty\": [1],", 1));
    assert.code(0);
}

#[test]
fn values_of_a_newer_minor_are_shown_as_unknown_and_not_drawn() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("run.json");
    let text = std::fs::read_to_string(recorded()).expect("the recorded run");
    let newer =
        text.replace("\"verdict\": \"ok\"", "\"verdict\": \"haunted\"").replacen("\"status\": \"ok\"", "\"status\": \"postponed\"", 1);
    std::fs::write(&run, newer).expect("a file in the temporary folder");
    let out = folder.path().join("report");
    report(&run, &out).code(0).stderr(predicates::str::contains("left out"));
    let summary = std::fs::read_to_string(out.join("summary.md")).expect("a summary");
    assert!(summary.contains("| unknown"), "{summary}");
}

#[test]
fn an_array_of_documents_as_the_program_prints_it_is_read() {
    let (assert, _) = with(|text| format!("[{text}, {text}]"));
    assert.code(0);
    let (assert, _) = with(|text| format!("[{text}, {{}}]"));
    assert.code(2).stderr(predicates::str::contains("no hbmark run document"));
}

#[test]
fn a_row_that_contradicts_its_verdict_is_not_drawn() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("run.json");
    let text = std::fs::read_to_string(recorded()).expect("the recorded run");
    std::fs::write(&run, text.replace("\"verified\": true", "\"verified\": false")).expect("a file in the temporary folder");
    let out = folder.path().join("report");
    report(&run, &out).code(0).stderr(predicates::str::contains("left out"));
    assert!(!out.join("charts").exists());
}

#[test]
fn a_second_report_leaves_no_chart_of_the_first() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("report");
    report(&recorded(), &out).code(0);
    let gpu = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/h200-sxm-141gb/2026-12-01-f8ea0d3d.json");
    report(&gpu, &out).code(0);
    let names: Vec<String> =
        std::fs::read_dir(out.join("charts")).expect("charts").flatten().map(|e| e.file_name().to_string_lossy().into()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| !name.contains("host")), "{names:?}");
}

#[test]
fn files_of_other_people_are_neither_replaced_nor_removed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("charts")).expect("a folder");
    std::fs::write(folder.path().join("charts/bandwidth-2.png"), "mine").expect("a file");
    report(&recorded(), folder.path()).code(2).stderr(predicates::str::contains("charts is there already"));
    assert_eq!(std::fs::read_to_string(folder.path().join("charts/bandwidth-2.png")).expect("the file"), "mine");
    assert!(!folder.path().join("summary.md").exists());
}

#[test]
fn json_that_is_no_run_is_told_apart() {
    let (assert, _) = with(|_| "{\"rows\": []}".into());
    assert.code(2).stderr(predicates::str::contains("no hbmark run document"));
}

#[test]
fn a_missing_file_and_a_folder_without_a_run_are_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    report(&folder.path().join("absent.json"), &folder.path().join("out")).code(2).stderr(predicates::str::contains("absent.json"));
    report(folder.path(), &folder.path().join("out")).code(2).stderr(predicates::str::contains("holds no run.json"));
}
