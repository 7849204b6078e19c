//! `latency`: how long a dependent access takes by the size of what is accessed.

use plotters::prelude::*;

use super::curves::{Curves, Line, Scale};
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows};
use super::{Area, Chart, Outcome, words};
use crate::pattern::{CaseId, LINE_BYTES};
use crate::record::Measurement;

pub(super) struct Latency {
    page: Page,
    curves: Curves,
}

/// The number at the end of an id such as `latency/chase/16384`, where it is of this pattern and operation.
pub(super) fn number_of(id: &str, pattern: &str, operation: &str) -> Option<u64> {
    let id = CaseId::new(id);
    match id.parts()[..] {
        [op, number] if id.pattern() == pattern && op == operation && id.size().is_none() => number.parse().ok(),
        _ => None,
    }
}

/// One line a run: its rows of this pattern and operation in the order of their numbers, each where `point` puts it;
/// a row that may not be drawn interrupts the line.
pub(super) fn lines<'a>(
    group: &'a Group<'a>,
    rows: &mut Rows<'a>,
    (pattern, operation): (&str, &str),
    point: impl Fn(&mut Rows<'a>, usize, &'a Measurement, u64) -> Option<(f64, f64)>,
) -> Vec<Line> {
    let colors = group.colors().into_iter().enumerate();
    colors
        .map(|(run, color)| {
            let measured = &group.run(run).measurements;
            let mut of_run: Vec<_> = measured.iter().filter_map(|row| Some((number_of(&row.id, pattern, operation)?, row))).collect();
            of_run.sort_by_key(|(number, _)| *number);
            let points = of_run.into_iter().map(|(number, row)| if rows.sound(run, row) { point(rows, run, row, number) } else { None });
            Line { color, shape: Some(run), dashed: false, points: points.collect() }
        })
        .collect()
}

impl Chart for Latency {
    const NAME: &'static str = "latency";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let lines = lines(group, &mut rows, ("latency", "chase"), |rows, run, row, bytes| {
            // Nothing has no place on a logarithmic scale.
            Some((bytes as f64, rows.figure(run, row, row.latency_ns, "latency").filter(|_| bytes > 0)?))
        });
        let caches = group.colors().into_iter().enumerate().filter_map(|(run, color)| {
            let cache = group.run(run).device.memory.cache_bytes.filter(|&cache| cache > 0)?;
            Some((cache as f64, color))
        });
        let curves = Curves {
            heading: "Latency, ns",
            axis: "footprint, log scale",
            scale: Scale::Log(words::bytes),
            lines,
            bounds: caches.collect(),
            bands: Vec::new(),
        };
        if !curves.has_values() {
            return Err(rows.nothing("latency/chase"));
        }
        let reading = format!(
            "The time of one access that waits for the one before it, medians: one thread follows a cycle through all lines of \
             {LINE_BYTES} bytes of a buffer of that size, in random order."
        );
        let (legend, shared) = rows.legend(Symbol::Points, |run, _| {
            let cache = run.device.memory.cache_bytes.map(|cache| format!("last cache {}", words::bytes(cache)));
            cache.into_iter().collect()
        });
        Ok(Self {
            page: Page {
                title: "Latency of memory and caches",
                plot_height_min: PLOT_HEIGHT_MIN,
                key: vec![(Symbol::Threshold, "size of the last cache, as the device tells it")],
                legend,
                caption: rows.caption(&reading, shared),
            },
            curves,
        })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        self.curves.draw(root, at, self.curves.largest())
    }
}
