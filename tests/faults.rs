//! GPUs that fail at once or in the middle of a run: what was measured is kept, and what was not
//! has a reason. And requests that a GPU cannot carry out. All on a fake driver.

mod common;

use std::path::Path;

use common::{hbmark_on_fake, text};
use hbmark::record::{self, Run, Status, Verdict};

/// A run on the fake driver: exit code, standard output and standard error.
fn run(settings: &[(&str, &str)], cases: &[&str], out: &Path) -> (Option<i32>, String, String) {
    let output =
        hbmark_on_fake(settings).arg("run").args(cases).args(["--device", "all", "-o"]).arg(out).output().expect("the program starts");
    let says = text(&output.stderr);
    assert!(!says.contains("panicked"), "{says}");
    (output.status.code(), text(&output.stdout), says)
}

fn load(out: &Path) -> Run {
    record::load(out).unwrap_or_else(|error| panic!("{error}"))
}

fn statuses(run: &Run) -> Vec<Status> {
    run.measurements.iter().map(|row| row.status).collect()
}

fn reason(run: &Run, row: usize) -> &str {
    run.measurements[row].reason.as_deref().unwrap_or_default()
}

/// In the order in which they are measured. Only the second and those after it call `cuMemcpyDtoDAsync`,
/// so a fault in it strikes in the middle: its first call in warming up, its sixtieth in a sample.
/// Each process counts its own calls, so it strikes again in each fresh one, unless told otherwise.
const CASES: [&str; 4] = ["stream/write/f32", "copy_engine/d2d", "copy_engine/d2d@1048576", "copy_engine/d2d@2097152"];

/// A run in which the sixtieth copy of the second case ends like this, once.
fn run_with_one(what: &str) -> Run {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let once = folder.path().join("once").display().to_string();
    let fault = format!("cuMemcpyDtoDAsync_v2 60 {what}");
    let output = hbmark_on_fake(&[("FAKE_FAULT", &fault), ("FAKE_ONCE", &once)])
        .arg("run")
        .args(CASES)
        // Far more than a case takes here, on a busy machine too.
        .args(["--case-limit", "20", "-o"])
        .arg(&out)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    load(&out)
}

#[test]
fn an_error_that_ends_a_context_or_a_crash_loses_its_own_case_only() {
    for (what, why) in [("719", "(719, "), ("700", "(700, "), ("crash", if cfg!(unix) { "SIGABRT" } else { "unexpected end" })] {
        let run = run_with_one(what);
        assert_eq!(statuses(&run), [Status::Ok, Status::Error, Status::Ok, Status::Ok]);
        assert!(reason(&run, 1).contains(why), "{}", reason(&run, 1));
        assert!(run.complete && run.finished_at.is_some());
    }
}

#[test]
fn a_call_that_never_returns_loses_its_own_case_only_and_the_row_says_the_limit() {
    let run = run_with_one("hang");
    assert_eq!(statuses(&run), [Status::Ok, Status::Timeout, Status::Ok, Status::Ok]);
    assert!(reason(&run, 1).contains("after 20 s"), "{}", reason(&run, 1));
    assert!(run.complete && run.finished_at.is_some());
}

#[test]
fn a_device_that_is_lost_twice_in_a_row_keeps_the_rows_so_far_and_the_others_name_the_case() {
    for (fault, code) in [("cuMemcpyDtoDAsync_v2 1 719", 719), ("cuMemcpyDtoDAsync_v2 60 700", 700)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().join("out");
        let (exit, shows, says) = run(&[("FAKE_FAULT", fault)], &CASES, &out);
        assert_eq!(exit, Some(7), "{says}");

        let run = load(&out);
        assert_eq!(statuses(&run), [Status::Ok, Status::Error, Status::Error, Status::Skipped]);
        assert!(run.measurements[0].achieved_gbps.is_some_and(|gbps| gbps > 0.0));
        assert!(reason(&run, 1).contains(&format!("({code}, ")) && reason(&run, 1).contains("dmesg"), "{}", reason(&run, 1));
        assert!(reason(&run, 3).contains("lost to this run in copy_engine/d2d@1048576, as in the case before it"), "{}", reason(&run, 3));
        assert!(!run.complete && run.finished_at.is_some());

        // The cause is told once, before what it led to, and nothing of cleaning up.
        assert_eq!(says.matches(&format!("({code}, ")).count(), 1, "{says}");
        assert!(says.find("copy_engine/d2d, copy_engine/d2d@1048576: ") < says.find("copy_engine/d2d@2097152: "), "{says}");

        assert!(shows.contains("run not complete") && shows.contains("skipped"), "{shows}");
        for file in ["summary.md", "measurements.csv", "charts/bandwidth.svg"] {
            assert!(out.join(file).is_file(), "{file}");
        }
    }
}

