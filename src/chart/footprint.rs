//! `footprint`: bandwidth against the size of what is read or copied, from the caches to most of the memory.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::curves::{Axis, Curves, Series};
use super::marks::Symbol;
use super::page::{Page, Rect};
use super::rows::{Group, Rows};
use super::theme::{self, INK, SMALL, line_height};
use super::{Area, Chart, Outcome, words};
use crate::pattern::footprint::LINE_BYTES;
use crate::pattern::{CaseId, DeviceKind};
use crate::plateau::{self, Findings};

/// The height of one panel, and the space between two.
const PANEL_HEIGHT: i32 = 480;
const GUTTER: i32 = 30;
/// Doublings between two marks of the axis.
const TICK_DOUBLINGS: usize = 2;
/// Behind a plateau.
const BAND: RGBColor = RGBColor(0xf0, 0xf0, 0xf0);

/// The lines of one operation: solid in order, dashed in random order.
struct Lines {
    heading: &'static str,
    axis: Axis,
    series: Vec<Series>,
    /// What the curve says; only of a single run, and of its reads.
    bands: Vec<Band>,
    /// Where the driver or the system says that the last cache ends; of a single run.
    told: Option<(u64, String)>,
}

/// A stretch with a name.
struct Band {
    first_bytes: u64,
    last_bytes: u64,
    label: String,
}

pub(super) struct Footprint {
    page: Page,
    panels: Vec<Lines>,
}

impl Chart for Footprint {
    const NAME: &'static str = "footprint";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of_any_level(group);
        let mut panels: Vec<Lines> = [("read", "Read, GB/s"), ("copy", "Copy, GB/s")]
            .into_iter()
            .filter_map(|(operation, heading)| lines(group, &mut rows, operation, heading))
            .collect();
        if panels.is_empty() {
            return Err(rows.nothing("footprint"));
        }
        let found: Vec<(usize, Result<Findings, String>)> =
            (0..group.len()).filter_map(|run| Some((run, plateau::of_run(group.run(run))?))).collect();
        if let [(0, Ok(findings))] = &found[..]
            && group.len() == 1
        {
            mark(&mut panels, findings);
        }
        let mut key = vec![(Symbol::Solid, "in the order of memory")];
        if panels.iter().any(|lines| lines.series.iter().any(|series| series.dashed)) {
            key.push((Symbol::Dashed, "lines in random order"));
        }
        if panels.iter().any(|lines| lines.told.is_some()) {
            key.push((Symbol::Threshold, "end of the last cache, as told"));
        }
        let nearest = match group.kind() {
            DeviceKind::Cuda => "loads and stores go past the cache of the multiprocessor",
            DeviceKind::Host => "each worker has a part of its own, which the caches of its processor may hold",
        };
        let reading = format!(
            "Requested bytes over the median time, 1 GB/s = 10⁹ bytes a second; small footprints are passed over many times in one execution, \
             and {nearest}. The footprint of a copy is source and destination together. Random order: lines \
             of {LINE_BYTES} bytes, each once a pass. Only footprints of several times the last cache show the memory."
        );
        let (legend, shared) = rows.legend(Symbol::Points, |_, _| Vec::new());
        let mut caption = rows.caption(&reading, shared);
        for (run, findings) in &found {
            let name = if group.len() == 1 { String::new() } else { format!("{}: ", group.name(*run)) };
            caption.push(match findings {
                Ok(findings) => format!("{name}{} {}", findings.levels(), findings.extent()),
                Err(why) => format!("{name}No plateaus are named: {why}."),
            });
        }
        Ok(Self {
            page: Page {
                title: "Bandwidth by footprint",
                plot_height_min: panels.len() as i32 * (PANEL_HEIGHT + GUTTER),
                key,
                legend,
                caption,
            },
            panels,
        })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        let n = self.panels.len() as i32;
        let height = (at.bottom - at.top - GUTTER * (n - 1)) / n;
        for (lines, n) in self.panels.iter().zip(0..) {
            let top = at.top + n * (height + GUTTER);
            lines.draw(root, Rect { top, bottom: top + height, ..at })?;
        }
        Ok(())
    }
}

/// Names the plateaus of a run in the panel of its reads, and marks the last cache in all.
fn mark(panels: &mut [Lines], findings: &Findings) {
    for lines in panels {
        if lines.heading.starts_with("Read") {
            let band = |plateau: &plateau::Plateau| Band {
                first_bytes: plateau.first_bytes,
                last_bytes: plateau.last_bytes,
                label: format!("{} {}", findings.name(plateau.place), words::figure(plateau.gbps)),
            };
            lines.bands = findings.plateaus.iter().map(band).collect();
        }
        let within = |told: &u64| (lines.axis.first..=lines.axis.last).contains(told);
        lines.told = findings.told_bytes.filter(within).map(|told| (told, format!("{} {}", findings.cache(), words::bytes(told))));
    }
}

