//! Text for people, shared by charts and reports.

use std::collections::{BTreeMap, BTreeSet};

use crate::measure;
use crate::pattern::{CacheState, Data, DeviceKind, Level};
use crate::record::{Mark, Measurement, Run, Soak, Status, Verdict};

/// What every table and chart of a host run says.
pub(crate) const NOT_A_GPU: &str = "RAM of this machine, not a GPU";

/// Names and labels beyond this would push the figures off the page.
const NAME_CHARS: usize = 60;

/// Text that came from outside, on one line: control and direction-changing
/// characters could break a table, an SVG or a terminal.
pub(crate) fn clean(text: &str) -> String {
    let unsafe_char = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    let spaced: String = text.chars().map(|c| if unsafe_char(c) { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shortened(text: &str) -> String {
    let text = clean(text);
    match text.char_indices().nth(NAME_CHARS) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}

/// The name of each run's device. Equal names are told apart by the device's index where
/// each has one of its own, as the cards of one machine have, and else by number in the
/// order given.
pub(crate) fn names(runs: &[&Run]) -> Vec<String> {
    let plain: Vec<String> = runs
        .iter()
        .map(|run| match shortened(&run.device.name) {
            name if name.is_empty() => "unnamed device".to_owned(),
            name => name,
        })
        .collect();
    let mut seen = BTreeMap::<&str, usize>::new();
    plain
        .iter()
        .zip(runs)
        .map(|(name, run)| {
            let nth = seen.entry(name).or_default();
            *nth += 1;
            let equal: Vec<Option<u32>> =
                plain.iter().zip(runs).filter(|(other, _)| *other == name).map(|(_, run)| run.device.index).collect();
            let distinct: BTreeSet<_> = equal.iter().flatten().collect();
            match run.device.index {
                _ if equal.len() == 1 => name.clone(),
                Some(index) if distinct.len() == equal.len() => format!("{name}, device {index}"),
                _ => format!("{name} ({nth})"),
            }
        })
        .collect()
}

/// Up to two decimals, without trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A size in binary units, such as `3.75 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", trimmed(value), UNITS[unit])
}

/// A figure with three significant digits, or all digits before the point.
pub(crate) fn figure(value: f64) -> String {
    // Far more decimals than any figure here has digits: 10^-9 is one byte a second in GB/s.
    let decimals = if value == 0.0 { 0.0 } else { (2.0 - value.abs().log10().floor()).clamp(0.0, 11.0) };
    format!("{value:.*}", decimals as usize)
}

/// A duration in the unit that suits it, such as `1.71 ms`.
pub(crate) fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        v if v < 1e3 => (v, "ns"),
        v if v < 1e6 => (v / 1e3, "µs"),
        v if v < 1e9 => (v / 1e6, "ms"),
        v => (v / 1e9, "s"),
    };
    format!("{} {unit}", figure(value))
}

/// The day of an RFC 3339 time stamp; other text as it is.
fn day(started_at: &str) -> String {
    let day = started_at.split('T').next().unwrap_or_default();
    if day.len() == 10 && day.bytes().all(|b| b.is_ascii_digit() || b == b'-') { day.to_owned() } else { shortened(started_at) }
}

/// What the memory moves at a time.
pub(crate) fn sector(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cuda => "sector",
        DeviceKind::Host => "cache line",
    }
}

/// A name in the documents' spelling.
pub(crate) fn level(level: Level) -> &'static str {
    match level {
        Level::Dram => "dram",
        Level::Cache => "cache",
        Level::Mixed => "mixed",
    }
}

/// A name in the documents' spelling.
pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Unsupported => "unsupported",
        Status::Skipped => "skipped",
        Status::Error => "error",
        Status::Timeout => "timeout",
        Status::Unknown => "unknown",
    }
}

/// A name in the documents' spelling.
pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Unverified => "unverified",
        Verdict::AbovePeak => "above_peak",
        Verdict::Compressed => "compressed",
        Verdict::Spilled => "spilled",
        Verdict::CacheResident => "cache_resident",
        Verdict::Unknown => "unknown",
    }
}

/// Whether a note of a marked row tells the number behind this mark.
pub(crate) fn begins_note_of(mark: Mark, note: &str) -> bool {
    note.starts_with(self::mark(mark)) || mark == Mark::Unstable && note.starts_with("noisy")
}

/// A name in the documents' spelling.
pub(crate) fn mark(mark: Mark) -> &'static str {
    match mark {
        Mark::Unstable => "unstable",
        Mark::Throttled => "throttled",
        Mark::Shared => "shared",
        Mark::Unknown => "unknown mark",
    }
}

/// What a mark says of its row.
pub(crate) fn mark_meaning(mark: Mark) -> &'static str {
    match mark {
        Mark::Unstable => "noisy, or a clock moved during the samples",
        Mark::Throttled => "the driver or the hardware held the clocks back",
        Mark::Shared => "another process was on the card",
        Mark::Unknown => "a mark of a newer version of the program",
    }
}

/// `held back by SwPowerCap in 50.0 % of the readings`: what limits a soak met; none where it met none, or none is known.
pub(crate) fn held_back(soak: &Soak) -> Option<String> {
    let limits = soak.throttle_reasons.iter().flatten().filter(|(name, _)| measure::is_limit(name));
    let told: Vec<String> = limits.map(|(name, share)| format!("{} in {:.1} %", clean(name), share * 100.0)).collect();
    (!told.is_empty()).then(|| format!("held back by {} of the readings", told.join(", ")))
}