#[test]
fn a_device_that_cannot_be_opened_after_its_loss_is_given_up_and_the_rows_name_the_case() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let once = folder.path().join("once").display().to_string();
    let gone = [("FAKE_FAULT", "cuMemcpyDtoDAsync_v2 1 719"), ("FAKE_ONCE", &once), ("FAKE_AFTERWARDS", "46")];
    let (exit, _, says) = run(&gone, &CASES, &out);
    assert_eq!(exit, Some(7), "{says}");
    let run = load(&out);
    assert_eq!(statuses(&run), [Status::Ok, Status::Error, Status::Skipped, Status::Skipped]);
    for row in [2, 3] {
        assert!(reason(&run, row).contains("lost to this run in copy_engine/d2d and could not be opened again"), "{}", reason(&run, row));
        assert!(reason(&run, row).contains("(46, "), "{}", reason(&run, row));
    }
    assert!(!run.complete);
}

#[test]
fn a_device_lost_in_its_first_case_has_a_row_for_each_case() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let (exit, _, says) = run(&[("FAKE_FAULT", "cuLaunchKernel 2 719")], &CASES, &out);
    assert_eq!(exit, Some(7), "{says}");
    assert_eq!(statuses(&load(&out)), [Status::Error, Status::Error, Status::Skipped, Status::Skipped]);
}

#[test]
fn a_lost_device_does_not_keep_the_next_from_being_measured() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let (exit, _, says) = run(&[("FAKE_DEVICES", "2"), ("FAKE_FAULT", "cuMemcpyDtoDAsync_v2 1 719")], &CASES, &out);
    assert_eq!(exit, Some(7), "{says}");
    assert_eq!(statuses(&load(&out.join("nvidia-fake-0")))[1..], [Status::Error, Status::Error, Status::Skipped]);
    let next = load(&out.join("nvidia-fake-1"));
    assert!(next.complete && statuses(&next).iter().all(|status| *status == Status::Ok), "{:?}", statuses(&next));
}

#[test]
fn memory_that_runs_out_in_one_case_leaves_the_others() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let cases = ["stream/write/f32@4194304", "stream/write/f32@268435456", "stream/write/f32@8388608"];
    let (exit, _, says) = run(&[("FAKE_ROOM", "67108864")], &cases, &out);
    assert_eq!(exit, Some(7), "{says}");
    let run = load(&out);
    assert_eq!(statuses(&run), [Status::Ok, Status::Error, Status::Ok]);
    assert!(
        reason(&run, 1).starts_with("out of memory: allocating 256 MiB") && reason(&run, 1).contains("nvidia-smi"),
        "{}",
        reason(&run, 1)
    );
    assert!(run.complete);
}

#[test]
fn a_device_without_any_memory_to_give_has_a_row_with_the_reason_for_each_case() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let (exit, _, says) = run(&[("FAKE_ROOM", "0")], &CASES, &out);
    assert_eq!(exit, Some(7), "{says}");
    let run = load(&out);
    assert_eq!(statuses(&run), [Status::Error; 4]);
    assert!((0..4).all(|row| reason(&run, row).starts_with("out of memory")));
}

#[test]
fn a_device_that_fails_before_its_first_case_is_not_usable_and_nothing_is_written() {
    for (fault, cure) in [
        ("cuDevicePrimaryCtxRetain 1 2", "nvidia-smi"),
        ("cuDevicePrimaryCtxRetain 1 46", "compute mode"),
        ("cuStreamCreateWithPriority 1 999", "suspend"),
        ("cuMemGetInfo_v2 1 214", "ROW_REMAPPER"),
        ("cuModuleLoadDataEx 1 222", "525 or newer"),
        ("cuStreamCreateWithPriority 1 crash", "the device '0' cannot be opened: the process that tried came to an unexpected end"),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().join("out");
        let (exit, shows, says) = run(&[("FAKE_FAULT", fault)], &CASES, &out);
        assert_eq!(exit, Some(3), "{says}");
        assert!(says.contains(cure), "{fault}: {says}");
        assert!(shows.is_empty() && !out.exists());
    }
}

#[test]
fn a_device_that_cannot_be_opened_does_not_keep_the_others_from_being_measured() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let (exit, _, says) = run(&[("FAKE_DEVICES", "2"), ("FAKE_FAULT", "cuDevicePrimaryCtxRetain 1 46")], &CASES, &out);
    assert_eq!(exit, Some(3), "{says}");
    assert!(says.contains("error: CUDA device 0: creating a context"), "{says}");
    assert!(!out.join("nvidia-fake-0").exists());
    assert!(load(&out.join("nvidia-fake-1")).complete);
}

#[test]
fn a_device_that_does_not_answer_keeps_no_other_from_being_chosen_by_its_uuid() {
    // The silent one may be the one that is meant: then it is not usable, rather than not here.
    for (uuid, exit) in [("GPU-01", 0), ("GPU-00", 3)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        hbmark_on_fake(&[("FAKE_DEVICES", "2"), ("FAKE_FAULT", "cuDeviceGet 1 999")])
            .args(["run", "stream/write/f32@1048576", "--device", uuid, "-o"])
            .arg(folder.path().join("out"))
            .assert()
            .code(exit);
    }
}

