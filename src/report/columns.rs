//! The rows of a run as people read them, shared by tables and Markdown.

use crate::chart::words;
use crate::pattern::{DeviceKind, Level, link_directions};
use crate::record::{Mark, Measurement, Run, Status, Verdict};

/// One column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Case,
    Bandwidth,
    OfPeak,
    OfLink,
    Naive,
    Ease,
    Flops,
    Utilization,
    Latency,
    Time,
    Noise,
    Verified,
    Verdict,
}

impl Column {
    /// All columns, in the order in which they are read.
    pub(super) const ALL: [Self; 13] = [
        Self::Case,
        Self::Bandwidth,
        Self::OfPeak,
        Self::OfLink,
        Self::Naive,
        Self::Ease,
        Self::Flops,
        Self::Utilization,
        Self::Latency,
        Self::Time,
        Self::Noise,
        Self::Verified,
        Self::Verdict,
    ];

    /// Whether the run has anything to show in it: few runs have latencies or transfers, and none of a host is tuned.
    pub(super) fn is_of(self, run: &Run) -> bool {
        let any = |figure: fn(&Measurement) -> Option<f64>| run.measurements.iter().any(|row| figure(row).is_some());
        match self {
            Self::Latency => any(|row| row.latency_ns),
            Self::OfLink => any(|row| row.fraction_of_link),
            Self::Naive => run.measurements.iter().any(|row| row.tuning.is_some()),
            Self::Ease => any(ease_kib),
            _ => true,
        }
    }

    /// Its head.
    pub(super) const fn head(self) -> &'static str {
        match self {
            Self::Case => "case",
            Self::Bandwidth => "GB/s",
            Self::OfPeak => "% of peak",
            Self::OfLink => "% of link",
            Self::Naive => "naive %",
            Self::Ease => "ease KiB",
            Self::Flops => "GFLOP/s",
            Self::Utilization => "compute utilization %",
            Self::Latency => "latency ns",
            Self::Time => "time",
            Self::Noise => "±noise %",
            Self::Verified => "verified",
            Self::Verdict => "verdict",
        }
    }

    /// Whether it holds figures, which stand at its right edge.
    pub(super) const fn is_figures(self) -> bool {
        !matches!(self, Self::Case | Self::Verified | Self::Verdict)
    }
}

/// What a figure that is not known shows as.
pub(super) const UNKNOWN: &str = "-";

/// A figure, if there is one.
pub(super) fn figure(value: Option<f64>) -> String {
    match value.filter(|value| is_credible(*value)) {
        Some(value) if value.abs() >= 100.0 => format!("{value:.1}"),
        Some(value) => words::figure(value),
        None => UNKNOWN.to_owned(),
    }
}

/// Far beyond whatever is measured here: a figure like this is an error in the document.
const LARGEST_FIGURE: f64 = 1e12;

fn is_credible(value: f64) -> bool {
    value.abs() <= LARGEST_FIGURE
}

/// A fraction in percent.
pub(super) fn percent(fraction: Option<f64>, decimals: usize) -> String {
    match fraction.filter(|fraction| is_credible(*fraction)) {
        Some(fraction) => format!("{:.decimals$}", fraction * 100.0),
        None => UNKNOWN.to_owned(),
    }
}

/// Remarks under a table, each once, numbered from 1.
#[derive(Default)]
pub(super) struct Footnotes {
    texts: Vec<String>,
}

impl Footnotes {
    fn mark(&mut self, text: &str) -> String {
        let text = words::clean(text);
        let n = self.texts.iter().position(|t| *t == text).unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        });
        format!("[{}]", n + 1)
    }

    /// The remarks with their numbers.
    fn lines(&self) -> Vec<String> {
        self.texts.iter().enumerate().map(|(n, text)| format!("[{}] {text}", n + 1)).collect()
    }
}

