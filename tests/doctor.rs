//! `hbmark doctor`: cause and cure for what is missing, and whether CUDA would work.

mod common;

use assert_cmd::Command;
use common::{hbmark, hbmark_on_fake, hbmark_on_fake_card, text};
use hbmark::device::cuda::driver::{DRIVER_VARIABLE, NO_DRIVER};
use serde_json::Value;

/// Exit code and what is printed.
fn doctor(mut hbmark: Command) -> (Option<i32>, String) {
    let output = hbmark.env_remove("CUDA_DEVICE_ORDER").arg("doctor").output().expect("the program starts");
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    (output.status.code(), text(&output.stdout))
}

fn json(mut hbmark: Command) -> Value {
    let output = hbmark.args(["doctor", "--format", "json"]).output().expect("the program starts");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn without_driver() -> Command {
    let mut command = hbmark();
    command.env(DRIVER_VARIABLE, NO_DRIVER);
    command
}

#[test]
fn a_working_device_is_exit_0_and_a_machine_without_one_is_3() {
    let (code, says) = doctor(hbmark_on_fake(&[("FAKE_DEVICES", "2")]));
    assert_eq!(code, Some(0), "{says}");
    assert!(
        says.starts_with("CUDA works: 2 of 2 devices") && says.contains("CUDA version  12.2") && says.contains("fake-driver"),
        "{says}"
    );
    let (code, says) = doctor(without_driver());
    assert_eq!(code, Some(3), "{says}");
    assert!(says.contains("only the host") && says.contains("install the driver"), "{says}");
}

#[test]
fn a_driver_that_was_not_found_is_told_with_the_places_that_were_searched() {
    let (code, says) = doctor({
        let mut command = hbmark();
        command.env(DRIVER_VARIABLE, "/nonexistent/libcuda.so.1");
        command
    });
    assert_eq!(code, Some(3), "{says}");
    assert!(says.contains("looked for /nonexistent/libcuda.so.1") && says.contains(DRIVER_VARIABLE), "{says}");
}

#[test]
fn each_failure_of_the_driver_has_its_cause_and_its_cure() {
    for (fault, cure) in [
        ("cuInit 1 34", "stubs out of LD_LIBRARY_PATH"),
        ("cuInit 1 100", "nvidia-smi -L"),
        ("cuInit 1 802", "nvidia-fabricmanager"),
        ("cuInit 1 803", "reboot"),
        ("cuInit 1 999", "suspend"),
        ("cuDevicePrimaryCtxRetain 1 46", "compute mode"),
        ("cuModuleLoadDataEx 1 222", "525 or newer"),
    ] {
        let (code, says) = doctor(hbmark_on_fake(&[("FAKE_FAULT", fault)]));
        let number = fault.rsplit(' ').next().expect("a code");
        let problem = says.lines().find(|line| line.starts_with("problem: ")).unwrap_or_else(|| panic!("{says}"));
        assert!(problem.contains(&format!("({number}, CUDA_ERROR_")) && problem.contains(cure), "{fault}: {says}");
        assert_eq!(code, Some(3), "{fault}: {says}");
    }
}

#[test]
fn a_variable_that_hides_every_device_is_named_with_its_value() {
    let mut command = hbmark_on_fake(&[("FAKE_DEVICES", "0")]);
    command.env("CUDA_VISIBLE_DEVICES", "7");
    let (code, says) = doctor(command);
    assert_eq!(code, Some(3), "{says}");
    assert!(says.contains("CUDA_VISIBLE_DEVICES is set to '7'") && says.contains("unset it"), "{says}");
    let (_, says) = doctor({
        let mut command = hbmark_on_fake(&[("FAKE_DEVICES", "0")]);
        command.env_remove("CUDA_VISIBLE_DEVICES");
        command
    });
    assert!(!says.contains("is set to") && says.contains("look at 'nvidia-smi -L'"), "{says}");
}

#[test]
fn a_driver_older_than_the_kernels_is_told_with_both_versions() {
    let (code, says) = doctor(hbmark_on_fake(&[("FAKE_CUDA", "11080")]));
    assert_eq!(code, Some(3), "{says}");
    assert!(says.contains("needs CUDA 12.0 (driver 525 or newer): this driver is older") && says.contains("CUDA version  11.8"), "{says}");
}

#[test]
fn one_device_that_fails_leaves_cuda_usable_on_the_other() {
    let (code, says) = doctor(hbmark_on_fake(&[("FAKE_DEVICES", "2"), ("FAKE_FAULT", "cuDevicePrimaryCtxRetain 1 46")]));
    assert_eq!(code, Some(0), "{says}");
    assert!(says.contains("1 of 2 devices") && says.contains("problem: device 0: ") && says.contains("cannot be used"), "{says}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_nvml_tells_is_shown_and_what_it_does_not_has_a_reason() {
    let (code, says) = doctor(hbmark_on_fake_card(&[("FAKE_NVML_REASONS", "4"), ("FAKE_NVML_PIDS", "self,1,2")]));
    assert_eq!(code, Some(0), "{says}");
    for shown in [
        "driver        580.159.04",
        "140 GiB free",
        "multiprocessors 1980 MHz, memory 3201 MHz, state P0; held back by: SwPowerCap",
        "600 W; 41 °C, memory 52 °C",
        "650 W; 650 W requested, 700 W by default",
        "ECC         on",
        "MIG off, slice: none",
        "other processes: 2",
    ] {
        assert!(says.contains(shown), "{shown}: {says}");
    }
    let untold = says.lines().find(|line| line.contains("not told") && line.contains("serial")).expect("a reason for the serial number");
    assert!(untold.contains("NVML: this driver cannot tell"), "{untold}");
    assert!(!says.contains("problem: "), "{says}");
}

#[test]
fn a_container_without_the_utility_capability_is_told_so_and_cuda_works_all_the_same() {
    let told = json(hbmark_on_fake(&[]));
    // On a machine that has NVML there is nothing to tell.
    if told["driver"]["version"].is_null() {
        let problems = told["problems"].as_array().expect("problems");
        assert!(problems.iter().any(|problem| problem.as_str().is_some_and(|text| text.contains("'utility'"))), "{problems:?}");
    }
    assert_eq!(told["devices"][0]["usable"], true);
}

#[test]
fn for_programs_each_null_has_a_reason() {
    fn reasons(object: &Value, path: &str) {
        for (field, value) in object.as_object().expect("an object") {
            assert!(!value.is_null() || object["missing"][field].is_string(), "{path}{field}");
            if value.is_object() && field != "missing" {
                reasons(value, &format!("{path}{field}."));
            }
        }
    }
    for command in [hbmark_on_fake(&[]), hbmark_on_fake(&[("FAKE_FAULT", "cuDevicePrimaryCtxRetain 1 46")]), without_driver()] {
        let told = json(command);
        assert!(told["usable"].is_boolean() && told["problems"].is_array());
        for object in ["host", "virtualization", "driver"] {
            reasons(&told[object], object);
        }
        for device in told["devices"].as_array().expect("devices") {
            reasons(device, "device.");
        }
        assert!(told["kernels"].as_array().is_some_and(|kernels| kernels.iter().all(|one| one["ptx_version"] == "8.0")));
    }
}
