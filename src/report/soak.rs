//! What became of cases that a device worked at for long: both ends, energy, heat, and how much it was held back.

use super::columns::{UNKNOWN, figure, percent};
use crate::chart::words;
use crate::record::{Run, Soak};

/// The heads of the table; the flag says whether a column holds figures.
pub(super) const HEADS: [(&str, bool); 11] = [
    ("case", false),
    ("device", false),
    ("soak s", true),
    ("first GB/s", true),
    ("last GB/s", true),
    ("last/first %", true),
    ("energy J/GB", true),
    ("mean W", true),
    ("most W", true),
    ("hottest °C", true),
    ("throttled %", true),
];

/// The soaks of all runs.
pub(super) struct Table {
    /// The cells below [`HEADS`].
    pub rows: Vec<Vec<String>>,
    /// What stands below.
    pub remarks: Vec<String>,
}

/// The table of all sound rows with a soak; none without any. `names` are those of the runs.
pub(super) fn table(runs: &[Run], names: &[String]) -> Option<Table> {
    let (mut rows, mut held_back, mut whys) = (Vec::new(), Vec::new(), Vec::new());
    for (run, name) in runs.iter().zip(names) {
        for row in run.measurements.iter().filter(|row| row.is_sound()) {
            let Some(soak) = &row.soak else { continue };
            let id = words::clean(&row.id);
            held_back.extend(words::held_back(soak).map(|why| format!("{id}, {name}: {why}")));
            // A host has no sensors: the table would show dashes and no reason.
            for field in ["power_mean_w", "temperature_gpu_max_c", "throttled_fraction"] {
                let why = soak.missing.get(field).map(|why| format!("{name}: not told, because {}", words::clean(why)));
                whys.extend(why.filter(|why| !whys.contains(why)));
            }
            rows.push(cells(id, name, soak));
        }
    }
    let mut remarks = vec![
        "first, last: requested bytes over the first and the last ten seconds of work without a pause".to_owned(),
        "energy: that of the whole board over requested bytes; hottest: chip / memory".to_owned(),
        "throttled: the share of the readings in which a limit held the clocks back".to_owned(),
    ];
    remarks.extend(held_back);
    remarks.extend(whys);
    (!rows.is_empty()).then_some(Table { rows, remarks })
}

fn cells(id: String, name: &str, soak: &Soak) -> Vec<String> {
    let degrees = |celsius: Option<f64>| celsius.map_or(UNKNOWN.to_owned(), |celsius| format!("{celsius:.0}"));
    vec![
        id,
        name.to_owned(),
        figure(Some(soak.run_s)),
        figure(Some(soak.first_10_s_gbps)),
        figure(Some(soak.last_10_s_gbps)),
        percent(soak.last_over_first_fraction, 2),
        figure(soak.joules_per_gb),
        figure(soak.power_mean_w),
        figure(soak.power_max_w),
        match (soak.temperature_gpu_max_c, soak.temperature_memory_max_c) {
            (None, None) => UNKNOWN.to_owned(),
            (chip, memory) => format!("{} / {}", degrees(chip), degrees(memory)),
        },
        percent(soak.throttled_fraction, 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200_with_a_soak, host, spoil};

    fn names(runs: &[Run]) -> Vec<String> {
        words::names(&runs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn each_soak_has_a_row_and_below_it_stands_what_held_it_back() {
        let runs = [h200_with_a_soak()];
        let table = table(&runs, &names(&runs)).unwrap();
        let cells: Vec<String> = table.rows.iter().map(|cells| cells.join(" | ")).collect();
        assert_eq!(cells, ["stream/read/f32 | NVIDIA H200 | 600.1 | 4610.0 | 4425.6 | 96.00 | 0.145 | 655.0 | 699.0 | 71 / 88 | 50.0"]);
        assert_eq!(cells.len(), 1);
        let held_back = "stream/read/f32, NVIDIA H200: held back by SwPowerCap in 50.0 % of the readings";
        assert!(table.remarks.iter().any(|remark| remark == held_back), "{:?}", table.remarks);
    }

    #[test]
    fn what_no_sensor_tells_is_a_dash_with_its_reason_once() {
        let mut run = host();
        let mut soak = h200_with_a_soak().measurements.into_iter().find_map(|row| row.soak).unwrap();
        (soak.power_mean_w, soak.power_max_w, soak.joules_per_gb) = (None, None, None);
        (soak.temperature_gpu_max_c, soak.temperature_memory_max_c) = (None, None);
        (soak.throttled_fraction, soak.throttle_reasons) = (None, None);
        for field in ["power_mean_w", "temperature_gpu_max_c", "throttled_fraction"] {
            soak.missing.insert(field.into(), "a host's sensors are not read".into());
        }
        run.measurements[1].soak = Some(soak);
        let table = table(&[run.clone()], &names(&[run])).unwrap();
        assert_eq!(table.rows[0][6..], ["-", "-", "-", "-", "-"]);
        assert_eq!(table.remarks.iter().filter(|remark| remark.contains("sensors are not read")).count(), 1);
    }

    #[test]
    fn runs_without_a_soak_and_rows_that_are_not_sound_have_no_table() {
        assert!(table(&[host()], &names(&[host()])).is_none());
        let mut wrong = h200_with_a_soak();
        spoil(&mut wrong, "stream/read/f32");
        assert!(table(&[wrong.clone()], &names(&[wrong])).is_none());
    }
}
