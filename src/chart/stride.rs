//! `stride`: what is left of the bandwidth when accesses lie apart.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::marks::{self, Symbol};
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::panel::Panel;
use super::rows::{Group, Rows, array_sizes};
use super::theme::{self, GRID, INK, TEXT, line_height};
use super::{Area, Chart, Outcome};
use crate::pattern::{CaseId, DeviceKind};

/// Space between the two panels.
const GUTTER: i32 = 56;

/// One line.
struct Series {
    color: RGBColor,
    shape: usize,
    /// Whether these are compulsory bytes; requested ones otherwise.
    compulsory: bool,
    /// Stride and GB/s; a row that could not be drawn interrupts the line.
    points: Vec<(u64, Option<f64>)>,
}

/// The lines of one operation.
struct Lines {
    heading: &'static str,
    strides: Vec<u64>,
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
        let values = self
            .panels
            .iter()
            .flat_map(|lines| lines.series.iter().flat_map(|series| series.points.iter().filter_map(|(_, value)| *value)));
        let largest = values.fold(0.0, f64::max);
        let largest = if largest > 0.0 { largest } else { 1.0 };
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
        series.push(Series { color, shape: run, compulsory: true, points: compulsory });
        series.push(Series { color, shape: run, compulsory: false, points: requested });
    }
    let any = series.iter().any(|series| series.points.iter().any(|(_, value)| value.is_some()));
    any.then_some(Lines { heading, strides, series })
}

impl Lines {
    fn draw<DB: DrawingBackend>(&self, root: &Area<DB>, outer: Rect, largest: f64) -> Outcome<DB> {
        let mut panel = Panel::new(outer, self.heading, largest);
        panel.inner.bottom -= 2 * line_height(TEXT) + 20;
        panel.draw(root)?;
        let Rect { left, top, right, bottom } = panel.inner;
        // Half a doubling of air on either side.
        let log = |stride: u64| (stride as f64).log2();
        let (first, last) = (log(self.strides[0]) - 0.5, log(self.strides[self.strides.len() - 1]) + 0.5);
        let x = |stride: u64| left + ((log(stride) - first) / (last - first) * f64::from(right - left)).round() as i32;

        let mut free = left;
        for stride in &self.strides {
            let (x, text) = (x(*stride), stride.to_string());
            root.draw(&PathElement::new([(x, top), (x, bottom)], GRID.stroke_width(1)))?;
            let half = theme::width(&text, TEXT) / 2;
            if x - half >= free {
                root.draw_text(&text, &theme::style(TEXT, INK, HPos::Center, VPos::Top), (x, bottom + 10))?;
                free = x + half + 10;
            }
        }
        let axis = theme::style(TEXT, INK, HPos::Center, VPos::Top);
        root.draw_text("stride in bytes, log scale", &axis, ((left + right) / 2, bottom + 12 + line_height(TEXT)))?;

        for Series { color, shape, compulsory, points } in &self.series {
            let places: Vec<Option<(i32, i32)>> = points.iter().map(|(stride, value)| Some((x(*stride), panel.y((*value)?)))).collect();
            for piece in places.split(Option::is_none) {
                let piece: Vec<(i32, i32)> = piece.iter().flatten().copied().collect();
                if piece.len() > 1 {
                    marks::line(root, &piece, *color, *compulsory)?;
                }
                for point in piece {
                    marks::marker(root, point, *shape, *color, !compulsory)?;
                }
            }
        }
        Ok(())
    }
}
