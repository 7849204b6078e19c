//! Lines over a logarithmic axis of sizes in bytes.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::marks;
use super::page::Rect;
use super::panel::Panel;
use super::theme::{self, GRID, INK, TEXT, line_height};
use super::{Area, Outcome};

/// One line.
pub(super) struct Series {
    pub color: RGBColor,
    pub shape: usize,
    /// Whether it is dashed, with open markers.
    pub dashed: bool,
    /// Size and value; a row that could not be drawn interrupts the line.
    pub points: Vec<(u64, Option<f64>)>,
}

impl Series {
    /// Whether there is anything to draw.
    pub(super) fn any(&self) -> bool {
        self.points.iter().any(|(_, value)| value.is_some())
    }

    /// Its largest value; 0 of none.
    pub(super) fn largest(&self) -> f64 {
        self.points.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max)
    }
}

/// What stands along the axis.
pub(super) struct Axis {
    /// What its sizes are of.
    pub name: &'static str,
    /// The smallest size.
    pub first: u64,
    /// The largest.
    pub last: u64,
    /// Where the grid has lines, from small to large.
    pub ticks: Vec<u64>,
    /// A size as the axis writes it.
    pub label: fn(u64) -> String,
}

/// A panel with such an axis.
pub(super) struct Curves<'a> {
    panel: Panel,
    axis: &'a Axis,
}

impl<'a> Curves<'a> {
    /// Within `outer`, for values up to `largest`.
    pub(super) fn new(outer: Rect, heading: &'static str, largest: f64, axis: &'a Axis) -> Self {
        let mut panel = Panel::new(outer, heading, largest);
        panel.inner.bottom -= 2 * line_height(TEXT) + 20;
        Self { panel, axis }
    }

    /// Where the data go.
    pub(super) fn inner(&self) -> Rect {
        self.panel.inner
    }

    /// Where a size stands, with half a doubling of air on either side.
    pub(super) fn x(&self, size: u64) -> i32 {
        let Rect { left, right, .. } = self.panel.inner;
        let log = |size: u64| (size as f64).log2();
        let (first, last) = (log(self.axis.first) - 0.5, log(self.axis.last) + 0.5);
        left + ((log(size) - first) / (last - first) * f64::from(right - left)).round() as i32
    }

    /// Draws grid and axis.
    pub(super) fn draw_axis<DB: DrawingBackend>(&self, root: &Area<DB>) -> Outcome<DB> {
        self.panel.draw(root)?;
        let Rect { left, top, right, bottom } = self.panel.inner;
        // The labels of the other axis end further left.
        let mut free = left - 10;
        for size in &self.axis.ticks {
            let (x, text) = (self.x(*size), (self.axis.label)(*size));
            root.draw(&PathElement::new([(x, top), (x, bottom)], GRID.stroke_width(1)))?;
            let half = theme::width(&text, TEXT) / 2;
            if x - half >= free {
                root.draw_text(&text, &theme::style(TEXT, INK, HPos::Center, VPos::Top), (x, bottom + 10))?;
                free = x + half + 10;
            }
        }
        let name = theme::style(TEXT, INK, HPos::Center, VPos::Top);
        root.draw_text(self.axis.name, &name, ((left + right) / 2, bottom + 12 + line_height(TEXT)))
    }

    /// Draws one line with its markers.
    pub(super) fn draw_line<DB: DrawingBackend>(&self, root: &Area<DB>, series: &Series) -> Outcome<DB> {
        let Series { color, shape, dashed, points } = series;
        let places: Vec<Option<(i32, i32)>> = points.iter().map(|(size, value)| Some((self.x(*size), self.panel.y((*value)?)))).collect();
        for piece in places.split(Option::is_none) {
            let piece: Vec<(i32, i32)> = piece.iter().flatten().copied().collect();
            if piece.len() > 1 {
                marks::line(root, &piece, *color, *dashed)?;
            }
            for point in piece {
                marks::marker(root, point, *shape, *color, !dashed)?;
            }
        }
        Ok(())
    }
}
