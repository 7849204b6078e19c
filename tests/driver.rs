//! Drivers that are missing, broken or failing: always a reason and a cure, never RAM figures.

mod common;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use common::{hbmark, hbmark_on_fake, text};
use hbmark::device::cuda::driver::{DRIVER_VARIABLE, NO_DRIVER};
use hbmark::device::cuda::{Presence, presence};

/// The default run: its exit code, what it says, and where its output would be.
fn run_default(mut hbmark: Command) -> (Option<i32>, String, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let output = hbmark.args(["run", "stream/copy/f32@1048576", "-o"]).arg(&out).output().expect("the program starts");
    assert!(output.stdout.is_empty() || output.status.success());
    (output.status.code(), text(&output.stderr), out, folder)
}

fn run_with(driver: &Path) -> (Option<i32>, String, PathBuf, tempfile::TempDir) {
    let mut command = hbmark();
    command.env(DRIVER_VARIABLE, driver);
    run_default(command)
}

#[test]
fn without_a_driver_the_host_is_measured_and_that_is_said() {
    let (code, says, out, _folder) = run_with(Path::new(NO_DRIVER));
    assert_eq!(code, Some(0), "{says}");
    assert!(says.contains("no NVIDIA driver") && says.contains("not a GPU"), "{says}");
    assert!(out.join("run.json").is_file());
}

#[test]
fn a_named_driver_that_is_not_there_is_a_fault_and_no_reason_to_measure_ram() {
    for name in ["/nonexistent/libcuda.so.1", "libhbmark-no-such-driver.so.1"] {
        let (code, says, out, _folder) = run_with(Path::new(name));
        assert_eq!(code, Some(3), "{says}");
        assert!(says.contains(name) && says.contains(DRIVER_VARIABLE), "{says}");
        assert!(!out.exists());
    }
}

#[test]
fn a_driver_that_is_no_library_is_a_fault_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let driver = folder.path().join("libcuda.so.1");
    std::fs::write(&driver, "not a library").expect("a file in the temporary folder");
    let (code, says, out, _out) = run_with(&driver);
    assert_eq!(code, Some(3), "{says}");
    assert!(says.contains("cannot be loaded") && says.contains("reinstall"), "{says}");
    assert!(!out.exists());
}

#[test]
fn a_driver_that_fails_is_named_with_its_code_and_cure() {
    for (init, cure) in [(34, "stub"), (100, "nvidia-smi"), (802, "fabricmanager"), (803, "reboot"), (999, "suspend"), (9999, "9999")] {
        let (code, says, out, _out) = run_default(hbmark_on_fake(&[("FAKE_FAULT", &format!("cuInit 1 {init}"))]));
        assert_eq!(code, Some(3), "{says}");
        assert!(says.contains(&format!("({init}, ")) && says.contains(cure), "{init}: {says}");
        assert!(!out.exists());
    }
}

#[test]
fn a_driver_without_a_device_never_gives_ram_figures() {
    let (code, says, out, _out) = run_default(hbmark_on_fake(&[("FAKE_DEVICES", "0")]));
    assert_eq!(code, Some(3), "{says}");
    assert!(says.contains("CUDA_VISIBLE_DEVICES"), "{says}");
    assert!(!out.exists());
}

#[test]
fn an_impossible_number_of_devices_is_a_fault_of_the_driver() {
    for devices in ["-1", "1000000"] {
        let (code, says, out, _out) = run_default(hbmark_on_fake(&[("FAKE_DEVICES", devices)]));
        assert_eq!(code, Some(3), "{says}");
        assert!(says.contains(&format!("counts {devices} devices")), "{says}");
        assert!(!out.exists());
    }
}

#[test]
fn a_driver_too_old_for_the_kernels_is_named_with_the_one_that_would_do() {
    let (code, says, out, _out) = run_default(hbmark_on_fake(&[("FAKE_CUDA", "11080")]));
    assert_eq!(code, Some(3), "{says}");
    assert!(says.contains("PTX 8.0") && says.contains("CUDA 11.8") && says.contains("525 or newer"), "{says}");
    assert!(!out.exists());
}

#[test]
fn a_driver_newer_than_any_that_this_program_knows_is_used() {
    for cuda in ["13010", "99000"] {
        let (code, says, out, _out) = run_default(hbmark_on_fake(&[("FAKE_CUDA", cuda)]));
        assert_eq!(code, Some(0), "{cuda}: {says}");
        assert!(out.join("run.json").is_file());
    }
}

#[test]
fn a_device_that_is_not_here_is_refused_with_those_that_are() {
    for (asked, named) in [("5", "0 (NVIDIA Fake), 1 (NVIDIA Fake)"), ("GPU-ff", "GPU-00000000-0000-0000-0000-000000000000, GPU-01010101")]
    {
        let output = hbmark_on_fake(&[("FAKE_DEVICES", "2")]).args(["run", "--device", asked]).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(named), "{}", text(&output.stderr));
    }
}

#[test]
fn asking_for_a_gpu_without_a_driver_is_refused() {
    let output = hbmark().env(DRIVER_VARIABLE, NO_DRIVER).args(["run", "--device", "0"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(3));
}

#[cfg(target_os = "linux")]
#[test]
fn whoever_asks_for_a_gpu_where_no_driver_is_found_is_told_where_it_was_looked_for_and_that_no_toolkit_has_it() {
    if !matches!(presence(), Ok(Presence::Absent(_))) {
        println!("skipped: there is a driver here");
        return;
    }
    let output = hbmark().args(["run", "--device", "0"]).output().expect("the program starts");
    let says = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{says}");
    assert!(
        says.contains("looked for libcuda.so.1") && says.contains("not with a CUDA toolkit") && says.contains("install the driver"),
        "{says}"
    );
}

#[test]
fn the_host_is_measured_beside_a_failing_driver_when_asked_for_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    hbmark_on_fake(&[("FAKE_FAULT", "cuInit 1 999")])
        .args(["run", "stream/copy/f32@1048576", "--device", "host", "-o"])
        .arg(folder.path().join("out"))
        .assert()
        .code(0);
}

#[test]
fn listing_devices_with_a_failing_driver_shows_the_host_and_says_why_alone() {
    let output = hbmark_on_fake(&[("FAKE_FAULT", "cuInit 1 802")]).args(["list", "devices"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("host"));
    assert!(text(&output.stderr).contains("fabricmanager"));
}