/// Why a row's figures may not be drawn; none when they may.
pub(crate) fn unsound(row: &Measurement) -> Option<&'static str> {
    match (row.status, row.verdict) {
        (Status::Ok, Some(Verdict::Ok)) if row.is_sound() => None,
        (Status::Ok, Some(Verdict::Ok)) => Some("contradictory"),
        (Status::Ok, Some(v)) => Some(verdict(v)),
        (Status::Ok, None) => Some("no verdict"),
        (s, _) => Some(status(s)),
    }
}

/// The theoretical memory peak, when there is one that makes sense.
pub(crate) fn memory_peak_gbps(run: &Run) -> Option<f64> {
    run.peaks.memory_theoretical_gbps().filter(|peak| super::is_drawable(*peak) && *peak > 0.0)
}

/// `hbmark 0.1.0 (suite version 1)`: who measured, and by which method.
pub(crate) fn program(run: &Run) -> String {
    format!("{} {} (suite version {})", shortened(&run.program.name), shortened(&run.program.version), shortened(&run.suite_version))
}

/// What the figures of a run depend on, beside the cases themselves.
pub(crate) fn conditions(run: &Run) -> Vec<String> {
    let device = &run.device;
    let mut facts = Vec::new();
    if run.data != Data::Random {
        facts.push(format!("arrays of {} data", run.data));
    }
    if run.cache != CacheState::Hot {
        facts.push(format!("{} caches", run.cache));
    }
    match device.kind {
        DeviceKind::Cuda => {
            facts.extend(device.driver_version.as_deref().map(|v| format!("driver {}", shortened(v))));
            facts.extend(device.ecc.enabled.map(|on| format!("ECC {}", if on { "on" } else { "off" })));
            // A whole card that is passed through to a virtual machine is still a whole card.
            let whole = |how: &str| matches!(how, "none" | "pass-through");
            let sharing = [("MIG", &device.virtualization.mig_profile), ("vGPU", &device.virtualization.vgpu)];
            facts.extend(
                sharing
                    .iter()
                    .filter_map(|(what, how)| how.as_deref().filter(|how| !whole(how)).map(|how| format!("{what} {}", shortened(how)))),
            );
        }
        DeviceKind::Host => facts.push(format!("{} thread{}", device.units, if device.units == 1 { "" } else { "s" })),
    }
    facts.push(day(&run.started_at));
    facts.extend(run.labels.iter().map(|(key, value)| format!("{}={}", shortened(key), shortened(value))));
    if run.program.build == "debug" {
        facts.push("debug build: slower than a release".into());
    }
    if !run.complete {
        facts.push("run not complete".into());
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing;

    #[test]
    fn text_from_outside_stays_on_one_line_without_control_characters() {
        assert_eq!(clean("a\nb\u{1b}[31m\tc\u{202e}d"), "a b [31m c d");
        assert_eq!(clean(" \u{0} "), "");
    }

    #[test]
    fn equal_names_are_numbered() {
        let run = testing::h200();
        let mut other = run.clone();
        other.device.name = "Other".into();
        assert_eq!(names(&[&run, &other, &run]), ["NVIDIA H200 (1)", "Other", "NVIDIA H200 (2)"]);
    }

    #[test]
    fn a_name_without_letters_is_called_unnamed_and_a_long_one_is_shortened() {
        let (mut none, mut long) = (testing::h200(), testing::h200());
        none.device.name = "\n".into();
        long.device.name = "é".repeat(200);
        let names = names(&[&none, &long]);
        assert_eq!(names[0], "unnamed device");
        assert_eq!(names[1].chars().count(), NAME_CHARS + 1);
    }

    #[test]
    fn sizes_and_times_have_the_unit_that_suits_them() {
        assert_eq!(bytes(3840 << 20), "3.75 GiB");
        assert_eq!(bytes(4), "4 B");
        assert_eq!(bytes(u64::MAX), "16777216 TiB");
        assert_eq!(duration(1_712_000.0), "1.71 ms");
        assert_eq!(duration(999.0), "999 ns");
        assert_eq!(duration(2.5e9), "2.50 s");
    }

    #[test]
    fn figures_keep_three_significant_digits() {
        let texts = [4712.3, 25.36, 1.0, 0.00471, 0.0].map(figure);
        assert_eq!(texts, ["4712", "25.4", "1.00", "0.00471", "0"]);
        assert_eq!(figure(f64::NAN), "NaN");
    }

    #[test]
    fn only_the_day_of_a_time_stamp_is_shown() {
        assert_eq!(day("2026-01-02T03:04:05Z"), "2026-01-02");
        assert_eq!(day("yesterday\n"), "yesterday");
    }

    #[test]
    fn conditions_name_what_the_figures_depend_on() {
        let mut run = testing::h200();
        run.labels.insert("ecc".into(), "o\nff".into());
        run.complete = false;
        let text = conditions(&run).join("; ");
        assert_eq!(text, "driver 580.159.03; ECC on; 2026-01-02; ecc=o ff; run not complete");
        assert!(conditions(&testing::host()).join("; ").starts_with("2 threads; 2026-01-02"));
    }
}
