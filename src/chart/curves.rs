//! Lines over one quantity: a panel with a horizontal scale, linear or logarithmic.

use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::marks::{self, DASH};
use super::page::Rect;
use super::panel::{Panel, ticks};
use super::theme::{self, GRID, INK, SMALL, TEXT, line_height};
use super::{Area, Outcome};

/// How values lie along the horizontal axis.
pub(super) enum Scale {
    /// From 0 to the largest.
    Linear,
    /// From 0 to this, whatever values there are.
    Until(f64),
    /// By doublings, with a label, which the function writes, at each value that a line has; none where it writes nothing.
    Log(fn(u64) -> String),
}

/// One line.
pub(super) struct Line {
    pub color: RGBColor,
    /// That of its markers; none leaves them out.
    pub shape: Option<usize>,
    /// Dashed with open markers; solid with filled ones otherwise.
    pub dashed: bool,
    /// Along the axis, and the value there; none interrupts the line.
    pub points: Vec<Option<(f64, f64)>>,
}

/// A stretch along the axis with a name that stands above the lines.
pub(super) struct Band {
    pub first: f64,
    pub last: f64,
    pub name: String,
}

/// Lines with their axes.
pub(super) struct Curves {
    /// What the vertical axis shows.
    pub heading: &'static str,
    /// What the horizontal axis shows.
    pub axis: &'static str,
    pub scale: Scale,
    pub lines: Vec<Line>,
    /// Places along the axis that are marked from bottom to top.
    pub bounds: Vec<(f64, RGBColor)>,
    /// Stretches along the axis that are named.
    pub bands: Vec<Band>,
}

/// Behind a band.
const BAND: RGBColor = RGBColor(0xf0, 0xf0, 0xf0);
/// By which it reaches beyond its first and last place.
const BAND_EDGE: i32 = 12;

impl Curves {
    /// The largest value of all lines.
    pub(super) fn largest(&self) -> f64 {
        self.points().map(|(_, value)| value).fold(0.0, f64::max)
    }

    /// Whether any line has a value.
    pub(super) fn has_values(&self) -> bool {
        self.points().next().is_some()
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.lines.iter().flat_map(|line| line.points.iter().flatten().copied())
    }

    /// Every place along the axis, in order, each once.
    pub(super) fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self.points().map(|(at, _)| at).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// The first and the last value of the horizontal axis, as it lies there: half a doubling of air on either side of a
    /// logarithmic scale, and a little at the end of a linear one.
    fn ends(&self) -> (f64, f64) {
        let all = || self.points().map(|(at, _)| at).chain(self.bounds.iter().map(|(at, _)| *at));
        match self.scale {
            Scale::Linear => (0.0, all().fold(f64::MIN_POSITIVE, f64::max) * 1.04),
            Scale::Until(end) => (0.0, end),
            Scale::Log(_) => {
                let logs = || all().map(f64::log2);
                (logs().fold(f64::INFINITY, f64::min) - 0.5, logs().fold(f64::NEG_INFINITY, f64::max) + 0.5)
            }
        }
    }

    /// Where a value of the horizontal axis stands.
    fn x(&self, inner: Rect, at: f64) -> i32 {
        let (first, last) = self.ends();
        let at = if matches!(self.scale, Scale::Log(_)) { at.log2() } else { at };
        inner.left + ((at - first) / (last - first) * f64::from(inner.right - inner.left)).round() as i32
    }

