//! One plot: a vertical axis from zero with grid lines, and what lies beneath it.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::Rect;
use super::theme::{self, GRID, INK, MUTED, TEXT, line_height};
use super::{Area, Outcome};

/// About this many grid lines.
const LINES: f64 = 5.0;
/// A little air above the largest value.
const AIR: f64 = 1.04;
/// A grid line may stand this much above the largest value.
const LAST_LINE: f64 = 1.15;

/// A plot area with its vertical scale.
pub(super) struct Panel {
    /// Where the data go, without axis and labels.
    pub inner: Rect,
    heading: &'static str,
    /// The value at the upper edge.
    top_value: f64,
    ticks: Vec<(f64, String)>,
}

impl Panel {
    /// A panel within `outer` that shows values up to `largest`. Labels below it
    /// take their room from `inner`.
    pub(super) fn new(outer: Rect, heading: &'static str, largest: f64) -> Self {
        let ticks = ticks(largest);
        let label_width = ticks.iter().map(|(_, label)| theme::width(label, TEXT)).max().unwrap_or_default();
        let inner =
            Rect { left: outer.left + label_width + 12, top: outer.top + line_height(TEXT) + 14, right: outer.right, bottom: outer.bottom };
        let top_value = ticks.iter().map(|(value, _)| *value).fold(largest * AIR, f64::max);
        Self { inner, heading, top_value, ticks }
    }

    /// The height at which a value stands; values beyond the panel stand at its edge.
    pub(super) fn y(&self, value: f64) -> i32 {
        let height = f64::from(self.inner.bottom - self.inner.top);
        self.inner.bottom - ((value / self.top_value).clamp(0.0, 1.0) * height).round() as i32
    }

    /// Draws heading, axis and grid.
    pub(super) fn draw<DB: DrawingBackend>(&self, root: &Area<DB>) -> Outcome<DB> {
        let Rect { left, top, right, bottom } = self.inner;
        let heading = theme::style(TEXT, INK, HPos::Left, VPos::Top);
        root.draw_text(self.heading, &heading, (left, top - line_height(TEXT) - 14))?;
        for (value, label) in &self.ticks {
            let y = self.y(*value);
            root.draw(&PathElement::new([(left, y), (right, y)], GRID.stroke_width(2)))?;
            root.draw_text(label, &theme::style(TEXT, MUTED, HPos::Right, VPos::Center), (left - 12, y))?;
        }
        root.draw(&PathElement::new([(left, bottom), (right, bottom)], INK.stroke_width(2)))
    }
}

/// Round values from 0 to `largest`, with their labels.
pub(super) fn ticks(largest: f64) -> Vec<(f64, String)> {
    let rough = largest / LINES;
    let magnitude = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * magnitude).find(|step| *step >= rough * 0.8).unwrap_or(rough);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    (0..)
        .map(|n| f64::from(n) * step)
        .take_while(|value| *value <= largest * LAST_LINE)
        .map(|value| (value, format!("{value:.decimals$}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(largest: f64) -> Vec<String> {
        ticks(largest).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn grid_lines_stand_at_round_values() {
        assert_eq!(labels(4814.0), ["0", "1000", "2000", "3000", "4000", "5000"]);
        assert_eq!(labels(25.3), ["0", "5", "10", "15", "20", "25"]);
        assert_eq!(labels(0.9), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    }

    #[test]
    fn every_scale_has_a_few_grid_lines() {
        for exponent in -6..=6 {
            for factor in [1.0, 1.5, 2.3, 4.9, 7.7] {
                let n = labels(factor * 10f64.powi(exponent)).len();
                assert!((3..=7).contains(&n), "{n} at {factor}e{exponent}");
            }
        }
    }

    #[test]
    fn values_beyond_the_panel_stand_at_its_edge() {
        let panel = Panel::new(Rect { left: 0, top: 0, right: 500, bottom: 500 }, "GB/s", 100.0);
        assert_eq!(panel.y(0.0), panel.inner.bottom);
        assert_eq!(panel.y(1e300), panel.inner.top);
    }
}
