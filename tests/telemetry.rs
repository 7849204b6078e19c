//! What is read of a card while its cases run: on a fake driver and a fake NVML.
#![cfg(target_os = "linux")]

mod common;

use std::path::Path;

use common::{hbmark_on_fake, hbmark_on_fake_card, text, unexplained};
use hbmark::record::{self, EnergySource, Mark, PowerSource, Run, Spread};

/// Two of one pattern, which are measured in one process, and one of another.
const CASES: [&str; 3] = ["stream/write/f32", "stream/copy/f32", "copy_engine/d2d"];

/// A run on the fake card, which must succeed: its document, and the table that it prints.
fn run(settings: &[(&str, &str)], out: &Path) -> (Run, String) {
    let output = hbmark_on_fake_card(settings).arg("run").args(CASES).arg("-o").arg(out).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    (record::load(out).unwrap_or_else(|error| panic!("{error}")), text(&output.stdout))
}

#[test]
fn each_row_has_what_the_sensors_told_during_its_samples() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (run, _) = run(&[], &folder.path().join("out"));
    for row in &run.measurements {
        let told = row.telemetry.as_ref().expect("telemetry");
        let steady = |mhz| Some(Spread { min: mhz, median: mhz, max: mhz });
        assert!(told.readings > 0);
        assert_eq!((told.sm_clock_mhz, told.memory_clock_mhz), (steady(1980.0), steady(3201.0)));
        assert_eq!((told.temperature_gpu_max_c, told.temperature_memory_max_c), (Some(41.0), Some(52.0)));
        assert_eq!((told.power_mean_w, told.power_source), (Some(600.0), Some(PowerSource::Instant)));
        assert_eq!((told.performance_states.as_deref(), told.other_processes), (Some(&[0][..]), Some(0)));
        assert_eq!((told.pcie_generation, told.pcie_width), (Some(5), Some(16)));
        // This card has no energy counter: power, and the 3 ms of a launch by the fake driver's clock.
        assert_eq!(told.energy_source, Some(EnergySource::Power));
        assert!(told.missing["energy_uncertainty_fraction"].contains("not available"), "{:?}", told.missing);
        let gb = row.bytes.expect("bytes").requested() as f64 / 1e9;
        assert!((told.joules_per_gb.expect("a figure") / (600.0 * 3e-3 / gb) - 1.0).abs() < 1e-9);
        assert!(row.marks.is_empty(), "{:?}", row.notes);
    }
    assert_eq!(run.device.ecc.enabled, Some(true));
    assert_eq!(run.device.virtualization.mig_enabled, Some(false));
    let limits = &run.device.power_limits;
    assert_eq!((limits.default_w, limits.requested_w, limits.enforced_w), (Some(700.0), Some(650.0), Some(650.0)));
    // An older driver's lack is a reason and no fault.
    assert!(run.device.serial.is_none() && run.device.missing.contains_key("serial"));
}

#[test]
fn throttling_and_neighbours_mark_the_rows_in_document_and_table_and_leave_the_exit_code() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Idle and a power cap; this process and another.
    let (run, shows) = run(&[("FAKE_NVML_REASONS", "5"), ("FAKE_NVML_PIDS", "self,1")], &folder.path().join("out"));
    for row in &run.measurements {
        assert_eq!(row.marks, [Mark::Throttled, Mark::Shared]);
        assert!(row.notes.iter().any(|note| note.contains("SwPowerCap in all readings") && !note.contains("GpuIdle")), "{:?}", row.notes);
    }
    assert!(shows.contains("ok, throttled, shared [1][2]") && shows.contains("1 other process was on the card"), "{shows}");
    assert_eq!(run.device.other_processes, Some(1));
}

#[test]
fn a_list_of_processes_that_hides_this_program_tells_nothing_and_marks_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (run, _) = run(&[("FAKE_NVML_PIDS", "none")], &folder.path().join("out"));
    let told = run.measurements[0].telemetry.as_ref().expect("telemetry");
    assert!(told.other_processes.is_none() && told.missing["other_processes"].contains("cannot tell"));
    assert!(run.measurements[0].marks.is_empty());
}

#[test]
fn a_slice_has_no_power_of_its_own_and_no_peak_of_the_whole_card() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (run, _) = run(&[("FAKE_NAME", "NVIDIA H200 MIG 1g.18gb")], &folder.path().join("out"));
    let told = run.measurements[0].telemetry.as_ref().expect("telemetry");
    assert!(told.power_mean_w.is_none() && told.missing["joules_per_gb"].contains("slice"), "{:?}", told.missing);
    assert!(told.sm_clock_mhz.is_some());
    assert!(run.peaks.memory_theoretical_gbps().is_none() && run.peaks.missing["memory_gbps"].contains("slice"));
}

#[test]
fn sensors_that_hang_cost_the_telemetry_and_not_the_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (run, _) = run(&[("FAKE_NVML_HANGS", "1")], &folder.path().join("out"));
    assert!(run.complete);
    // Asked once in a process: the next case there does not wait for them again.
    let reasons = ["did not answer within", "have not answered since an earlier case", "did not answer within"];
    for (row, reason) in run.measurements.iter().zip(reasons) {
        assert!(row.telemetry.is_none() && row.missing["telemetry"].contains(reason), "{:?}", row.missing);
    }
}

#[test]
fn without_the_library_the_row_says_which_capability_a_container_lacks() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    // On a machine that has NVML, it does not know the fake card.
    hbmark_on_fake(&[]).arg("run").args(CASES).arg("-o").arg(&out).assert().code(0);
    let run = record::load(&out).unwrap_or_else(|error| panic!("{error}"));
    let reason = &run.measurements[0].missing["telemetry"];
    assert!(reason.contains("'utility'") || reason.contains("NVML"), "{reason}");
}

#[test]
fn sensors_that_answer_with_errors_leave_nulls_with_reasons_and_do_not_end_the_run() {
    // Not supported, driver not loaded, card not found, card lost, unknown error: one field, most fields, the card, all.
    for fault in ["nvmlDeviceGetPerformanceState 3", "nvmlDeviceGetC 999", "nvmlDeviceGetHandle 6", "nvmlDeviceGet 15", "nvmlInit 9"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().join("out");
        let (run, _) = run(&[("FAKE_NVML_FAULT", fault)], &out);
        assert!(run.complete, "{fault}");
        assert_eq!(unexplained(&serde_json::to_value(&run).expect("JSON")), [""; 0], "{fault}");
    }
}

#[test]
fn a_text_that_stands_for_no_value_is_null_with_the_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (known, _) = run(&[("FAKE_NVML_TEXT", "900-21010-0040-000")], &folder.path().join("known"));
    assert_eq!(known.device.part_number.as_deref(), Some("900-21010-0040-000"));
    let (untold, _) = run(&[("FAKE_NVML_TEXT", "N/A")], &folder.path().join("untold"));
    assert!(untold.device.part_number.is_none() && untold.device.missing["part_number"].contains("'N/A'"), "{:?}", untold.device);
    assert_eq!(unexplained(&serde_json::to_value(&untold).expect("JSON")), [""; 0]);
}

#[test]
fn the_document_tells_the_drivers_version_apart_from_the_cuda_version_that_it_implements() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (run, _) = run(&[], &folder.path().join("out"));
    assert_eq!((run.device.driver_version.as_deref(), run.device.cuda_version.as_deref()), (Some("580.159.04"), Some("12.2")));
}
