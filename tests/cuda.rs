//! The kernels on a CUDA device: skipped, with the reason printed, where there is none.

mod common;

use common::{hbmark, text};
use hbmark::device::{self, Selector};
use hbmark::record::{self, Status, Verdict};

/// Runs cases on the first CUDA device; none where there is no device.
fn rows(cases: &[String]) -> Option<Vec<record::Measurement>> {
    if let Err(reason) = device::list(&Selector::Index(0)) {
        println!("skipped: {reason}");
        return None;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let output = hbmark().arg("run").args(cases).args(["--device", "0", "-o"]).arg(&out).output().expect("the program starts");
    let run = record::load(&out).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    Some(run.measurements)
}

fn stream(bytes: u64) -> Vec<String> {
    ["stream/read/f32", "stream/write/f32", "stream/copy/f32", "stream/triad/f32", "copy_engine/d2d"]
        .iter()
        .map(|case| format!("{case}@{bytes}"))
        .collect()
}

fn check(cases: &[String]) {
    for row in rows(cases).into_iter().flatten() {
        assert_eq!((row.status, row.verified, row.verdict), (Status::Ok, Some(true), Some(Verdict::Ok)), "{}: {:?}", row.id, row.reason);
    }
}

#[test]
fn sizes_that_no_vector_and_no_block_divides_are_verified() {
    let sizes = [4, 8, 12, 16, 20, 1020, 4092, 4100, 65_532, 1_048_604];
    check(&sizes.into_iter().flat_map(stream).collect::<Vec<_>>());
}

#[test]
fn more_than_two_gi_elements_are_verified() {
    let bytes = (4u64 << 31) + 28;
    let room = 4 * bytes;
    match device::list(&Selector::Index(0)).and_then(|(one, _)| device::open(one[0])?.facts()) {
        Ok(facts) if facts.free_bytes > room => check(&stream(bytes)),
        Ok(facts) => println!("skipped: {} bytes are free and {room} are needed", facts.free_bytes),
        Err(reason) => println!("skipped: {reason}"),
    }
}
