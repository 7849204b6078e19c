//! What devices cost each other that were measured at the same time: alone, together, and the factor between.

use std::collections::BTreeMap;

use super::columns::{self, figure};
use crate::chart::words;
use crate::measure::statistics::median;
use crate::record::{Contention, Measurement, Run};

/// The heads of the table; the flag says whether a column holds figures.
pub(super) const HEADS: [(&str, bool); 5] =
    [("case", false), ("device", false), ("alone GB/s", true), ("together GB/s", true), ("factor", true)];

/// The devices of one such run.
pub(super) struct Table {
    /// The cells below [`HEADS`], a row for each case and device.
    pub rows: Vec<Vec<String>>,
    /// What stands below.
    pub remarks: Vec<String>,
}

/// A table for each set of runs whose devices were measured together; `names` are those of the runs.
pub(super) fn tables(runs: &[Run], names: &[String]) -> Vec<Table> {
    let mut sets: BTreeMap<Vec<&str>, Vec<Seen>> = BTreeMap::new();
    for (run, name) in runs.iter().zip(names) {
        for row in run.measurements.iter().filter(|row| row.is_sound()) {
            let Some(contention) = &row.contention else { continue };
            let own = run.device.uuid.as_deref().unwrap_or(&run.device.name);
            let mut set: Vec<&str> = contention.others.iter().map(String::as_str).chain([own]).collect();
            set.sort_unstable();
            sets.entry(set).or_default().push(Seen { run, name, row, contention });
        }
    }
    sets.into_iter().map(|(set, seen)| table(&seen, set.len())).collect()
}

/// A row of a device that was measured beside others.
struct Seen<'a> {
    run: &'a Run,
    name: &'a str,
    row: &'a Measurement,
    contention: &'a Contention,
}

fn table(seen: &[Seen], devices: usize) -> Table {
    let mut ids: Vec<&str> = Vec::new();
    for one in seen {
        if !ids.contains(&one.row.id.as_str()) {
            ids.push(&one.row.id);
        }
    }
    let cells = |Seen { name, row, contention, .. }: &Seen| {
        let [alone, together, factor] = [row.achieved_gbps, Some(contention.achieved_gbps), Some(contention.factor)].map(figure);
        vec![words::clean(&row.id), (*name).to_owned(), alone, together, factor]
    };
    let rows = ids.iter().flat_map(|id| seen.iter().filter(move |one| one.row.id == *id)).map(cells).collect();
    let overlap = seen.iter().map(|one| one.contention.overlap_fraction).fold(1.0, f64::min);
    let mut remarks = vec![
        format!("factor: GB/s while all {devices} devices ran over GB/s alone; 1 without contention"),
        format!("all sampled at the same time: at least {} % of each one's sampling time", columns::percent(Some(overlap), 1)),
    ];
    remarks.extend(straggler(seen, devices));
    Table { rows, remarks }
}

