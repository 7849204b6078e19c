//! Small signs: markers of points, and the symbols that a legend shows.

use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::Outcome;
use super::theme::{self, INK};

/// Room for a symbol left of its text: three dashes and a gap.
pub(super) const SYMBOL_WIDTH: i32 = 82;

/// Length of the dashes and gaps of a dashed line.
pub(super) const DASH: (i32, i32) = (16, 10);

/// A sign with a meaning that the text beside it tells.
#[derive(Clone, Copy)]
pub(super) enum Symbol {
    /// A run's bars.
    Bar(RGBColor),
    /// Bars that are filled lightly.
    LightBar(RGBColor),
    /// A bar with a lesser value cut into it.
    Cut(RGBColor),
    /// A run's points; the number chooses the shape.
    Points(RGBColor, usize),
    /// From lower to upper quartile.
    Whisker,
    /// A bound on a bar.
    Tick,
    /// A bound across a panel.
    Threshold,
    /// A run's line, which may be dashed.
    Line(RGBColor, bool),
    /// A line with filled markers.
    Solid,
    /// A dashed line with open markers.
    Dashed,
}

impl Symbol {
    /// Draws into the box of [`SYMBOL_WIDTH`] at `x`, centred at height `y`.
    pub(super) fn draw<DB: DrawingBackend>(self, root: &super::Area<DB>, x: i32, y: i32) -> Outcome<DB> {
        let (from, to, middle) = (x, x + SYMBOL_WIDTH - 14, x + SYMBOL_WIDTH / 2 - 7);
        match self {
            Self::Bar(color) => bar(root, (from, y - 11), (to, y + 11), color, color),
            Self::LightBar(color) => bar(root, (from, y - 11), (to, y + 11), color, theme::tint(color)),
            Self::Cut(color) => {
                bar(root, (from, y - 11), (to, y + 11), color, color)?;
                cut(root, from, to, y)
            }
            Self::Points(color, shape) => {
                line(root, &[(from, y), (to, y)], color, false)?;
                marker(root, (middle, y), shape, color, true)
            }
            Self::Whisker => whisker(root, middle, y - 12, y + 12),
            Self::Tick => tick(root, middle - 16, middle + 16, y),
            Self::Threshold => threshold(root, from, to, y),
            Self::Line(color, dashed) => line(root, &[(from, y), (to, y)], color, dashed),
            Self::Solid => {
                line(root, &[(from, y), (to, y)], INK, false)?;
                marker(root, (middle, y), 0, INK, true)
            }
            Self::Dashed => {
                line(root, &[(from, y), (to, y)], INK, true)?;
                marker(root, (middle, y), 0, INK, false)
            }
        }
    }
}

/// Width of the outline of a light bar.
pub(super) const OUTLINE: i32 = 3;

/// A bar with an outline of `color`; none where the bar is too flat for anything within.
pub(super) fn bar<DB: DrawingBackend>(
    root: &super::Area<DB>,
    (left, top): (i32, i32),
    (right, bottom): (i32, i32),
    color: RGBColor,
    within: RGBColor,
) -> Outcome<DB> {
    root.draw(&Rectangle::new([(left, top), (right, bottom)], color.filled()))?;
    if within == color || right - left <= 2 * OUTLINE || bottom - top <= 2 * OUTLINE {
        return Ok(());
    }
    root.draw(&Rectangle::new([(left + OUTLINE, top + OUTLINE), (right - OUTLINE, bottom - OUTLINE)], within.filled()))
}

/// A line through points.
pub(super) fn line<DB: DrawingBackend>(root: &super::Area<DB>, points: &[(i32, i32)], color: RGBColor, dashed: bool) -> Outcome<DB> {
    if dashed {
        root.draw(&DashedPathElement::new(points.to_vec(), DASH.0, DASH.1, color.stroke_width(3)))
    } else {
        root.draw(&PathElement::new(points, color.stroke_width(3)))
    }
}

/// A marker on a point: a circle, a square, a triangle or a diamond.
pub(super) fn marker<DB: DrawingBackend>(
    root: &super::Area<DB>,
    (x, y): (i32, i32),
    shape: usize,
    color: RGBColor,
    filled: bool,
) -> Outcome<DB> {
    let fill = if filled { color } else { WHITE }.filled();
    // Corners, the turn of the first one from the top, and a radius that gives all the same weight.
    let (corners, turn, radius) = match shape % 4 {
        0 => {
            root.draw(&Circle::new((x, y), 9, fill))?;
            return root.draw(&Circle::new((x, y), 9, color.stroke_width(2)));
        }
        1 => (4, 0.5, 11.0),
        2 => (3, 0.0, 12.0),
        _ => (4, 0.0, 12.0),
    };
    let mut points: Vec<(i32, i32)> = (0..corners)
        .map(|corner| {
            let angle = (f64::from(corner) + turn) / f64::from(corners) * std::f64::consts::TAU;
            (x + (radius * angle.sin()).round() as i32, y - (radius * angle.cos()).round() as i32)
        })
        .collect();
    root.draw(&Polygon::new(points.clone(), fill))?;
    points.push(points[0]);
    root.draw(&PathElement::new(points, color.stroke_width(2)))
}

/// A vertical whisker with a light edge, visible on bars of any colour.
pub(super) fn whisker<DB: DrawingBackend>(root: &super::Area<DB>, x: i32, high: i32, low: i32) -> Outcome<DB> {
    let paths = [[(x, high), (x, low)], [(x - 8, high), (x + 8, high)], [(x - 8, low), (x + 8, low)]];
    for (color, stroke) in [(WHITE, 6), (INK, 2)] {
        for path in paths {
            root.draw(&PathElement::new(path, color.stroke_width(stroke)))?;
        }
    }
    Ok(())
}

/// A bound on a bar.
pub(super) fn tick<DB: DrawingBackend>(root: &super::Area<DB>, left: i32, right: i32, y: i32) -> Outcome<DB> {
    root.draw(&PathElement::new([(left, y), (right, y)], INK.stroke_width(4)))
}

/// A lesser value within a bar.
pub(super) fn cut<DB: DrawingBackend>(root: &super::Area<DB>, left: i32, right: i32, y: i32) -> Outcome<DB> {
    root.draw(&Rectangle::new([(left, y - 3), (right, y + 3)], WHITE.filled()))
}

/// A bound across a panel.
pub(super) fn threshold<DB: DrawingBackend>(root: &super::Area<DB>, left: i32, right: i32, y: i32) -> Outcome<DB> {
    root.draw(&DashedPathElement::new([(left, y), (right, y)], DASH.0, DASH.1, INK.stroke_width(2)))
}