/// The cells of a row, in the order of [`Column::ALL`].
pub(super) fn cells(row: &Measurement, footnotes: &mut Footnotes) -> Vec<String> {
    let time = row.time_ns.as_ref();
    Column::ALL
        .into_iter()
        .map(|column| match column {
            Column::Case => words::clean(&row.id),
            Column::Bandwidth => figure(row.achieved_gbps),
            Column::OfPeak => percent(row.fraction_of_peak, 1),
            Column::OfLink => percent(row.fraction_of_link, 1),
            Column::Naive => percent(row.naive_fraction(), 1),
            Column::Ease => figure(ease_kib(row)),
            Column::Flops => figure(row.achieved_gflops),
            Column::Utilization => percent(row.compute_utilization, 1),
            Column::Latency => figure(row.latency_ns),
            Column::Time => time.filter(|time| time.median.is_finite()).map_or(UNKNOWN.to_owned(), |time| words::duration(time.median)),
            Column::Noise => percent(time.map(|time| time.noise_fraction), 2),
            Column::Verified => match row.verified {
                Some(true) => "yes".to_owned(),
                Some(false) => "NO".to_owned(),
                None => UNKNOWN.to_owned(),
            },
            Column::Verdict => verdict(row, footnotes),
        })
        .collect()
}

/// KiB in flight on a multiprocessor with which most of the row's bandwidth is reached.
fn ease_kib(row: &Measurement) -> Option<f64> {
    row.tuning.as_ref()?.ease_kib_per_unit
}

/// Why figures of the other ways of a row are not known, but where there is nothing to know.
fn not_tuned(row: &Measurement) -> Vec<String> {
    let Some(tuning) = &row.tuning else { return Vec::new() };
    let unknown = |what: &str, field: &str| {
        let why = tuning.missing.get(field).map_or("no reason was given", String::as_str);
        format!("{what}: {why}")
    };
    let naive = tuning.naive_gbps.is_none().then(|| unknown("naive", "naive_gbps"));
    let ease = (tuning.ease_kib_per_unit.is_none() && !tuning.in_flight.is_empty()).then(|| unknown("ease", "ease_kib_per_unit"));
    naive.into_iter().chain(ease).collect()
}

/// Whether the link to the processor sets the pace, and neither memory nor cache of the device.
fn is_transfer(row: &Measurement) -> bool {
    link_directions(&row.id).is_some()
}

/// Status or verdict, what else marks the row, and the numbers of its footnotes.
fn verdict(row: &Measurement, footnotes: &mut Footnotes) -> String {
    let mut words = vec![words::unsound(row).unwrap_or("ok").to_owned()];
    if row.status == Status::Ok {
        words.extend(row.level.filter(|level| *level != Level::Dram && !is_transfer(row)).map(|level| words::level(level).to_owned()));
    }
    words.extend(row.marks.iter().map(|mark| words::mark(*mark).to_owned()));
    let mut marks = Vec::new();
    if row.status != Status::Ok {
        marks.push(footnotes.mark(row.reason.as_deref().unwrap_or("no reason was given")));
    }
    match row.verdict {
        Some(Verdict::Unverified) => {
            let wrong = row.mismatches.map_or("some".to_owned(), |n| n.to_string());
            let first = row.first_bad_index.map(|index| format!(", the first at index {index}")).unwrap_or_default();
            marks.push(
                footnotes.mark(&format!("the device returned wrong data ({wrong} wrong results{first}): the figures are worth nothing")),
            );
        }
        Some(Verdict::AbovePeak) => {
            marks.push(footnotes.mark(&format!(
                "more bytes a second than the {} can carry: the figures cannot be right",
                if is_transfer(row) { "link" } else { "memory bus" }
            )));
        }
        Some(Verdict::CacheResident) => {
            marks.push(footnotes.mark("the last cache held the data or a good part of them: the figures are not the memory's"));
        }
        Some(Verdict::Compressed) => {
            marks.push(
                footnotes.mark(
                    "more bytes a second than the memory bus can carry, of data that can be compressed: the figures are not the bus's",
                ),
            );
        }
        Some(Verdict::Spilled) => {
            marks.push(footnotes.mark("the data came no faster than the link to the processor carries them and may have lain in the machine's main memory: the figures are not the card's"));
        }
        Some(Verdict::Unknown) => marks.push(footnotes.mark("a newer version of the program judged this row: ask that one")),
        Some(Verdict::Ok) | None => {}
    }
    marks.extend(not_tuned(row).iter().chain(&row.notes).map(|note| footnotes.mark(note)));
    let words = words.join(", ");
    if marks.is_empty() { words } else { format!("{words} {}", marks.concat()) }
}