/// Gathers the lines of one operation; none when no row can be drawn.
fn lines<'a>(group: &'a Group<'a>, rows: &mut Rows<'a>, operation: &str, heading: &'static str) -> Option<Lines> {
    let mut series = Vec::new();
    for (order, dashed) in [(operation.to_owned(), false), (format!("{operation}-random"), true)] {
        for (run, color) in group.colors().into_iter().enumerate() {
            let mut points = Vec::new();
            for row in &group.run(run).measurements {
                let Some(bytes) = footprint_of(&row.id, &order) else { continue };
                points.push((bytes, if rows.sound(run, row) { rows.figure(run, row, row.achieved_gbps, "GB/s") } else { None }));
            }
            points.sort_by_key(|(bytes, _)| *bytes);
            series.push(Series { color, shape: run, dashed, points });
        }
    }
    series.retain(Series::any);
    let drawn = || series.iter().flat_map(|series| &series.points).filter(|(_, value)| value.is_some()).map(|(bytes, _)| *bytes);
    let (first, last) = (drawn().min()?, drawn().max()?);
    let ticks = (0..u64::BITS).step_by(TICK_DOUBLINGS).map(|k| 1 << k).filter(|tick| (first..=last).contains(tick));
    let axis = Axis { name: "footprint, log scale", first, last, ticks: ticks.collect(), label: words::bytes };
    Some(Lines { heading, axis, series, bands: Vec::new(), told: None })
}

/// The footprint of an id with this operation and order, in bytes.
fn footprint_of(id: &str, order: &str) -> Option<u64> {
    let id = CaseId::new(id);
    match id.parts()[..] {
        [of, bytes] if id.pattern() == "footprint" && of == order && id.size().is_none() => bytes.parse().ok().filter(|bytes| *bytes > 0),
        _ => None,
    }
}

impl Lines {
    fn draw<DB: DrawingBackend>(&self, root: &Area<DB>, outer: Rect) -> Outcome<DB> {
        let largest = self.series.iter().map(Series::largest).fold(0.0, f64::max);
        let largest = if largest > 0.0 { largest } else { 1.0 };
        // The names stand above the lines.
        let plain = Curves::new(outer, self.heading, largest, &self.axis);
        let labels = self.labels(&plain);
        let rows = labels.iter().map(|label| label.row + 1).max().unwrap_or(0);
        let height = plain.inner().bottom - plain.inner().top;
        let free = (height - rows * line_height(SMALL) - 16).max(height / 4);
        let curves = Curves::new(outer, self.heading, largest * f64::from(height) / f64::from(free), &self.axis);

        let Rect { left, right, top, bottom } = curves.inner();
        for Band { first_bytes, last_bytes, .. } in &self.bands {
            let (from, to) = ((curves.x(*first_bytes) - 8).max(left), (curves.x(*last_bytes) + 8).min(right));
            root.draw(&Rectangle::new([(from, top), (to, bottom)], BAND.filled()))?;
        }
        curves.draw_axis(root)?;
        if let Some((told, _)) = &self.told {
            super::marks::threshold_down(root, curves.x(*told), top, bottom)?;
        }
        self.series.iter().try_for_each(|series| curves.draw_line(root, series))?;
        for Label { text, left, right, row, behind } in labels {
            let y = top + 6 + row * line_height(SMALL);
            // No line goes through a name.
            root.draw(&Rectangle::new([(left - 4, y - 2), (right + 4, y + line_height(SMALL) - 2)], behind.filled()))?;
            root.draw_text(&text, &theme::style(SMALL, INK, HPos::Left, VPos::Top), (left, y))?;
        }
        Ok(())
    }

    /// The names of bands and of the told end, each in the first row that has room for it.
    fn labels(&self, curves: &Curves) -> Vec<Label> {
        let Rect { left, right, .. } = curves.inner();
        let bands = self.bands.iter().map(|band| ((curves.x(band.first_bytes) + curves.x(band.last_bytes)) / 2, &band.label, BAND));
        let told = self.told.iter().map(|(told, label)| (curves.x(*told), label, WHITE));
        let mut labels: Vec<Label> = Vec::new();
        for (middle, text, behind) in bands.chain(told) {
            let width = theme::width(text, SMALL);
            let from = (middle - width / 2).clamp(left, (right - width).max(left));
            let taken = |row: i32| labels.iter().any(|other| other.row == row && from < other.right + 16 && other.left < from + width + 16);
            let row = (0..).find(|row| !taken(*row)).unwrap_or(0);
            labels.push(Label { text: text.clone(), left: from, right: from + width, row, behind });
        }
        labels
    }
}

/// A name and its place.
struct Label {
    text: String,
    left: i32,
    right: i32,
    row: i32,
    behind: RGBColor,
}
