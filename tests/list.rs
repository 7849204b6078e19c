//! `hbmark list`.

mod common;

use common::{documents, hbmark, text};
use hbmark::pattern::{DeviceKind, Facts, PATTERNS, Profile, plan, select};
use hbmark::record;

#[test]
fn every_listed_case_can_be_selected_and_planned() {
    let output = hbmark().args(["list", "cases", "--format", "json"]).output().expect("the program starts");
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(rows.len() > 20);
    for row in &rows {
        assert!(["quick", "standard", "full"].contains(&row["profile"].as_str().expect("a profile")));
        let kind = if row["device"] == "host" { DeviceKind::Host } else { DeviceKind::Cuda };
        let facts = Facts {
            kind,
            cache_bytes: Some(32 << 20),
            free_bytes: 1 << 40,
            main_free_bytes: 1 << 40,
            units: if kind == DeviceKind::Host { 2 } else { 132 },
            threads_per_unit: 2048,
            capability: None,
            launch_limited: false,
            peak_bytes_per_clock: Some(2431),
        };
        let id = row["case"].as_str().expect("an id");
        let selected = select(&[id.to_owned()], Profile::Quick, &facts).expect("a listed id can be selected");
        assert_eq!(selected.iter().map(ToString::to_string).collect::<Vec<_>>(), [id]);
        assert!(plan(&selected[0], &facts).is_ok(), "{id}");
    }
}

#[test]
fn patterns_are_listed_with_what_they_do() {
    let output = hbmark().args(["list", "patterns"]).output().expect("the program starts");
    let table = text(&output.stdout);
    for pattern in [
        "compute",
        "stream",
        "stride",
        "footprint",
        "gather",
        "scatter",
        "conv3d",
        "matvec",
        "copy_engine",
        "transfer",
        "saturation",
        "latency",
    ] {
        assert!(table.contains(pattern), "{table}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("hbmark"))
        .args(["list", "cases"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// The rows of `list cards` with these further arguments.
fn cards(arguments: &[&str]) -> Vec<serde_json::Value> {
    let output = hbmark().args(["list", "cards", "--format", "json"]).args(arguments).output().expect("the program starts");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn cards_are_listed_by_kind_of_memory_and_every_card_has_one() {
    let kinds = ["hbm", "gddr", "lpddr"].map(|kind| cards(&["--memory", kind]));
    assert!(kinds[0].iter().any(|card| card["card"] == "h200-sxm-141gb" && card["bandwidth_gbps"] == 4800.0));
    assert!(kinds[1].iter().any(|card| card["card"] == "rtx-4090" && card["memory"] == "GDDR6X"));
    assert_eq!(kinds.iter().map(Vec::len).sum::<usize>(), cards(&[]).len());
}

#[test]
fn a_kind_of_memory_chooses_among_cards_alone() {
    hbmark().args(["list", "cases", "--memory", "hbm"]).assert().code(2).stderr(predicates::str::contains("list cards"));
}

/// An id is the name of a figure in documents of years: one that was renamed by mistake shows here.
#[test]
fn the_ids_of_all_cases_are_those_that_were_published() {
    let ids: Vec<String> = [DeviceKind::Cuda, DeviceKind::Host]
        .into_iter()
        .flat_map(|kind| PATTERNS.iter().flat_map(move |pattern| pattern.ids(Profile::Full, kind)).map(move |id| format!("{kind} {id}")))
        .collect();
    insta::assert_snapshot!(ids.join("\n"));
}

#[test]
fn every_case_of_a_recorded_run_can_be_asked_for_today() {
    for path in documents() {
        let run = record::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let facts = Facts {
            kind: run.device.kind,
            cache_bytes: run.device.memory.cache_bytes,
            free_bytes: 256 << 30,
            main_free_bytes: 256 << 30,
            units: run.device.units,
            threads_per_unit: 2048,
            capability: None,
            launch_limited: false,
            peak_bytes_per_clock: Some(2431),
        };
        for row in &run.measurements {
            let selected =
                select(std::slice::from_ref(&row.id), Profile::Quick, &facts).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(selected.iter().map(ToString::to_string).collect::<Vec<_>>(), [row.id.as_str()], "{}", path.display());
        }
    }
}