/// What stands under a run's table: the footnotes of its rows, and a line for
/// each thing that a reader must know.
pub(super) fn remarks(run: &Run, footnotes: &Footnotes) -> Vec<String> {
    let mut lines = Vec::new();
    if run.device.kind == DeviceKind::Host {
        lines.push(words::NOT_A_GPU.to_owned());
    }
    lines.extend(footnotes.lines());
    lines.push("GB/s: requested bytes, read + written, over the median time; 1 GB/s = 10^9 bytes a second".to_owned());
    lines.push(match words::memory_peak_gbps(run) {
        Some(peak) => format!(
            "% of peak: of {} GB/s, the theoretical peak by the device's attributes (2 x memory clock x bus width / 8)",
            words::figure(peak)
        ),
        None => {
            let reason =
                run.peaks.missing.get("memory_gbps").map_or("the theoretical peak is not known".to_owned(), |why| words::clean(why));
            format!("% of peak: none, because {reason}")
        }
    });
    if let Some((attributes, datasheet)) = run.peaks.memory_disagreement_gbps() {
        lines.push(format!(
            "the data sheet of this card says {} GB/s and its attributes {} GB/s: more than 3 % apart, so one of them is wrong or means another card",
            words::figure(datasheet),
            words::figure(attributes)
        ));
    }
    if Column::Naive.is_of(run) {
        lines.push(
            "naive: what the simplest kernel reaches, one element of 8 bytes a thread, in % of the row's GB/s, which is that of the best kernel \
             that a search found"
                .to_owned(),
        );
    }
    if Column::Ease.is_of(run) {
        lines.push(
            "ease: KiB of loads that a multiprocessor must have in flight for 90 % of the row's GB/s; the fewer, the easier to reach"
                .to_owned(),
        );
    }
    let peaks: Vec<String> = run
        .peaks
        .compute_gflops
        .keys()
        .filter_map(|pipe| {
            let measured = words::figure(run.peaks.compute_measured_gflops(pipe)?);
            Some(format!("{measured} GFLOP/s ({}{})", words::clean(pipe), of_theoretical(run, pipe)))
        })
        .collect();
    lines.push(if peaks.is_empty() {
        "compute utilization: 0 for cases without floating-point operations; no arithmetic peak was measured in this run".to_owned()
    } else {
        format!("compute utilization: of the peak measured in the same run, {}", peaks.join(", "))
    });
    if Column::Latency.is_of(run) {
        lines.push(
            "latency: the time of one access that waits for the one before it; GB/s of these rows is no measure of the memory".to_owned(),
        );
    }
    lines.extend(super::footprint::remarks(run));
    let measured = || run.measurements.iter().filter(|row| row.status == Status::Ok);
    if measured().any(is_transfer) {
        let link = run.peaks.link_theoretical_gbps().map(|link| format!(" of {} GB/s in each direction that is busy", words::figure(link)));
        lines.push(format!(
            "transfer: GB/s counts each byte once, as it crosses the link between main memory and card; % of link:{}",
            link.unwrap_or_else(|| " none, because what the link carries is not known".to_owned())
        ));
    }
    let has = |level| measured().any(|row| row.level == Some(level) && !is_transfer(row));
    if has(Level::Cache) {
        lines.push("cache: the data fit the last cache, so GB/s is not the memory's".to_owned());
    }
    if has(Level::Mixed) {
        lines.push("mixed: the last cache holds part of the data, so GB/s is not the memory's alone".to_owned());
    }
    let marked = |mark| run.measurements.iter().any(|row| row.marks.contains(&mark));
    for mark in [Mark::Unstable, Mark::Throttled, Mark::Shared] {
        if marked(mark) {
            lines.push(format!("{}: {}", words::mark(mark), words::mark_meaning(mark)));
        }
    }
    lines
}