#[test]
fn devices_of_one_name_are_all_measured_and_told_apart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let (exit, shows, says) = run(&[("FAKE_DEVICES", "2")], &CASES, &out);
    assert_eq!(exit, Some(0), "{says}");
    assert!(shows.contains("NVIDIA Fake, device 0: ") && shows.contains("NVIDIA Fake, device 1: "), "{shows}");
    for index in [0, 1] {
        let run = load(&out.join(format!("nvidia-fake-{index}")));
        assert_eq!((run.device.index, run.complete), (Some(index), true));
        assert!(run.device.uuid.is_some_and(|uuid| uuid.starts_with(&format!("GPU-0{index}"))));
    }
}

#[test]
fn a_slice_of_a_card_is_called_one_in_the_document_and_in_the_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let (exit, shows, says) = run(&[("FAKE_NAME", "NVIDIA H200 MIG 1g.18gb")], &CASES, &out);
    assert_eq!(exit, Some(0), "{says}");
    assert!(shows.starts_with("NVIDIA H200 MIG 1g.18gb: "), "{shows}");
    let device = load(&out).device;
    assert_eq!((device.card.as_str(), device.virtualization.mig_profile.as_deref()), ("nvidia-h200-mig-1g-18gb", Some("1g.18gb")));
    assert!(device.uuid.is_some_and(|uuid| uuid.starts_with("MIG-")));
}

#[test]
fn a_card_that_the_catalog_does_not_know_is_measured_and_said_to_be_unknown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let says_unknown = "the catalog does not know this card";
    let (exit, _, says) = run(&[("FAKE_NAME", "NVIDIA Graphics Device")], &CASES, &folder.path().join("unknown"));
    assert!(exit == Some(0) && says.contains(says_unknown), "{says}");
    let (exit, _, says) = run(&[("FAKE_NAME", "NVIDIA H200")], &CASES, &folder.path().join("known"));
    assert!(exit == Some(0) && !says.contains(says_unknown), "{says}");
    assert_eq!(load(&folder.path().join("known")).device.card, "h200-sxm-141gb");
}

#[test]
fn a_size_that_the_card_has_no_room_for_is_refused_with_both_figures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let (exit, _, says) = run(&[], &["stream/copy/f32@107374182400"], &out);
    assert_eq!(exit, Some(2), "{says}");
    assert!(says.contains("204800 MiB together") && says.contains("143360 MiB are free"), "{says}");
    assert!(!out.exists());
}

#[test]
fn wrong_data_mark_their_row_with_number_and_place_and_the_run_goes_on_to_exit_4() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    // The third case compares so many words.
    let (exit, shows, says) = run(&[("FAKE_WRONG", "262144 3 77")], &CASES, &out);
    assert_eq!(exit, Some(4), "{says}");
    let run = load(&out);
    assert!(run.complete && run.device.uuid.is_some());
    assert_eq!(statuses(&run), [Status::Ok; 4]);
    for (n, row) in run.measurements.iter().enumerate() {
        let expected = if n == 2 {
            (Some(false), Some(3), Some(77), Some(Verdict::Unverified))
        } else {
            (Some(true), Some(0), None, Some(Verdict::Ok))
        };
        assert_eq!((row.verified, row.mismatches, row.first_bad_index, row.verdict), expected, "{}", row.id);
    }
    let line = shows.lines().find(|line| line.contains(CASES[2])).unwrap_or_else(|| panic!("{shows}"));
    assert!(line.contains("unverified"), "{shows}");
}

#[test]
fn a_card_that_is_newer_than_the_program_is_measured_and_its_arithmetic_peak_is_null_with_the_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    // This driver computes nothing, so the check of arithmetic fails as it should.
    let (exit, _, says) = run(&[("FAKE_CAPABILITY", "15")], &["compute/fma/f32", "stream/write/f32"], &out);
    assert_eq!(exit, Some(4), "{says}");
    let rows = load(&out).measurements;
    assert!(rows[0].theoretical_gflops.is_none() && rows[0].missing["theoretical_gflops"].contains("15.0"), "{:?}", rows[0].missing);
    assert_eq!((rows[1].status, rows[1].verdict), (Status::Ok, Some(Verdict::Ok)));
}

#[test]
fn a_clock_that_stands_still_gives_errors_with_the_reason_and_no_row_without_samples_that_has_figures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let (exit, _, says) = run(&[("FAKE_LAUNCH_MS", "0")], &CASES, &out);
    assert_eq!(exit, Some(7), "{says}");
    let run = load(&out);
    assert_eq!(statuses(&run), [Status::Error; 4]);
    for row in &run.measurements {
        assert!(row.samples_ns.is_empty() && row.time_ns.is_none() && row.achieved_gbps.is_none() && row.verdict.is_none());
        assert!(row.reason.as_ref().is_some_and(|reason| reason.contains("0 ns")), "{:?}", row.reason);
    }
}
