//! `in-flight`: the bandwidth of streams by how much each multiprocessor has asked for at once.

use plotters::prelude::*;

use super::curves::{Curves, Line, Scale};
use super::marks::Symbol;
use super::page::{Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome, is_drawable, words};
use crate::record::{Measurement, Run};

/// Operations with their headings, in percent of the peak and in GB/s. Scale moves what copy does, and add what triad does.
const OPERATIONS: [(&str, &str, &str); 4] = [
    ("read", "Read, % of the peak", "Read, GB/s"),
    ("copy", "Copy, % of the peak", "Copy, GB/s"),
    ("triad", "Triad, % of the peak", "Triad, GB/s"),
    ("dot", "Dot, % of the peak", "Dot, GB/s"),
];

/// Panels beside each other, the height of one, and the space between two.
const ABREAST: usize = 2;
const PANEL_HEIGHT: i32 = 400;
const GUTTER: i32 = 40;

pub(super) struct InFlight {
    page: Page,
    panels: Vec<Curves>,
}

impl Chart for InFlight {
    const NAME: &'static str = "in-flight";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        // One axis for all runs: GB/s, where the peak of one is not known.
        let peaks: Option<Vec<f64>> = (0..group.len()).map(|run| words::memory_peak_gbps(group.run(run))).collect();
        let panels: Vec<Curves> = OPERATIONS
            .into_iter()
            .filter_map(|(operation, of_peak, gbps)| {
                panel(group, &mut rows, operation, if peaks.is_some() { of_peak } else { gbps }, peaks.as_deref())
            })
            .collect();
        if panels.is_empty() {
            return Err(rows.nothing("stream with bytes in flight"));
        }
        let reading = "Across: KiB of loads that all threads of a multiprocessor have asked for before the first of them is used, with one \
                       to eight vectors of 16 bytes a thread. Up: requested bytes over the median time; these points are timed and not \
                       verified one by one (hbmark selftest verifies every kernel). Bandwidth is the bytes in flight over the time that \
                       each is under way. That time is much the same for HBM and for GDDR, so HBM, which is faster, needs more in \
                       flight: the further to the right the dashed line of a card, the more of its bandwidth code with little in \
                       flight leaves unused. Naive code: one element of 8 bytes a thread.";
        let (legend, shared) = rows.legend(Symbol::Points, |run, rows| {
            let peak = words::memory_peak_gbps(run).map(|peak| format!("theoretical peak {} GB/s", words::figure(peak)));
            [eases(run), naives(run), array_sizes(rows), peak].into_iter().flatten().collect()
        });
        Ok(Self {
            page: Page {
                title: "Bandwidth by bytes in flight, f32 streams",
                plot_height_min: panels.len().div_ceil(ABREAST) as i32 * (PANEL_HEIGHT + GUTTER) - GUTTER,
                key: vec![(Symbol::Threshold, "90 % of what the best kernel reaches")],
                legend,
                caption: rows.caption(reading, shared),
            },
            panels,
        })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        let largest = self.panels.iter().map(Curves::largest).fold(0.0, f64::max);
        let columns = self.panels.len().min(ABREAST) as i32;
        let lines = self.panels.len().div_ceil(ABREAST) as i32;
        let width = (at.right - at.left - GUTTER * (columns - 1)) / columns;
        let height = (at.bottom - at.top - GUTTER * (lines - 1)) / lines;
        for (panel, n) in self.panels.iter().zip(0..) {
            let (left, top) = (at.left + n % columns * (width + GUTTER), at.top + n / columns * (height + GUTTER));
            panel.draw(root, Rect { left, top, right: left + width, bottom: top + height }, largest)?;
        }
        Ok(())
    }
}

/// The row of an operation that has points, whatever they are.
fn row<'a>(run: &'a Run, operation: &str) -> Option<&'a Measurement> {
    let id = format!("stream/{operation}/f32");
    run.measurements.iter().find(|row| row.id == id && row.tuning.as_ref().is_some_and(|tuning| !tuning.in_flight.is_empty()))
}

/// The lines of one operation, a run each; none when no row can be drawn.
fn panel<'a>(group: &'a Group<'a>, rows: &mut Rows<'a>, operation: &str, heading: &'static str, peaks: Option<&[f64]>) -> Option<Curves> {
    let (mut lines, mut bounds) = (Vec::new(), Vec::new());
    for (run, color) in group.colors().into_iter().enumerate() {
        let Some((row, tuning)) = row(group.run(run), operation).and_then(|row| Some((row, row.tuning.as_ref()?))) else { continue };
        if !rows.sound(run, row) {
            continue;
        }
        let scale = peaks.map_or(1.0, |peaks| 100.0 / peaks[run]);
        let usable = |kib: f64| kib > 0.0 && is_drawable(kib);
        let mut points: Vec<(f64, f64)> = tuning.in_flight.iter().map(|point| (point.kib_per_unit, point.gbps * scale)).collect();
        points.retain(|(kib, value)| usable(*kib) && is_drawable(*value));
        if points.is_empty() {
            rows.figure(run, row, None, "bandwidth by bytes in flight");
            continue;
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        lines.push(Line { color, shape: Some(run), dashed: false, points: points.into_iter().map(Some).collect() });
        bounds.extend(tuning.ease_kib_per_unit.filter(|kib| usable(*kib)).map(|kib| (kib, color)));
    }
    let axis = "KiB in flight a multiprocessor, log scale";
    let curves = Curves { heading, axis, scale: Scale::Log(doubling), lines, bounds, bands: Vec::new() };
    curves.has_values().then_some(curves)
}

/// The number, of whole doublings only: there is no room for those between.
fn doubling(kib: u64) -> String {
    if kib.is_power_of_two() { kib.to_string() } else { String::new() }
}

/// `90 % needs 21.5 (read), 17.0 (copy) KiB`.
fn eases(run: &Run) -> Option<String> {
    let told = each(run, |row| Some(words::figure(row.tuning.as_ref()?.ease_kib_per_unit.filter(|kib| is_drawable(*kib))?)))?;
    Some(format!("90 % needs {told} KiB"))
}

/// `naive code 51.8 (read), 89.1 (copy) % of the best`.
fn naives(run: &Run) -> Option<String> {
    let told = each(run, |row| Some(words::figure(row.naive_fraction().map(|fraction| fraction * 100.0).filter(|v| is_drawable(*v))?)))?;
    Some(format!("naive code {told} % of the best"))
}

/// What there is to tell of the operations of a run.
fn each(run: &Run, tell: impl Fn(&Measurement) -> Option<String>) -> Option<String> {
    let sound = |operation| row(run, operation).filter(|row| words::unsound(row).is_none());
    let told: Vec<String> =
        OPERATIONS.into_iter().filter_map(|(operation, ..)| Some(format!("{} ({operation})", tell(sound(operation)?)?))).collect();
    (!told.is_empty()).then(|| told.join(", "))
}