/// `; 97 % of what the multiprocessors can do at 1980 MHz`, where that is known.
fn of_theoretical(run: &Run, pipe: &str) -> String {
    let id = format!("compute/{pipe}");
    let row = run.measurements.iter().find(|row| row.is_sound() && row.id == id);
    match row.and_then(|row| Some((row.fraction_of_theoretical?, row.sm_clock_mhz?))) {
        Some((fraction, mhz)) => {
            format!("; {} % of what the multiprocessors can do at {} MHz", percent(Some(fraction), 1), words::figure(mhz))
        }
        None => String::new(),
    }
}

/// What the figures depend on, and who measured them.
pub(super) fn conditions(run: &Run) -> Vec<String> {
    let mut conditions = words::conditions(run);
    conditions.push(format!("measured by {}", words::program(run)));
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200, h200_tuned, host, spoil};
    use crate::record::{Peak, Provenance};

    #[test]
    fn a_null_shows_as_a_dash_and_a_fraction_is_not_clamped() {
        assert_eq!(figure(None), "-");
        assert_eq!(figure(Some(f64::INFINITY)), "-");
        assert_eq!(percent(Some(1.254), 1), "125.4");
        assert_eq!(percent(None, 1), "-");
    }

    #[test]
    fn equal_remarks_are_told_once() {
        let mut notes = Footnotes::default();
        let marks: Vec<_> = host().measurements.iter().map(|row| cells(row, &mut notes).pop().unwrap()).collect();
        assert_eq!(marks[1..5], ["ok [1]", "ok [1]", "ok [1]", "ok [1]"]);
        assert_eq!(notes.lines().len(), 1);
    }

    #[test]
    fn transfers_are_shares_of_the_link_and_of_no_cache() {
        let mut run = crate::chart::testing::h200_with_every_pattern();
        run.measurements.retain(|row| row.pattern == "transfer");
        assert!(Column::OfLink.is_of(&run) && !Column::OfLink.is_of(&h200()));
        let mut notes = Footnotes::default();
        let both = run.measurements.iter().find(|row| row.id == "transfer/both/pinned").unwrap();
        assert_eq!(cells(both, &mut notes)[1..4], ["101.0", "-", "80.1"]);
        assert_eq!(cells(both, &mut notes)[12], "ok");
        let says = remarks(&run, &notes).join("\n");
        assert!(says.contains("of 63.0 GB/s in each direction") && !says.contains("mixed"), "{says}");
        run.measurements[0].verdict = Some(Verdict::AbovePeak);
        cells(&run.measurements[0], &mut notes);
        assert!(notes.lines()[0].contains("than the link can carry"), "{:?}", notes.lines());
    }

    #[test]
    fn a_row_without_figures_shows_its_status_and_its_reason() {
        let row = Measurement::without_figures("stride/read/4", "stride", Status::Unsupported, "no kernel\nhere".into());
        let mut notes = Footnotes::default();
        assert_eq!(cells(&row, &mut notes).join(" "), "stride/read/4 - - - - - - - - - - - unsupported [1]");
        assert_eq!(notes.lines(), ["[1] no kernel here"]);
    }

    #[test]
    fn what_the_other_ways_of_a_row_gave_is_shown_and_explained_where_a_run_has_it() {
        let run = h200_tuned();
        let cells = cells(&run.measurements[1], &mut Footnotes::default());
        assert_eq!(cells[..6], ["stream/read/f32", "4690.3", "97.4", "-", "51.8", "21.5"]);
        let text = remarks(&run, &Footnotes::default()).join("\n");
        assert!(text.contains("naive: what the simplest kernel reaches") && text.contains("ease: KiB of loads"), "{text}");
        let text = remarks(&h200(), &Footnotes::default()).join("\n");
        assert!(!text.contains("naive") && !text.contains("ease"), "{text}");
        assert!(!Column::Naive.is_of(&h200()) && !Column::Ease.is_of(&h200()));
    }

    #[test]
    fn a_naive_kernel_with_wrong_results_is_told_of_and_a_write_without_loads_is_not() {
        let mut run = h200_tuned();
        let tuning = run.measurements[1].tuning.as_mut().unwrap();
        (tuning.naive_gbps, tuning.ease_kib_per_unit) = (None, None);
        tuning.missing.insert("naive_gbps".into(), "its results were wrong".into());
        let mut notes = Footnotes::default();
        assert_eq!(cells(&run.measurements[1], &mut notes).pop().unwrap(), "ok [1][2]");
        assert_eq!(notes.lines(), ["[1] naive: its results were wrong", "[2] ease: no reason was given"]);
        assert_eq!(cells(&run.measurements[2], &mut notes).pop().unwrap(), "ok");
    }

    #[test]
    fn wrong_data_are_told_with_their_number() {
        let mut run = h200();
        spoil(&mut run, "stream/copy/f32");
        let row = run.measurements.iter().find(|row| row.id == "stream/copy/f32").unwrap();
        let mut notes = Footnotes::default();
        let cells = cells(row, &mut notes);
        assert_eq!(cells[11..], ["NO", "unverified [1]"]);
        assert!(notes.lines()[0].contains("12 wrong results, the first at index 5"), "{:?}", notes.lines());
    }

    #[test]
    fn a_mark_stands_beside_the_verdict_with_its_note_and_its_meaning() {
        let mut run = h200();
        run.measurements[1].marks = vec![Mark::Throttled, Mark::Shared];
        run.measurements[1].notes = vec!["throttled: SwPowerCap in 2 of 9 readings".into()];
        let mut notes = Footnotes::default();
        assert_eq!(cells(&run.measurements[1], &mut notes).pop().unwrap(), "ok, throttled, shared [1]");
        let text = remarks(&run, &notes).join("\n");
        assert!(text.contains("[1] throttled: SwPowerCap in 2 of 9 readings") && text.contains("shared: another process"), "{text}");
        assert!(!text.contains("unstable:"), "{text}");
        assert!(run.measurements[1].is_sound());
    }

    #[test]
    fn peaks_that_disagree_are_named_beside_the_reference() {
        let mut run = h200();
        run.peaks.memory_gbps.push(Peak { value: 4000.0, provenance: Provenance::Datasheet });
        let text = remarks(&run, &Footnotes::default()).join("\n");
        assert!(text.contains("% of peak: of 4814 GB/s") && text.contains("data sheet of this card says 4000 GB/s"), "{text}");
        run.peaks.memory_gbps[1].value = 4800.0;
        assert!(!remarks(&run, &Footnotes::default()).join("\n").contains("data sheet"));
    }

    #[test]
    fn the_remarks_say_what_percentages_refer_to_or_why_there_are_none() {
        let text = remarks(&h200(), &Footnotes::default()).join("\n");
        assert!(text.contains("% of peak: of 4814 GB/s, the theoretical peak") && text.contains("59836 GFLOP/s (fma/f32)"), "{text}");
        let text = remarks(&host(), &Footnotes::default()).join("\n");
        assert!(text.starts_with(words::NOT_A_GPU), "{text}");
        assert!(text.contains("% of peak: none, because the memory's clock and width are not told"), "{text}");
        let mut run = h200();
        run.peaks = Default::default();
        let text = remarks(&run, &Footnotes::default()).join("\n");
        assert!(text.contains("none, because the theoretical peak is not known") && text.contains("no arithmetic peak"), "{text}");
    }
}