/// The device that loses most, by the median over its cases: on equal cards the one that is slowest
/// beside the fastest while all run, on others the one with the lowest factor. None unless the runs
/// of all `devices` are there.
fn straggler(seen: &[Seen], devices: usize) -> Option<String> {
    let equal_cards = seen.iter().all(|one| one.run.device.card == seen[0].run.device.card);
    let score = |one: &Seen| {
        let of_case = seen.iter().filter(|other| other.row.id == one.row.id);
        let fastest = of_case.map(|other| other.contention.achieved_gbps).fold(f64::MIN_POSITIVE, f64::max);
        if equal_cards { one.contention.achieved_gbps / fastest } else { one.contention.factor }
    };
    let mut scores: BTreeMap<&str, (&Run, Vec<f64>)> = BTreeMap::new();
    for one in seen {
        scores.entry(one.name).or_insert((one.run, Vec::new())).1.push(score(one));
    }
    if scores.len() < devices {
        return None;
    }
    let medians = scores.into_iter().map(|(name, (run, scores))| (median(&scores), name, run));
    let (score, name, run) = medians.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let uuid = run.device.uuid.as_deref().map(|uuid| format!(" ({})", words::clean(uuid))).unwrap_or_default();
    let how = match equal_cards {
        true => format!("{} % of the fastest while all ran", columns::percent(Some(score), 1)),
        false => format!("the lowest factor, {}", figure(Some(score))),
    };
    Some(format!("straggler: {name}{uuid}: {how} (median of its cases)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200, host, spoil};

    /// The run as `name`, with these factors of its first cases of the memory, beside `others`.
    fn beside(mut run: Run, own: &str, others: &[&str], factors: &[f64]) -> Run {
        run.device.uuid = Some(own.to_owned());
        for (row, &factor) in run.measurements.iter_mut().skip(1).zip(factors) {
            row.contention = Some(Contention {
                others: others.iter().map(|other| (*other).to_owned()).collect(),
                achieved_gbps: row.achieved_gbps.unwrap() * factor,
                time_ns: row.time_ns.clone().unwrap(),
                overlap_fraction: 0.975,
                factor,
            });
        }
        run
    }

    fn names(runs: &[Run]) -> Vec<String> {
        words::names(&runs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn each_case_has_a_row_for_each_device_alone_together_and_the_factor() {
        let runs = [beside(h200(), "GPU-1", &["GPU-2"], &[1.0, 0.99]), beside(h200(), "GPU-2", &["GPU-1"], &[0.5, 0.98])];
        let [table] = &tables(&runs, &names(&runs))[..] else { panic!("one set of devices") };
        let rows: Vec<String> = table.rows.iter().map(|cells| cells.join(" | ")).collect();
        assert_eq!(
            rows,
            [
                "stream/read/f32 | NVIDIA H200 (1) | 4712.3 | 4712.3 | 1.00",
                "stream/read/f32 | NVIDIA H200 (2) | 4712.3 | 2356.2 | 0.500",
                "stream/write/f32 | NVIDIA H200 (1) | 4697.0 | 4650.0 | 0.990",
                "stream/write/f32 | NVIDIA H200 (2) | 4697.0 | 4603.1 | 0.980",
            ]
        );
        assert!(table.remarks[1].contains("97.5 %"), "{:?}", table.remarks);
    }

    #[test]
    fn on_equal_cards_the_straggler_is_the_slowest_while_all_ran() {
        // The first loses most of its own bandwidth, and is still the faster one.
        let mut slow = h200();
        slow.measurements.iter_mut().for_each(|row| row.achieved_gbps = row.achieved_gbps.map(|gbps| gbps / 2.0));
        slow.measurements.iter_mut().for_each(|row| row.time_ns.as_mut().unwrap().median *= 2.0);
        let runs = [beside(h200(), "GPU-1", &["GPU-2"], &[0.9, 0.9]), beside(slow, "GPU-2", &["GPU-1"], &[1.0, 1.0])];
        let straggler = tables(&runs, &names(&runs)).remove(0).remarks.pop().unwrap();
        assert_eq!(straggler, "straggler: NVIDIA H200 (2) (GPU-2): 55.6 % of the fastest while all ran (median of its cases)");
    }

    #[test]
    fn on_different_devices_the_straggler_has_the_lowest_factor() {
        let runs = [beside(h200(), "GPU-1", &["the host"], &[0.9, 0.9]), beside(host(), "the host", &["GPU-1"], &[1.0, 1.0])];
        let straggler = tables(&runs, &names(&runs)).remove(0).remarks.pop().unwrap();
        assert!(straggler.starts_with("straggler: NVIDIA H200 (GPU-1): the lowest factor, 0.900"), "{straggler}");
    }

    #[test]
    fn one_run_of_several_has_its_own_rows_and_names_no_straggler() {
        let runs = [beside(h200(), "GPU-1", &["GPU-2"], &[0.9, 0.8])];
        let table = tables(&runs, &names(&runs)).remove(0);
        assert_eq!((table.rows.len(), table.remarks.len()), (2, 2));
        assert!(table.remarks[0].contains("all 2 devices"), "{:?}", table.remarks);
    }

    #[test]
    fn rows_that_are_not_sound_and_runs_of_one_device_have_no_table() {
        assert!(tables(&[h200(), host()], &names(&[h200(), host()])).is_empty());
        let mut wrong = beside(h200(), "GPU-1", &["GPU-2"], &[1.0]);
        spoil(&mut wrong, "stream/read/f32");
        assert!(tables(&[wrong.clone()], &names(&[wrong])).is_empty());
    }

    #[test]
    fn devices_of_different_sets_are_never_in_one_table() {
        let of = |own, other| beside(h200(), own, &[other], &[1.0]);
        let runs = [of("GPU-1", "GPU-2"), of("GPU-2", "GPU-1"), of("GPU-3", "GPU-4"), of("GPU-4", "GPU-3")];
        assert_eq!(tables(&runs, &names(&runs)).iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [2, 2]);
    }
}
