//! The kernels on a CUDA device: skipped where there is no NVIDIA driver.

mod common;

use common::{hbmark, text};
use hbmark::device::cuda::{Presence, presence};
use hbmark::device::{self, Selected};
use hbmark::record::{self, Status, Verdict};

/// Whether there is a driver; one that is there but fails is a failure of these tests.
fn has_gpu() -> bool {
    match presence() {
        Ok(Presence::Working { .. }) => true,
        Ok(Presence::Absent(reason)) => {
            println!("skipped: {reason}");
            false
        }
        Err(fault) => panic!("{fault}"),
    }
}

/// Runs cases on the first CUDA device.
fn rows(cases: &[String]) -> Vec<record::Measurement> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let output = hbmark().arg("run").args(cases).args(["--device", "0", "-o"]).arg(&out).output().expect("the program starts");
    record::load(&out).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr))).measurements
}

fn stream(bytes: u64) -> Vec<String> {
    ["stream/read/f32", "stream/write/f32", "stream/copy/f32", "stream/triad/f32", "copy_engine/d2d"]
        .iter()
        .map(|case| format!("{case}@{bytes}"))
        .collect()
}

fn check(cases: &[String]) {
    for row in rows(cases) {
        assert_eq!((row.status, row.verified, row.verdict), (Status::Ok, Some(true), Some(Verdict::Ok)), "{}: {:?}", row.id, row.reason);
    }
}

#[test]
fn sizes_that_no_vector_and_no_block_divides_are_verified() {
    if has_gpu() {
        let sizes = [4, 8, 12, 16, 20, 1020, 4092, 4100, 65_532, 1_048_604];
        check(&sizes.into_iter().flat_map(stream).collect::<Vec<_>>());
    }
}

#[test]
fn more_than_two_gi_elements_are_verified() {
    if !has_gpu() {
        return;
    }
    let bytes = (4u64 << 31) + 28;
    let room = 4 * bytes;
    let free = device::open(Selected::Cuda(0)).and_then(|device| device.facts()).expect("a working device").free_bytes;
    if free > room {
        check(&stream(bytes));
    } else {
        println!("skipped: {free} bytes are free and {room} are needed");
    }
}
