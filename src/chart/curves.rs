//! Lines over one quantity: a panel with a horizontal scale, linear or logarithmic.

use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::marks::{self, DASH};
use super::page::Rect;
use super::panel::{Panel, ticks};
use super::theme::{self, GRID, INK, TEXT, line_height};
use super::{Area, Outcome};

/// How values lie along the horizontal axis.
pub(super) enum Scale {
    /// From 0 to the largest.
    Linear,
    /// By doublings, with a label, which the function writes, at each value that a line has.
    Log(fn(u64) -> String),
}

/// One line.
pub(super) struct Line {
    pub color: RGBColor,
    pub shape: usize,
    /// Dashed with open markers; solid with filled ones otherwise.
    pub dashed: bool,
    /// Along the axis, and the value there; none interrupts the line.
    pub points: Vec<Option<(f64, f64)>>,
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
}

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
    fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self.points().map(|(at, _)| at).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// Draws into `outer`, on a vertical scale up to `largest`.
    pub(super) fn draw<DB: DrawingBackend>(&self, root: &Area<DB>, outer: Rect, largest: f64) -> Outcome<DB> {
        let mut panel = Panel::new(outer, self.heading, if largest > 0.0 { largest } else { 1.0 });
        panel.inner.bottom -= 2 * line_height(TEXT) + 20;
        panel.draw(root)?;
        let Rect { left, top, right, bottom } = panel.inner;
        let places = self.places();
        let ends = || places.iter().copied().chain(self.bounds.iter().map(|(at, _)| *at));
        // Half a doubling of air on either side of a logarithmic scale, and a little at the end of a linear one.
        let (first, last) = match self.scale {
            Scale::Linear => (0.0, ends().fold(f64::MIN_POSITIVE, f64::max) * 1.04),
            Scale::Log(_) => {
                let logs = || ends().map(f64::log2);
                (logs().fold(f64::INFINITY, f64::min) - 0.5, logs().fold(f64::NEG_INFINITY, f64::max) + 0.5)
            }
        };
        let x = |at: f64| {
            let at = if matches!(self.scale, Scale::Log(_)) { at.log2() } else { at };
            left + ((at - first) / (last - first) * f64::from(right - left)).round() as i32
        };
        let labels: Vec<(f64, String)> = match self.scale {
            Scale::Linear => ticks(last).into_iter().filter(|(at, _)| *at <= last).collect(),
            Scale::Log(label) => places.iter().map(|&at| (at, label(at as u64))).collect(),
        };

        let labels: Vec<(i32, String)> = labels.into_iter().map(|(at, text)| (x(at), text)).collect();
        let every = every(&labels);
        for (n, (x, text)) in labels.iter().enumerate() {
            root.draw(&PathElement::new([(*x, top), (*x, bottom)], GRID.stroke_width(1)))?;
            let half = theme::width(text, TEXT) / 2;
            if n.is_multiple_of(every) && x - half >= outer.left && x + half <= theme::WIDTH - 8 {
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
                for point in piece {
                    marks::marker(root, point, *shape, *color, !dashed)?;
                }
            }
        }
        Ok(())
    }
}

/// Every how many-th label is written, from the first on, so that none touches the next.
fn every(labels: &[(i32, String)]) -> usize {
    const GAP: i32 = 10;
    let half = |text: &str| theme::width(text, TEXT) / 2;
    let fit = |step: usize| {
        let shown: Vec<&(i32, String)> = labels.iter().step_by(step).collect();
        shown.windows(2).all(|pair| pair[0].0 + half(&pair[0].1) + GAP <= pair[1].0 - half(&pair[1].1))
    };
    (1..labels.len()).find(|&step| fit(step)).unwrap_or(labels.len().max(1))
}
