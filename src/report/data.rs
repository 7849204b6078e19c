//! "What the data change": runs of one device on other contents of its arrays, side by side.

use super::columns;
use super::markdown::{escape, grid};
use crate::pattern::Data;
use crate::record::{Measurement, Run};

/// The section; nothing where no device was measured on two kinds of data.
pub(super) fn section(runs: &[Run], names: &[String]) -> String {
    let mut rows = Vec::new();
    for (run, name) in runs.iter().zip(names).filter(|(run, _)| run.data != Data::Random) {
        let Some(random) = runs.iter().find(|other| other.data == Data::Random && is_same(other, run)) else { continue };
        for row in run.measurements.iter().filter(|row| row.is_sound() && row.pattern != "compute" && row.latency_ns.is_none()) {
            let reference = random.measurements.iter().find(|other| other.id == row.id && other.is_sound());
            rows.extend(reference.and_then(|reference| compared(name, run.data, row, reference)));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let heads = [("device", false), ("case", false), ("data", false), ("GB/s", true), ("random data GB/s", true), ("change %", true)];
    format!(
        "## What the data change\n\n{}\nMemory that compresses, or whose lines toggle less, is faster on zeros or on one constant than on random \
         data. Changes within the noise of both rows mean nothing.\n\n",
        grid(&heads.map(|(head, figures)| (head.to_owned(), figures)), rows)
    )
}

/// Whether two runs measured one device in one way.
fn is_same(a: &Run, b: &Run) -> bool {
    (&a.device.uuid, &a.device.name, &a.suite_version) == (&b.device.uuid, &b.device.name, &b.suite_version)
}

fn compared(name: &str, data: Data, row: &Measurement, reference: &Measurement) -> Option<Vec<String>> {
    let (gbps, random) = (row.achieved_gbps?, reference.achieved_gbps?);
    let change = format!("{:+.1}", (gbps / random - 1.0) * 100.0);
    Some(vec![name.to_owned(), escape(&row.id), data.to_string(), columns::figure(Some(gbps)), columns::figure(Some(random)), change])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::h200_with_every_pattern as h200;

    #[test]
    fn only_runs_of_one_device_are_compared_and_each_case_says_what_the_data_change() {
        let random = h200();
        let mut zero = Run { data: Data::Zero, ..h200() };
        let row = zero.measurements.iter_mut().find(|row| row.id == "stream/copy/f32").unwrap();
        row.achieved_gbps = row.achieved_gbps.map(|gbps| gbps * 1.1);
        row.time_ns.as_mut().unwrap().median /= 1.1;
        let names = ["one".to_owned(), "two".to_owned()];
        let text = section(&[random.clone(), zero.clone()], &names);
        assert!(text.contains("| two | stream/copy/f32 | zero | ") && text.contains("| +10.0 |"), "{text}");
        assert!(text.contains("| two | stream/read/f32 | zero | ") && text.contains("| +0.0 |"), "{text}");
        assert!(!text.contains("latency/"), "{text}");
        assert_eq!(section(&[random.clone(), random.clone()], &names), "");
        zero.device.uuid = Some("GPU-another".into());
        assert_eq!(section(&[random, zero], &names), "");
    }
}
