//! `footprint`: bandwidth against the size of what is read or copied, from the caches to most of the memory.

use plotters::prelude::*;

use super::curves::{Band, Curves, GUTTER, Line, Scale, draw_stacked};
use super::marks::Symbol;
use super::page::{Page, Rect};
use super::rows::{Group, Rows};
use super::theme::INK;
use super::{Area, Chart, Outcome, words};
use crate::pattern::LINE_BYTES;
use crate::pattern::{CaseId, DeviceKind};
use crate::plateau::{self, Findings, Plateau};
use crate::record::Measurement;

/// The heading of the panel whose plateaus are named.
const READ: &str = "Read, GB/s";
/// The height of one panel.
const PANEL_HEIGHT: i32 = 480;

pub(super) struct Footprint {
    page: Page,
    panels: Vec<Curves>,
}

impl Chart for Footprint {
    const NAME: &'static str = "footprint";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of_any_level(group);
        let mut panels: Vec<Curves> = [("read", READ), ("copy", "Copy, GB/s")]
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
        if panels.iter().flat_map(|panel| &panel.lines).any(|line| line.dashed) {
            key.push((Symbol::Dashed, "lines in random order"));
        }
        if panels.iter().any(|panel| !panel.bounds.is_empty()) {
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
        draw_stacked(&self.panels, root, at)
    }
}

/// Names the plateaus of a run in the panel of its reads, and marks the end of the last cache in all.
fn mark(panels: &mut [Curves], findings: &Findings) {
    let band = |plateau: &Plateau| Band {
        first: plateau.first_bytes as f64,
        last: plateau.last_bytes as f64,
        name: format!("{} {}", findings.name(plateau.place), words::figure(plateau.gbps)),
    };
    for panel in panels {
        if panel.heading == READ {
            panel.bands = findings.plateaus.iter().map(band).collect();
        }
        panel.bounds = findings.told_bytes.iter().map(|told| (*told as f64, INK)).collect();
    }
}

/// Gathers the lines of one operation, solid in order and dashed in random order; none when no row can be drawn.
fn lines<'a>(group: &'a Group<'a>, rows: &mut Rows<'a>, operation: &str, heading: &'static str) -> Option<Curves> {
    let mut lines = Vec::new();
    for (order, dashed) in [(operation.to_owned(), false), (format!("{operation}-random"), true)] {
        for (run, color) in group.colors().into_iter().enumerate() {
            let mut found: Vec<(u64, &Measurement)> =
                group.run(run).measurements.iter().filter_map(|row| Some((footprint_of(&row.id, &order)?, row))).collect();
            found.sort_by_key(|(bytes, _)| *bytes);
            let mut point = |(bytes, row): (u64, &'a Measurement)| {
                let gbps = if rows.sound(run, row) { rows.figure(run, row, row.achieved_gbps, "GB/s") } else { None };
                Some((bytes as f64, gbps?))
            };
            let points: Vec<_> = found.into_iter().map(&mut point).collect();
            if points.iter().any(Option::is_some) {
                lines.push(Line { color, shape: Some(run), dashed, points });
            }
        }
    }
    let curves =
        Curves { heading, axis: "footprint, log scale", scale: Scale::Log(words::bytes), lines, bounds: Vec::new(), bands: Vec::new() };
    curves.has_values().then_some(curves)
}

/// The footprint of an id with this operation and order, in bytes.
fn footprint_of(id: &str, order: &str) -> Option<u64> {
    let id = CaseId::new(id);
    match id.parts()[..] {
        [of, bytes] if id.pattern() == "footprint" && of == order && id.size().is_none() => bytes.parse().ok().filter(|bytes| *bytes > 0),
        _ => None,
    }
}
