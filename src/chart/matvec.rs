//! `matvec`: what decoding makes of the bandwidth and of the compute units, by how many inputs share a pass.

use plotters::prelude::*;

use super::curves::{Curves, Line, Scale};
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, arithmetic_peaks};
use super::{Area, Chart, Outcome, is_drawable, words};
use crate::pattern::CaseId;
use crate::record::Measurement;

/// Space between the two panels.
const GUTTER: i32 = 56;

pub(super) struct Matvec {
    page: Page,
    panels: Vec<Curves>,
}

impl Chart for Matvec {
    const NAME: &'static str = "matvec";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let (mut bandwidth, mut utilization) = (Vec::new(), Vec::new());
        for (run, color) in group.colors().into_iter().enumerate() {
            let line = |points| Line { color, shape: Some(run), dashed: false, points };
            let (mut gbps, mut percent) = (Vec::new(), Vec::new());
            for batch in batches(group) {
                let Some(row) = group.row(run, &format!("matvec/f16/{batch}")) else { continue };
                let sound = rows.sound(run, row);
                let at = |value: Option<f64>| value.filter(|_| sound).map(|value| (batch as f64, value));
                gbps.push(at(if sound { rows.figure(run, row, row.achieved_gbps, "GB/s") } else { None }));
                // A pipe whose peak the run did not measure has no utilization, which is no fault of the row.
                percent.push(at(row.compute_utilization.map(|fraction| fraction * 100.0).filter(|percent| is_drawable(*percent))));
            }
            bandwidth.push(line(gbps));
            utilization.push(line(percent));
        }
        let panel = |heading, lines| {
            let scale = Scale::Log(|batch| batch.to_string());
            Curves { heading, axis: "inputs that share a pass (batch), log scale", scale, lines, bounds: Vec::new(), bands: Vec::new() }
        };
        let panels = [panel("Achieved GB/s", bandwidth), panel("Compute utilization, %", utilization)];
        if !panels[0].has_values() {
            return Err(rows.nothing("matvec"));
        }
        let reading = "Half-precision matrices times a few inputs, as a language model decodes; medians; 1 GB/s = 10⁹ bytes a second, each \
                       weight, input and result counted once. Compute utilization: flops over the peak that the same run measured of the \
                       units that the row ran on; no point where it measured none.";
        let (legend, shared) = rows.legend(Symbol::Points, |run, rows| {
            let peak = words::memory_peak_gbps(run).map(|peak| format!("theoretical memory peak {} GB/s", words::figure(peak)));
            matrices(rows).into_iter().chain(peak).chain(arithmetic_peaks(run, rows)).collect()
        });
        Ok(Self {
            page: Page {
                title: "Weights times a few inputs, f16",
                plot_height_min: PLOT_HEIGHT_MIN,
                key: Vec::new(),
                legend,
                caption: rows.caption(reading, shared),
            },
            // A single point is no curve, but of bandwidth it is all there is.
            panels: panels
                .into_iter()
                .enumerate()
                .filter(|(n, panel)| *n == 0 || panel.places().len() > 1)
                .map(|(_, panel)| panel)
                .collect(),
        })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        let n = self.panels.len() as i32;
        let width = (at.right - at.left - GUTTER * (n - 1)) / n;
        for (panel, k) in self.panels.iter().zip(0..) {
            let left = at.left + k * (width + GUTTER);
            panel.draw(root, Rect { left, right: left + width, ..at }, panel.largest())?;
        }
        Ok(())
    }
}

/// Every batch that a run has at its default size, in order.
fn batches(group: &Group) -> Vec<u64> {
    let batch = |row: &Measurement| {
        let id = CaseId::new(&row.id);
        match id.parts()[..] {
            ["f16", batch] if id.pattern() == "matvec" && id.size().is_none() => batch.parse::<u64>().ok().filter(|n| *n > 0),
            _ => None,
        }
    };
    let mut batches: Vec<u64> = (0..group.len()).flat_map(|run| &group.run(run).measurements).filter_map(batch).collect();
    batches.sort_unstable();
    batches.dedup();
    batches
}

/// `8 matrices of 16384 x 16384`; none where the rows differ.
fn matrices(rows: &[&Measurement]) -> Option<String> {
    let sizes = |row: &Measurement| ["matrices", "rows", "columns"].map(|name| row.parameters.get(name).and_then(|n| n.as_u64()));
    let of_first = sizes(rows.first()?);
    let [Some(matrices), Some(height), Some(width)] = of_first else { return None };
    rows.iter().all(|row| sizes(row) == of_first).then(|| format!("{matrices} matrices of {height} x {width}"))
}
