//! `hbmark run --simultaneous`: each device alone, then all at once. The host twice is two processes
//! that share its memory, and needs no GPU.

mod common;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use common::{document, hbmark, hbmark_on_fake, text, unexplained};
use hbmark::device::{self, Selected};
use hbmark::record::{self, Run, Status, Verdict};
use serde_json::Value;

const CASE: &str = "stream/copy/f32@1048576";

/// Each case on the host alone, by two processes after each other, and by both at once.
fn host_twice(cases: &[&str], out: &Path) -> Command {
    let mut command = hbmark();
    command.arg("run").args(cases).args(["--device", "host,host", "--simultaneous", "-o"]).arg(out);
    command
}

/// The folders of the devices, in the order of their names.
fn folders(out: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(out).expect("a folder").flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

fn load(folder: &Path) -> Run {
    record::load(folder).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn two_processes_on_one_device_are_measured_alone_and_at_once_with_a_document_each() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = host_twice(&[CASE, "stride/read/64@1048576"], folder.path()).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let folders = folders(folder.path());
    assert_eq!(folders.len(), 2);
    assert_eq!(folders[1].display().to_string(), format!("{}-2", folders[0].display()));
    for folder in &folders {
        assert_eq!(unexplained(&document(folder)), [""; 0]);
        let run = load(folder);
        assert!(run.complete && run.finished_at.is_some());
        for row in &run.measurements {
            let contention = row.contention.as_ref().expect("figures of both at once");
            assert!(contention.factor.is_finite() && contention.factor > 0.0, "{contention:?}");
            assert!((0.0..=1.0).contains(&contention.overlap_fraction) && contention.time_ns.n >= 3, "{contention:?}");
            assert_eq!(contention.others, std::slice::from_ref(&run.device.name));
            assert_eq!((row.verdict, row.verified), (Some(Verdict::Ok), Some(true)));
        }
        assert!(std::fs::read_to_string(folder.join("summary.md")).expect("a summary").contains("## All at once"));
    }
    let printed = text(&output.stdout);
    assert!(printed.contains("all at once") && printed.contains("straggler: "), "{printed}");
}

#[test]
fn data_for_programs_stay_one_json_array_and_one_csv_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let printed = |format: &str| {
        let output = host_twice(&[CASE], &folder.path().join(format)).args(["--format", format]).output().expect("the program starts");
        text(&output.stdout)
    };
    let array: Value = serde_json::from_str(&printed("json")).expect("JSON");
    let factors = [0, 1].map(|device| array[device]["measurements"][0]["contention"]["factor"].as_f64());
    assert!(array.as_array().map(Vec::len) == Some(2) && factors.iter().all(Option::is_some), "{factors:?}");
    let table = printed("csv");
    let mut table = csv::Reader::from_reader(table.as_bytes());
    let column = table.headers().expect("heads").iter().position(|head| head == "contention_factor").expect("the factor");
    let factors: Vec<f64> = table.records().map(|row| row.expect("a row")[column].parse().expect("a number")).collect();
    assert_eq!(factors.len(), 2);
}

#[test]
fn a_device_named_twice_needs_simultaneous_and_simultaneous_needs_two() {
    for (arguments, says) in [
        (&["--device", "host,host"][..], "'--simultaneous'"),
        (&["--device", "host", "--device", "host"], "'--simultaneous'"),
        (&["--device", "host", "--simultaneous"], "'--device host,host'"),
        (&["--device", "host,host", "--simultaneous", "--resume", "-o", "out"], "'--resume'"),
        (&["--device", "host,hots"], "did you mean 'host'?"),
    ] {
        hbmark().args(["run", CASE]).args(arguments).assert().code(2).stdout("").stderr(predicates::str::contains(says));
    }
}

#[test]
fn what_fits_once_but_not_as_often_as_the_device_is_named_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    // Two arrays take 0.6 of the free memory: enough for one process, which may have 0.9, and not for two.
    let each = device::open(Selected::Host).and_then(|host| host.facts()).expect("the host").free_bytes / 10 * 3 / 4 * 4;
    let refused = host_twice(&[&format!("stream/copy/f32@{each}")], &out).assert().code(2);
    let says = predicates::str::contains;
    refused.stderr(says("2 processes will share its memory")).stderr(says("smaller size"));
    assert!(!out.exists());
}

#[test]
fn cards_are_told_by_their_uuid_and_a_host_beside_one_by_its_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = |devices: &str, case: &str| {
        let out = folder.path().join(devices);
        let mut command = hbmark_on_fake(&[("FAKE_DEVICES", "2")]);
        command.args(["run", case, "--device", devices, "--simultaneous", "-o"]).arg(&out).assert().code(0);
        folders(&out).iter().map(|folder| load(folder)).collect::<Vec<Run>>()
    };
    let others = |run: &Run| run.measurements[0].contention.as_ref().expect("figures of all at once").others.clone();
    let cards = run("0,1", "copy_engine/d2d");
    assert_eq!(others(&cards[0]), [cards[1].device.uuid.clone().expect("a UUID")]);
    assert_eq!(others(&cards[1]), [cards[0].device.uuid.clone().expect("a UUID")]);
    // A launch of the fake driver takes its time whatever others do.
    assert!(cards.iter().all(|run| run.measurements[0].contention.as_ref().is_some_and(|seen| (seen.factor - 1.0).abs() < 1e-9)));
    let mixed = run("host,0", CASE);
    let host = mixed.iter().find(|run| run.device.uuid.is_none()).expect("the host");
    let card = mixed.iter().find(|run| run.device.uuid.is_some()).expect("the card");
    assert_eq!(others(card), std::slice::from_ref(&host.device.name));
    assert_eq!(others(host), [card.device.uuid.clone().expect("a UUID")]);
}

#[test]
fn several_devices_in_one_list_are_measured_one_after_the_other() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    hbmark_on_fake(&[]).args(["run", CASE, "--device", "0,host", "-o"]).arg(folder.path()).assert().code(0);
    for folder in folders(folder.path()) {
        let run = load(&folder);
        assert_eq!((run.measurements.len(), run.measurements[0].status), (1, Status::Ok));
        assert!(run.measurements[0].contention.is_none());
    }
}

#[test]
fn a_card_that_is_lost_only_when_all_run_keeps_its_row_and_nobody_has_a_factor() {
    // The card alone is asked for some hundred copies by each process, and for more than four hundred with the other.
    for (what, why) in [("719", "719"), ("crash", if cfg!(unix) { "SIGABRT" } else { "unexpected end" })] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let fault = format!("cuMemcpyDtoDAsync_v2 300 {what}");
        hbmark_on_fake(&[("FAKE_DEVICES", "2"), ("FAKE_FAULT", &fault)])
            .args(["run", "copy_engine/d2d", "--device", "all", "--simultaneous", "-o"])
            .arg(folder.path())
            .assert()
            .code(7)
            .stderr(predicates::str::contains("copy_engine/d2d: not measured together: "));
        for folder in folders(folder.path()) {
            assert_eq!(unexplained(&document(&folder)), [""; 0]);
            let run = load(&folder);
            let row = &run.measurements[0];
            assert!(run.complete && row.is_sound() && row.contention.is_none());
            assert!(row.missing["contention"].contains(why), "{}", row.missing["contention"]);
        }
    }
}
