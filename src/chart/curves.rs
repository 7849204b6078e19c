//! Lines over sizes on a logarithmic axis, such as bandwidth by stride: what is requested,
//! and what must move for it.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::marks::{self, Symbol};
use super::page::Rect;
use super::panel::Panel;
use super::rows::{Group, Rows};
use super::theme::{self, GRID, INK, TEXT, line_height};
use super::{Area, Outcome, words};
use crate::pattern::CaseId;

/// Space between two panels.
const GUTTER: i32 = 56;
/// Space between two labels of the axis.
const LABEL_GAP: i32 = 10;

/// What the lines of every panel mean.
pub(super) const KEY: [(Symbol, &str); 2] =
    [(Symbol::Solid, "requested bytes a second"), (Symbol::Dashed, "compulsory bytes a second")];

/// One line.
struct Curve {
    color: RGBColor,
    shape: usize,
    /// Whether these are compulsory bytes; requested ones otherwise.
    compulsory: bool,
    /// Size and GB/s; a row that could not be drawn interrupts the line.
    points: Vec<(u64, Option<f64>)>,
}

/// The lines of one operation.
pub(super) struct Curves {
    heading: &'static str,
    axis: &'static str,
    sizes: Vec<u64>,
    curves: Vec<Curve>,
}

impl Curves {
    /// Gathers the lines of the cases `<name>/<size>`; none when no row can be drawn.
    pub(super) fn of<'a>(
        group: &'a Group<'a>,
        rows: &mut Rows<'a>,
        name: &str,
        heading: &'static str,
        axis: &'static str,
    ) -> Option<Self> {
        let size_of = |id: &str| {
            let id = CaseId::new(id);
            let size = id.name().strip_prefix(name)?.strip_prefix('/')?.parse::<u64>().ok()?;
            (id.size().is_none() && size > 0).then_some(size)
        };
        let mut sizes: Vec<u64> =
            (0..group.len()).flat_map(|run| &group.run(run).measurements).filter_map(|row| size_of(&row.id)).collect();
        sizes.sort_unstable();
        sizes.dedup();

        let mut curves = Vec::new();
        for (run, color) in group.colors().into_iter().enumerate() {
            let (mut requested, mut compulsory) = (Vec::new(), Vec::new());
            for size in &sizes {
                let Some(row) = group.row(run, &format!("{name}/{size}")) else { continue };
                let sound = rows.sound(run, row);
                requested.push((*size, if sound { rows.figure(run, row, row.achieved_gbps, "GB/s") } else { None }));
                compulsory.push((*size, if sound { rows.figure(run, row, row.compulsory_gbps, "compulsory GB/s") } else { None }));
            }
            curves.push(Curve { color, shape: run, compulsory: true, points: compulsory });
            curves.push(Curve { color, shape: run, compulsory: false, points: requested });
        }
        let any = curves.iter().any(|curve| curve.points.iter().any(|(_, value)| value.is_some()));
        any.then_some(Self { heading, axis, sizes, curves })
    }

    /// Draws panels beside each other with one scale, so that they can be compared.
    pub(super) fn draw_all<DB: DrawingBackend>(root: &Area<DB>, panels: &[Self], at: Rect) -> Outcome<DB> {
        let values = panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| curve.points.iter().filter_map(|(_, value)| *value));
        let largest = values.fold(0.0, f64::max);
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let n = panels.len() as i32;
        let width = (at.right - at.left - GUTTER * (n - 1)) / n;
        for (panel, n) in panels.iter().zip(0..) {
            let left = at.left + n * (width + GUTTER);
            panel.draw(root, Rect { left, right: left + width, ..at }, largest)?;
        }
        Ok(())
    }

    fn draw<DB: DrawingBackend>(&self, root: &Area<DB>, outer: Rect, largest: f64) -> Outcome<DB> {
        let mut panel = Panel::new(outer, self.heading, largest);
        panel.inner.bottom -= 2 * line_height(TEXT) + 20;
        panel.draw(root)?;
        let Rect { left, top, right, bottom } = panel.inner;
        // Half a doubling of air on either side.
        let log = |size: u64| (size as f64).log2();
        let (first, last) = (log(self.sizes[0]) - 0.5, log(self.sizes[self.sizes.len() - 1]) + 0.5);
        let x = |size: u64| left + ((log(size) - first) / (last - first) * f64::from(right - left)).round() as i32;

        let labels: Vec<(i32, String)> = self.sizes.iter().map(|&size| (x(size), label(size))).collect();
        let every = every(&labels);
        for (n, (x, text)) in labels.iter().enumerate() {
            root.draw(&PathElement::new([(*x, top), (*x, bottom)], GRID.stroke_width(1)))?;
            if n.is_multiple_of(every) {
                root.draw_text(text, &theme::style(TEXT, INK, HPos::Center, VPos::Top), (*x, bottom + 10))?;
            }
        }
        let axis = theme::style(TEXT, INK, HPos::Center, VPos::Top);
        root.draw_text(self.axis, &axis, ((left + right) / 2, bottom + 12 + line_height(TEXT)))?;

        for Curve { color, shape, compulsory, points } in &self.curves {
            let places: Vec<Option<(i32, i32)>> = points.iter().map(|(size, value)| Some((x(*size), panel.y((*value)?)))).collect();
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

/// `512`, and from 1 KiB on with the unit.
fn label(size: u64) -> String {
    if size < 1024 { size.to_string() } else { words::bytes(size) }
}

/// Every how many-th label is written, from the first on, so that none touches the next.
fn every(labels: &[(i32, String)]) -> usize {
    let half = |text: &str| theme::width(text, TEXT) / 2;
    let fit = |step: usize| {
        let shown: Vec<&(i32, String)> = labels.iter().step_by(step).collect();
        shown.windows(2).all(|pair| pair[0].0 + half(&pair[0].1) + LABEL_GAP <= pair[1].0 - half(&pair[1].1))
    };
    (1..labels.len()).find(|&step| fit(step)).unwrap_or(labels.len().max(1))
}