    /// Draws into `outer`, on a vertical scale up to `largest`.
    pub(super) fn draw<DB: DrawingBackend>(&self, root: &Area<DB>, outer: Rect, largest: f64) -> Outcome<DB> {
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let panel_to = |largest| {
            let mut panel = Panel::new(outer, self.heading, largest);
            panel.inner.bottom -= 2 * line_height(TEXT) + 20;
            panel
        };
        // The names stand above the lines.
        let mut panel = panel_to(largest);
        if let Some(rows) = self.names(panel.inner).iter().map(|name| name.row + 1).max() {
            let height = panel.inner.bottom - panel.inner.top;
            let free = (height - rows * line_height(SMALL) - 16).max(height / 4);
            panel = panel_to(largest * f64::from(height) / f64::from(free));
        }
        let Rect { left, top, right, bottom } = panel.inner;
        let x = |at: f64| self.x(panel.inner, at);
        for Band { first, last, .. } in &self.bands {
            let (from, to) = ((x(*first) - BAND_EDGE).max(left), (x(*last) + BAND_EDGE).min(right));
            root.draw(&Rectangle::new([(from, top), (to, bottom)], BAND.filled()))?;
        }
        panel.draw(root)?;

        let labels: Vec<(f64, String)> = match self.scale {
            Scale::Linear | Scale::Until(_) => ticks(self.ends().1).into_iter().filter(|(at, _)| *at <= self.ends().1).collect(),
            Scale::Log(label) => self.places().iter().map(|&at| (at, label(at as u64))).filter(|(_, text)| !text.is_empty()).collect(),
        };
        let labels: Vec<(i32, String)> = labels.into_iter().map(|(at, text)| (x(at), text)).collect();
        for ((x, text), is_written) in labels.iter().zip(written(&labels)) {
            root.draw(&PathElement::new([(*x, top), (*x, bottom)], GRID.stroke_width(1)))?;
            let half = theme::width(text, TEXT) / 2;
            if is_written && x - half >= outer.left && x + half <= theme::WIDTH - 8 {
                root.draw_text(text, &theme::style(TEXT, INK, HPos::Center, VPos::Top), (*x, bottom + 10))?;
            }
        }
        let axis = theme::style(TEXT, INK, HPos::Center, VPos::Top);
        root.draw_text(self.axis, &axis, ((left + right) / 2, bottom + 12 + line_height(TEXT)))?;
        for (at, color) in &self.bounds {
            root.draw(&DashedPathElement::new([(x(*at), top), (x(*at), bottom)], DASH.0, DASH.1, color.stroke_width(2)))?;
        }

        for Line { color, shape, dashed, points } in &self.lines {
            let places: Vec<Option<(i32, i32)>> = points.iter().map(|point| point.map(|(at, value)| (x(at), panel.y(value)))).collect();
            for piece in places.split(Option::is_none) {
                let piece: Vec<(i32, i32)> = piece.iter().flatten().copied().collect();
                if piece.len() > 1 {
                    marks::line(root, &piece, *color, *dashed)?;
                }
                for (point, shape) in piece.into_iter().filter_map(|point| Some((point, (*shape)?))) {
                    marks::marker(root, point, shape, *color, !dashed)?;
                }
            }
        }
        for Name { text, left, right, row } in self.names(panel.inner) {
            let y = top + 6 + row * line_height(SMALL);
            // No line goes through a name.
            root.draw(&Rectangle::new([(left - 4, y - 2), (right + 4, y + line_height(SMALL) - 2)], BAND.filled()))?;
            root.draw_text(text, &theme::style(SMALL, INK, HPos::Left, VPos::Top), (left, y))?;
        }
        Ok(())
    }

    /// The names of bands, each over its middle in the first row that has room for it.
    fn names(&self, inner: Rect) -> Vec<Name<'_>> {
        const GAP: i32 = 16;
        let x = |at: f64| self.x(inner, at);
        let mut names: Vec<Name> = Vec::new();
        for Band { first, last, name } in &self.bands {
            let width = theme::width(name, SMALL);
            let left = ((x(*first) + x(*last) - width) / 2).clamp(inner.left, (inner.right - width).max(inner.left));
            let is_free =
                |row: i32| names.iter().all(|other| other.row != row || left >= other.right + GAP || left + width + GAP <= other.left);
            let row = (0..).find(|row| is_free(*row)).unwrap_or(0);
            names.push(Name { text: name, left, right: left + width, row });
        }
        names
    }
}

/// The space between two panels.
pub(super) const GUTTER: i32 = 30;

/// Draws panels below each other, each on a scale of its own, with their vertical axes in one line.
pub(super) fn draw_stacked<DB: DrawingBackend>(panels: &[Curves], root: &Area<DB>, at: Rect) -> Outcome<DB> {
    let n = panels.len() as i32;
    let height = (at.bottom - at.top - GUTTER * (n - 1)) / n;
    let axis = |panel: &Curves| Panel::new(at, panel.heading, panel.largest()).inner.left;
    let common = panels.iter().map(axis).max().unwrap_or(at.left);
    for (panel, n) in panels.iter().zip(0..) {
        let top = at.top + n * (height + GUTTER);
        let left = at.left + common - axis(panel);
        panel.draw(root, Rect { left, top, bottom: top + height, ..at }, panel.largest())?;
    }
    Ok(())
}

/// The name of a band, placed.
struct Name<'a> {
    text: &'a str,
    left: i32,
    right: i32,
    row: i32,
}

/// Which labels are written: from the first on those that have room for the widest of all, so that places at equal
/// distances have labels at equal distances.
fn written(labels: &[(i32, String)]) -> Vec<bool> {
    const GAP: i32 = 10;
    let room = labels.iter().map(|(_, text)| theme::width(text, TEXT)).max().unwrap_or_default() + GAP;
    let mut free = i32::MIN;
    let mut is_written = |at: i32| {
        let fits = at >= free;
        if fits {
            free = at + room;
        }
        fits
    };
    labels.iter().map(|(at, _)| is_written(*at)).collect()
}
