//! `csv`: tidy, one row a measurement, the run's identity in every row. What is
//! not known is empty.

use super::{Exporter, ReportError};
use crate::chart::words;
use crate::record::{Measurement, Run};

pub(super) struct Csv;

type Column = (&'static str, fn(&Run, &Measurement) -> String);

/// Names as in the run document, with the unit where the document has a map or a
/// list. All figures are measured, except the theoretical memory peak and that of the data sheet.
const COLUMNS: &[Column] = &[
    ("card", |run, _| text(&run.device.card)),
    ("device", |run, _| text(&run.device.name)),
    ("kind", |run, _| run.device.kind.to_string()),
    ("uuid", |run, _| run.device.uuid.as_deref().map(text).unwrap_or_default()),
    ("started_at", |run, _| text(&run.started_at)),
    ("suite_version", |run, _| text(&run.suite_version)),
    ("program_version", |run, _| text(&run.program.version)),
    ("driver_version", |run, _| run.device.driver_version.as_deref().map(text).unwrap_or_default()),
    ("labels", |run, _| text(&run.labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("; "))),
    ("id", |_, row| text(&row.id)),
    ("pattern", |_, row| text(&row.pattern)),
    ("level", |_, row| row.level.map(words::level).unwrap_or_default().to_owned()),
    ("status", |_, row| words::status(row.status).to_owned()),
    ("reason", |_, row| row.reason.as_deref().map(text).unwrap_or_default()),
    ("verified", |_, row| shown(row.verified)),
    ("mismatches", |_, row| shown(row.mismatches)),
    ("verdict", |_, row| row.verdict.map(words::verdict).unwrap_or_default().to_owned()),
    ("marks", |_, row| row.marks.iter().map(|mark| words::mark(*mark)).collect::<Vec<_>>().join("; ")),
    ("achieved_gbps", |_, row| number(row.achieved_gbps)),
    ("compulsory_gbps", |_, row| number(row.compulsory_gbps)),
    ("fraction_of_peak", |_, row| number(row.fraction_of_peak)),
    ("naive_gbps", |_, row| number(row.tuning.as_ref().and_then(|tuning| tuning.naive_gbps))),
    ("ease_kib_per_unit", |_, row| number(row.tuning.as_ref().and_then(|tuning| tuning.ease_kib_per_unit))),
    ("fraction_of_link", |_, row| number(row.fraction_of_link)),
    ("link_gbps", |run, _| number(run.peaks.link_theoretical_gbps())),
    ("latency_ns", |_, row| number(row.latency_ns)),
    ("latency_cycles", |_, row| number(row.latency_cycles)),
    ("theoretical_peak_gbps", |run, _| number(run.peaks.memory_theoretical_gbps())),
    ("datasheet_peak_gbps", |run, _| number(run.peaks.memory_datasheet_gbps())),
    ("achieved_gflops", |_, row| number(row.achieved_gflops)),
    ("compute_utilization", |_, row| number(row.compute_utilization)),
    ("compute_pipe", |_, row| row.compute_pipe.as_deref().map(text).unwrap_or_default()),
    ("measured_peak_gflops", |run, row| number(row.compute_pipe.as_deref().and_then(|pipe| run.peaks.compute_measured_gflops(pipe)))),
    ("theoretical_gflops", |_, row| number(row.theoretical_gflops)),
    ("fraction_of_theoretical", |_, row| number(row.fraction_of_theoretical)),
    ("sm_clock_mhz", |_, row| number(row.sm_clock_mhz)),
    ("time_median_ns", |_, row| number(row.time_ns.as_ref().map(|time| time.median))),
    ("time_p25_ns", |_, row| number(row.time_ns.as_ref().map(|time| time.p25))),
    ("time_p75_ns", |_, row| number(row.time_ns.as_ref().map(|time| time.p75))),
    ("time_min_ns", |_, row| number(row.time_ns.as_ref().map(|time| time.min))),
    ("time_max_ns", |_, row| number(row.time_ns.as_ref().map(|time| time.max))),
    ("noise_fraction", |_, row| number(row.time_ns.as_ref().map(|time| time.noise_fraction))),
    ("samples", |_, row| shown(row.time_ns.as_ref().map(|time| time.n))),
    ("executions_per_sample", |_, row| shown(row.time_ns.as_ref().map(|time| time.executions_per_sample))),
    ("requested_read_bytes", |_, row| shown(row.bytes.map(|bytes| bytes.requested_read))),
    ("requested_write_bytes", |_, row| shown(row.bytes.map(|bytes| bytes.requested_write))),
    ("compulsory_bytes", |_, row| shown(row.bytes.map(|bytes| bytes.compulsory))),
    ("issued_bytes", |_, row| shown(row.bytes.and_then(|bytes| bytes.issued))),
    ("flops", |_, row| shown(row.flops)),
    ("memory_clock_mhz", |_, row| number(row.telemetry.as_ref().and_then(|told| Some(told.memory_clock_mhz?.median)))),
    ("temperature_gpu_max_c", |_, row| number(row.telemetry.as_ref().and_then(|told| told.temperature_gpu_max_c))),
    ("temperature_memory_max_c", |_, row| number(row.telemetry.as_ref().and_then(|told| told.temperature_memory_max_c))),
    ("power_mean_w", |_, row| number(row.telemetry.as_ref().and_then(|told| told.power_mean_w))),
    ("joules_per_gb", |_, row| number(row.telemetry.as_ref().and_then(|told| told.joules_per_gb))),
    ("contention_others", |_, row| text(&row.contention.as_ref().map(|seen| seen.others.join("; ")).unwrap_or_default())),
    ("contention_gbps", |_, row| number(row.contention.as_ref().map(|seen| seen.achieved_gbps))),
    ("contention_time_median_ns", |_, row| number(row.contention.as_ref().map(|seen| seen.time_ns.median))),
    ("contention_samples", |_, row| shown(row.contention.as_ref().map(|seen| seen.time_ns.n))),
    ("contention_overlap_fraction", |_, row| number(row.contention.as_ref().map(|seen| seen.overlap_fraction))),
    ("contention_factor", |_, row| number(row.contention.as_ref().map(|seen| seen.factor))),
    ("soak_s", |_, row| number(row.soak.as_ref().map(|soak| soak.run_s))),
    ("soak_first_10_s_gbps", |_, row| number(row.soak.as_ref().map(|soak| soak.first_10_s_gbps))),
    ("soak_last_10_s_gbps", |_, row| number(row.soak.as_ref().map(|soak| soak.last_10_s_gbps))),
    ("soak_last_over_first_fraction", |_, row| number(row.soak.as_ref().and_then(|soak| soak.last_over_first_fraction))),
    ("soak_joules_per_gb", |_, row| number(row.soak.as_ref().and_then(|soak| soak.joules_per_gb))),
    ("soak_power_mean_w", |_, row| number(row.soak.as_ref().and_then(|soak| soak.power_mean_w))),
    ("soak_power_max_w", |_, row| number(row.soak.as_ref().and_then(|soak| soak.power_max_w))),
    ("soak_temperature_gpu_max_c", |_, row| number(row.soak.as_ref().and_then(|soak| soak.temperature_gpu_max_c))),
    ("soak_temperature_memory_max_c", |_, row| number(row.soak.as_ref().and_then(|soak| soak.temperature_memory_max_c))),
    ("soak_throttled_fraction", |_, row| number(row.soak.as_ref().and_then(|soak| soak.throttled_fraction))),
    ("parameters", |_, row| json(&row.parameters)),
    ("variant", |_, row| json(&row.variant)),
    ("notes", |_, row| text(&row.notes.join("; "))),
];

impl Exporter for Csv {
    fn export(&self, runs: &[Run]) -> Result<String, ReportError> {
        let mut csv = ::csv::Writer::from_writer(Vec::new());
        csv.write_record(COLUMNS.iter().map(|(name, _)| name))?;
        for run in runs {
            for row in &run.measurements {
                csv.write_record(COLUMNS.iter().map(|(_, cell)| cell(run, row)))?;
            }
        }
        let bytes = csv.into_inner().map_err(|error| ::csv::Error::from(error.into_error()))?;
        // Every field was a string.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Text from outside. A spreadsheet would run it as a formula if it began like
/// one; an apostrophe before it marks it as text (OWASP, "CSV Injection").
fn text(text: &str) -> String {
    let text = words::clean(text);
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text }
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn number(value: Option<f64>) -> String {
    shown(value.filter(|value| value.is_finite()))
}

/// A map as JSON; none as nothing.
fn json(map: &serde_json::Map<String, serde_json::Value>) -> String {
    if map.is_empty() { String::new() } else { serde_json::Value::Object(map.clone()).to_string() }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::chart::testing::{h200, h200_tuned, h200_with_a_soak, host, spoil};
    use crate::record::Status;

    fn parse(runs: &[Run]) -> Vec<HashMap<String, String>> {
        let text = Csv.export(runs).unwrap();
        ::csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn every_measurement_is_a_row_with_its_runs_identity() {
        let runs = [h200(), host()];
        let rows = parse(&runs);
        assert_eq!(rows.len(), runs.iter().map(|run| run.measurements.len()).sum::<usize>());
        assert_eq!(rows[0]["card"], "nvidia-h200");
        assert_eq!(rows[0]["device"], "NVIDIA H200");
        assert_eq!(rows[0]["kind"], "cuda");
        assert_eq!(rows.last().unwrap()["kind"], "host");
        assert!(rows.iter().all(|row| row["started_at"] == "2026-01-02T03:04:05Z" && row["suite_version"] == "1"));
    }

    #[test]
    fn figures_parse_back_exactly() {
        let mut run = h200();
        run.measurements[1].achieved_gbps = Some(4712.345678901234);
        run.measurements[1].fraction_of_peak = Some(1.25);
        let row = &parse(&[run.clone()])[1];
        assert_eq!(row["id"], "stream/read/f32");
        assert_eq!(row["achieved_gbps"].parse::<f64>().unwrap(), 4712.345678901234);
        assert_eq!(row["fraction_of_peak"], "1.25");
        assert_eq!(row["requested_read_bytes"].parse::<u64>().unwrap(), 3840 << 20);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&row["parameters"]).unwrap()["array_bytes"], 3840u64 << 20);
    }

    #[test]
    fn naive_and_ease_stand_in_the_rows_that_were_tuned() {
        let rows = parse(&[h200_tuned()]);
        let of =
            |id: &str| rows.iter().find(|row| row["id"] == id).map(|row| (row["naive_gbps"].clone(), row["ease_kib_per_unit"].clone()));
        assert_eq!(of("stream/read/f32"), Some(("2427.6".into(), "21.49".into())));
        assert_eq!(of("stream/write/f32"), Some(("3386".into(), String::new())));
        assert_eq!(of("copy_engine/d2d"), Some((String::new(), String::new())));
    }

    #[test]
    fn a_soak_is_in_the_row_of_its_case_alone() {
        let rows = parse(&[h200_with_a_soak()]);
        let of = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
        let (read, copy) = (of("stream/read/f32"), of("stream/copy/f32"));
        assert_eq!((read["soak_s"].as_str(), read["soak_last_over_first_fraction"].as_str()), ("600.1", "0.96"));
        assert_eq!((copy["soak_s"].as_str(), copy["soak_joules_per_gb"].as_str()), ("", ""));
    }

    #[test]
    fn what_is_not_known_is_empty() {
        let mut run = host();
        run.measurements[1].achieved_gbps = Some(f64::NAN);
        run.measurements.push(Measurement::without_figures("x", "x", Status::Timeout, "no end\nin time".into()));
        let rows = parse(&[run]);
        assert_eq!(rows[1]["achieved_gbps"], "");
        assert_eq!(rows[1]["theoretical_peak_gbps"], "");
        assert_eq!(rows[1]["uuid"], "");
        let last = rows.last().unwrap();
        assert_eq!((last["status"].as_str(), last["reason"].as_str(), last["verdict"].as_str()), ("timeout", "no end in time", ""));
    }

    #[test]
    fn wrong_data_are_told_in_their_row() {
        let mut run = h200();
        spoil(&mut run, "stream/copy/f32");
        let rows = parse(&[run]);
        let row = rows.iter().find(|row| row["id"] == "stream/copy/f32").unwrap();
        assert_eq!((row["verified"].as_str(), row["mismatches"].as_str(), row["verdict"].as_str()), ("false", "12", "unverified"));
    }

    #[test]
    fn text_that_begins_like_a_formula_is_marked_as_text() {
        for name in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r\n=1"] {
            let mut run = h200();
            run.device.name = name.into();
            let cell = parse(&[run])[0]["device"].clone();
            assert!(cell.starts_with('\''), "{cell:?}");
        }
    }

    #[test]
    fn quotes_commas_and_line_ends_stay_in_their_cell() {
        let mut run = h200();
        run.device.name = "a \"b\", c\nd".into();
        assert_eq!(parse(&[run])[0]["device"], "a \"b\", c d");
    }
}
