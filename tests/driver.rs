//! Drivers that are missing, broken or failing: always a reason and a cure, never RAM figures.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command as Process;

use common::{hbmark, text};
use hbmark::device::cuda::driver::{DRIVER_VARIABLE, NO_DRIVER};

/// Builds a library that answers the driver's first questions with these values.
fn driver_that_answers(folder: &Path, init: u32, devices: i32) -> PathBuf {
    let source = folder.join("driver.rs");
    std::fs::write(
        &source,
        format!(
            "#[unsafe(no_mangle)] pub extern \"C\" fn cuInit(_: u32) -> u32 {{ {init} }}
             #[unsafe(no_mangle)] pub extern \"C\" fn cuDriverGetVersion(v: &mut i32) -> u32 {{ *v = 12020; 0 }}
             #[unsafe(no_mangle)] pub extern \"C\" fn cuDeviceGetCount(n: &mut i32) -> u32 {{ *n = {devices}; 0 }}"
        ),
    )
    .expect("a source file in the temporary folder");
    let library = folder.join("libcuda.so.1");
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let built = Process::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-o"])
        .arg(&library)
        .arg(&source)
        .status()
        .expect("the compiler that built this test");
    assert!(built.success());
    library
}

/// The default run with this driver: its exit code and what it says.
fn run_with(driver: &Path) -> (Option<i32>, String, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let output = hbmark()
        .env(DRIVER_VARIABLE, driver)
        .args(["run", "stream/copy/f32@1048576", "-o"])
        .arg(&out)
        .output()
        .expect("the program starts");
    assert!(output.stdout.is_empty() || output.status.success());
    (output.status.code(), text(&output.stderr), out, folder)
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
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (code, says, out, _out) = run_with(&driver_that_answers(folder.path(), init, 1));
        assert_eq!(code, Some(3), "{says}");
        assert!(says.contains(&format!("({init}, ")) && says.contains(cure), "{init}: {says}");
        assert!(!out.exists());
    }
}

#[test]
fn a_driver_without_a_device_never_gives_ram_figures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (code, says, out, _out) = run_with(&driver_that_answers(folder.path(), 0, 0));
    assert_eq!(code, Some(3), "{says}");
    assert!(says.contains("CUDA_VISIBLE_DEVICES"), "{says}");
    assert!(!out.exists());
}

#[test]
fn an_impossible_number_of_devices_is_a_fault_of_the_driver() {
    for devices in [-1, 1_000_000] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (code, says, out, _out) = run_with(&driver_that_answers(folder.path(), 0, devices));
        assert_eq!(code, Some(3), "{says}");
        assert!(says.contains(&format!("counts {devices} devices")), "{says}");
        assert!(!out.exists());
    }
}

#[test]
fn a_device_index_beyond_those_here_is_refused_with_their_number() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let driver = driver_that_answers(folder.path(), 0, 2);
    let output = hbmark().env(DRIVER_VARIABLE, driver).args(["run", "--device", "5"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("this machine shows 2"));
}

#[test]
fn asking_for_a_gpu_without_a_driver_is_refused() {
    let output = hbmark().env(DRIVER_VARIABLE, NO_DRIVER).args(["run", "--device", "0"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn the_host_is_measured_beside_a_failing_driver_when_asked_for_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let driver = driver_that_answers(folder.path(), 999, 1);
    let output = common::small_run(&folder.path().join("out"), &["stream/copy/f32@1048576"])
        .env(DRIVER_VARIABLE, driver)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn listing_devices_with_a_failing_driver_shows_the_host_and_says_why_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let driver = driver_that_answers(folder.path(), 802, 1);
    let output = hbmark().env(DRIVER_VARIABLE, driver).args(["list", "devices"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("host"));
    assert!(text(&output.stderr).contains("fabricmanager"));
}
