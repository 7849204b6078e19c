//! `stride`: what is left of the bandwidth when accesses lie apart.

use plotters::prelude::*;

use super::curves::{Axis, Curves, Series};
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome};
use crate::pattern::{CaseId, DeviceKind};

/// Space between the two panels.
const GUTTER: i32 = 56;

/// The lines of one operation: dashed for compulsory bytes, solid for requested ones.
struct Lines {
    heading: &'static str,
    axis: Axis,
    series: Vec<Series>,
}

pub(super) struct Stride {
    page: Page,
    panels: Vec<Lines>,
}

impl Chart for Stride {
    const NAME: &'static str = "stride";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let panels: Vec<Lines> = [("read", "Read, GB/s"), ("copy", "Copy, GB/s")]
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
        let largest = self.panels.iter().flat_map(|lines| &lines.series).map(Series::largest).fold(0.0, f64::max);
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let n = self.panels.len() as i32;
        let width = (at.right - at.left - GUTTER * (n - 1)) / n;
        for (lines, n) in self.panels.iter().zip(0..) {
            let left = at.left + n * (width + GUTTER);
            let curves = Curves::new(Rect { left, right: left + width, ..at }, lines.heading, largest, &lines.axis);
            curves.draw_axis(root)?;
            lines.series.iter().try_for_each(|series| curves.draw_line(root, series))?;
        }
        Ok(())
    }
}

/// Gathers the lines of one operation; none when no row can be drawn.
fn lines<'a>(group: &'a Group<'a>, rows: &mut Rows<'a>, operation: &str, heading: &'static str) -> Option<Lines> {
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
            requested.push((*stride, if sound { rows.figure(run, row, row.achieved_gbps, "GB/s") } else { None }));
            compulsory.push((*stride, if sound { rows.figure(run, row, row.compulsory_gbps, "compulsory GB/s") } else { None }));
        }
        series.push(Series { color, shape: run, dashed: true, points: compulsory });
        series.push(Series { color, shape: run, dashed: false, points: requested });
    }
    let (first, last) = (*strides.first()?, *strides.last()?);
    let axis = Axis { name: "stride in bytes, log scale", first, last, ticks: strides, label: |stride| stride.to_string() };
    series.iter().any(Series::any).then_some(Lines { heading, axis, series })
}
