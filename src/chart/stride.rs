//! `stride`: what is left of the bandwidth when accesses lie apart.

use plotters::prelude::*;

use super::curves::{Curves, Line, Scale};
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome};
use crate::pattern::{CaseId, DeviceKind};

/// Space between the two panels.
const GUTTER: i32 = 56;

pub(super) struct Stride {
    page: Page,
    panels: Vec<Curves>,
}

impl Chart for Stride {
    const NAME: &'static str = "stride";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let panels: Vec<Curves> = [("read", "Read, GB/s"), ("copy", "Copy, GB/s")]
            .into_iter()
            .filter_map(|(operation, heading)| lines(group, &mut rows, operation, heading))
            .collect();
        if panels.is_empty() {
            return Err(rows.nothing("stride"));
        }
        let unit = match group.kind() {
            DeviceKind::Cuda => "sectors",
            DeviceKind::Host => "cache lines",
        };
        let reading = format!(
            "One 4-byte element at every stride, medians, 1 GB/s = 10⁹ bytes a second. Requested: the elements alone. \
             Compulsory: the whole {}-byte {unit} that must cross the memory bus for them; what is read to complete the \
             partly written {unit} of a copy is not counted.",
            group.kind().sector_bytes()
        );
        let (legend, shared) = rows.legend(Symbol::Points, |_, rows| array_sizes(rows).into_iter().collect());
        Ok(Self {
            page: Page {
                title: "Bandwidth of strided access",
                plot_height_min: PLOT_HEIGHT_MIN,
                key: vec![(Symbol::Solid, "requested bytes a second"), (Symbol::Dashed, "compulsory bytes a second")],
                legend,
                caption: rows.caption(&reading, shared),
            },
            panels,
        })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        // One scale for both panels, so that read and copy can be compared.
        let largest = self.panels.iter().map(Curves::largest).fold(0.0, f64::max);
        let n = self.panels.len() as i32;
        let width = (at.right - at.left - GUTTER * (n - 1)) / n;
        for (lines, n) in self.panels.iter().zip(0..) {
            let left = at.left + n * (width + GUTTER);
            lines.draw(root, Rect { left, right: left + width, ..at }, largest)?;
        }
        Ok(())
    }
}

/// Gathers the lines of one operation; none when no row can be drawn.
fn lines<'a>(group: &'a Group<'a>, rows: &mut Rows<'a>, operation: &str, heading: &'static str) -> Option<Curves> {
    let stride_of = |id: &str| {
        let id = CaseId::new(id);
        match id.parts()[..] {
            [op, stride] if id.pattern() == "stride" && op == operation && id.size().is_none() => {
                stride.parse::<u64>().ok().filter(|s| *s > 0)
            }
            _ => None,
        }
    };
    let mut strides: Vec<u64> =
        (0..group.len()).flat_map(|run| &group.run(run).measurements).filter_map(|row| stride_of(&row.id)).collect();
    strides.sort_unstable();
    strides.dedup();

    let mut series = Vec::new();
    for (run, color) in group.colors().into_iter().enumerate() {
        let (mut requested, mut compulsory) = (Vec::new(), Vec::new());
        for stride in &strides {
            let Some(row) = group.row(run, &format!("stride/{operation}/{stride}")) else { continue };
            let sound = rows.sound(run, row);
            let mut point = |value, what| Some((*stride as f64, rows.figure(run, row, value, what)?));
            requested.push(if sound { point(row.achieved_gbps, "GB/s") } else { None });
            compulsory.push(if sound { point(row.compulsory_gbps, "compulsory GB/s") } else { None });
        }
        series.push(Line { color, shape: run, dashed: true, points: compulsory });
        series.push(Line { color, shape: run, dashed: false, points: requested });
    }
    let scale = Scale::Log(|stride| stride.to_string());
    let curves = Curves { heading, axis: "stride in bytes, log scale", scale, lines: series, bounds: Vec::new(), bands: Vec::new() };
    curves.has_values().then_some(curves)
}
