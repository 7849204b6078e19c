//! Clusters of bars, such as one cluster a case and one bar a run.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::Rect;
use super::panel::Panel;
use super::theme::{self, INK, SMALL, TEXT, line_height};
use super::{Area, Outcome, is_drawable, marks, words};

/// Share of its room that a cluster fills; the rest separates the clusters.
const FILLED: f64 = 0.88;
/// Wider than this a single bar looks like a block.
const BAR_WIDTH_MAX: f64 = 150.0;
/// The narrowest bar that a turned value fits: digits are 0.7 em high.
const BAR_WIDTH_TURNED: i32 = 19;
/// In narrower bars a second value would be taken for the first of a neighbour.
const BAR_WIDTH_FOOT: i32 = 30;
/// Longer labels are broken anywhere rather than turned, so that the bars keep their room.
const TURNED_MAX: i32 = 400;
/// Free space around a value.
const PAD: i32 = 9;

/// One bar.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bar {
    pub value: f64,
    /// Lower and upper end of the whisker.
    pub quartiles: Option<(f64, f64)>,
    /// A bound to mark.
    pub bound: Option<f64>,
    /// A lesser value, which is cut into the bar and written at its foot.
    pub lesser: Option<f64>,
    /// How it is filled.
    pub fill: Fill,
}

/// How a bar is filled.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Fill {
    /// With its colour.
    #[default]
    Solid,
    /// With a light tint of its colour, which draws its outline.
    Light,
}

impl Fill {
    /// The colour within a bar of `color`.
    fn within(self, color: RGBColor) -> RGBColor {
        match self {
            Self::Solid => color,
            Self::Light => theme::tint(color),
        }
    }
}

/// Bars that belong together.
pub(super) struct Cluster {
    /// The name below them.
    pub label: String,
    /// One place a colour.
    pub bars: Vec<Option<Bar>>,
    /// A bound of all of them, which is marked without bars too.
    pub bound: Option<f64>,
}

impl Cluster {
    fn bound(&self) -> Option<f64> {
        self.bound.filter(|bound| is_drawable(*bound))
    }
}

impl Bar {
    fn whisker(&self) -> Option<(f64, f64)> {
        self.quartiles.filter(|(low, high)| is_drawable(*low) && is_drawable(*high))
    }

    fn bound(&self) -> Option<f64> {
        self.bound.filter(|bound| is_drawable(*bound))
    }

    fn lesser(&self) -> Option<f64> {
        self.lesser.filter(|lesser| is_drawable(*lesser))
    }
}

/// All bars of one panel.
pub(super) struct Bars {
    /// What the values are, with their unit.
    pub heading: &'static str,
    /// One colour for each place in a cluster.
    pub colors: Vec<RGBColor>,
    /// From left to right.
    pub clusters: Vec<Cluster>,
    /// A value to mark across the panel, with the label at its end.
    pub threshold: Option<(f64, &'static str)>,
}

/// How the values are written, from most to least room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Values {
    Across,
    Upwards,
    Omitted,
}

impl Bars {
    /// The largest value that the panel must show.
    fn largest(&self) -> f64 {
        let bars = || self.clusters.iter().flat_map(|cluster| cluster.bars.iter().flatten());
        let bounds = self.clusters.iter().map(Cluster::bound).chain([self.threshold.map(|(value, _)| value)]);
        let values = bars().flat_map(|bar| [Some(bar.value), bar.bound()]).chain(bounds);
        let largest = values.flatten().fold(0.0, f64::max);
        // Whiskers may stand out a little, but one wild sample must not flatten all bars.
        let whiskers = bars().filter_map(Bar::whisker).map(|(_, high)| high.min(largest * 1.2));
        let largest = whiskers.fold(largest, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }

    /// Draws the panel into `outer`.
    pub(super) fn draw<DB: DrawingBackend>(&self, root: &Area<DB>, outer: Rect) -> Outcome<DB> {
        Self::draw_aligned(root, &[(self, outer)])
    }

    /// Draws panels of one height with one scale, so that their bars can be compared.
    pub(super) fn draw_aligned<DB: DrawingBackend>(root: &Area<DB>, panels: &[(&Self, Rect)]) -> Outcome<DB> {
        let largest = panels.iter().map(|(bars, _)| bars.largest()).fold(0.0, f64::max);
        let mut prepared: Vec<(&Self, Panel, Labels, f64)> = Vec::new();
        for (bars, outer) in panels {
            // A label beside the line of the threshold needs room right of the bars.
            let margin = bars.threshold.map_or(0, |(_, label)| theme::width(label, TEXT) + 12);
            let panel = Panel::new(Rect { right: outer.right - margin, ..*outer }, bars.heading, largest);
            let slot = f64::from(panel.inner.right - panel.inner.left) / bars.clusters.len().max(1) as f64;
            let labels = Labels::new(bars.clusters.iter().map(|cluster| cluster.label.as_str()), slot as i32);
            prepared.push((bars, panel, labels, slot));
        }
        let below = prepared.iter().map(|(_, _, labels, _)| labels.height).max().unwrap_or_default();
        let values = prepared.iter().map(|(bars, .., slot)| bars.values(bars.width(*slot))).max().unwrap_or(Values::Omitted);
        prepared.into_iter().try_for_each(|(bars, mut panel, labels, slot)| {
            panel.inner.bottom -= below;
            bars.draw_panel(root, &panel, &labels, slot, values)
        })
    }

    /// The width of a bar where each cluster has `slot`.
    fn width(&self, slot: f64) -> f64 {
        (slot * FILLED / self.colors.len().max(1) as f64).min(BAR_WIDTH_MAX)
    }

    fn draw_panel<DB: DrawingBackend>(&self, root: &Area<DB>, panel: &Panel, labels: &Labels, slot: f64, values: Values) -> Outcome<DB> {
        panel.draw(root)?;
        let Rect { left, right, bottom, .. } = panel.inner;
        let bar_width = self.width(slot);
        let mut placed = Vec::new();
        for (n, cluster) in self.clusters.iter().enumerate() {
            let middle = f64::from(left) + slot * (n as f64 + 0.5);
            let start = middle - bar_width * self.colors.len() as f64 / 2.0;
            for (n, (bar, color)) in cluster.bars.iter().zip(&self.colors).enumerate() {
                let from = start + bar_width * n as f64;
                // A gap of two units between neighbours.
                let (from, to) = (from.round() as i32 + 1, (from + bar_width).round() as i32 - 1);
                if let Some(bar) = bar {
                    self.draw_bar(root, panel, bar, (from, to), *color)?;
                    placed.push((bar, cluster.bound(), (from, to), bar.fill.within(*color)));
                }
            }
            if let Some(bound) = cluster.bound() {
                let half = bar_width * self.colors.len() as f64 / 2.0;
                marks::tick(root, (middle - half).round() as i32, (middle + half).round() as i32, panel.y(bound))?;
            }
            labels.draw(root, n, middle.round() as i32, bottom)?;
        }
        if let Some((value, label)) = self.threshold {
            marks::threshold(root, left, right, panel.y(value))?;
            root.draw_text(label, &theme::style(TEXT, INK, HPos::Left, VPos::Center), (right + 12, panel.y(value)))?;
        }
        // Last, so that nothing crosses a value.
        placed.into_iter().try_for_each(|(bar, bound, ends, within)| self.draw_value(root, panel, bar, bound, (ends, within), values))
    }

    /// The way of writing values that fits every bar.
    fn values(&self, bar_width: f64) -> Values {
        let bars = || self.clusters.iter().flat_map(|cluster| cluster.bars.iter().flatten());
        let written = bars().flat_map(|bar| [Some(bar.value), bar.lesser()]).flatten();
        let widest = written.map(|value| theme::width(&words::figure(value), TEXT)).max().unwrap_or_default();
        let outlined = bars().any(|bar| bar.fill == Fill::Light);
        let edges = if outlined { 2 * marks::OUTLINE } else { 0 };
        match bar_width as i32 - edges {
            width if width >= widest + 6 => Values::Across,
            width if width >= BAR_WIDTH_TURNED => Values::Upwards,
            _ => Values::Omitted,
        }
    }
}

impl Bars {
    fn draw_bar<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        panel: &Panel,
        bar: &Bar,
        (from, to): (i32, i32),
        color: RGBColor,
    ) -> Outcome<DB> {
        let (top, bottom) = (panel.y(bar.value), panel.inner.bottom);
        marks::bar(root, (from, top), (to, bottom), color, bar.fill.within(color))?;
        if let Some(lesser) = bar.lesser().filter(|lesser| *lesser < bar.value) {
            marks::cut(root, from, to, panel.y(lesser))?;
        }
        if let Some((low, high)) = bar.whisker() {
            marks::whisker(root, (from + to) / 2, panel.y(high), panel.y(low))?;
        }
        match bar.bound() {
            Some(bound) => marks::tick(root, from, to, panel.y(bound)),
            None => Ok(()),
        }
    }

    /// Writes a bar's value into it, below its whisker, or above it when the bar
    /// is too short; nowhere when neither has room. A lesser value stands at its foot
    /// where that leaves room and no doubt which value is whose.
    fn draw_value<DB: DrawingBackend>(
        &self,
        root: &Area<DB>,
        panel: &Panel,
        bar: &Bar,
        bound: Option<f64>,
        ((from, to), within): ((i32, i32), RGBColor),
        values: Values,
    ) -> Outcome<DB> {
        if values == Values::Omitted {
            return Ok(());
        }
        let length_of = |text: &str| match values {
            // The height of digits.
            Values::Across => TEXT * 2 / 3,
            _ => theme::width(text, SMALL),
        };
        let text = words::figure(bar.value);
        let length = length_of(&text);
        let (top, bottom) = (panel.y(bar.value), panel.inner.bottom);
        let (low, high) = bar.whisker().map_or((top, top), |(low, high)| (panel.y(low), panel.y(high)));
        // Lines that no value may touch, and the first place from the top of the bar that keeps clear of them.
        let lines =
            [bar.bound(), bound, bar.lesser(), self.threshold.map(|(value, _)| value)].map(|value| value.map(|value| panel.y(value)));
        let touches = |start: i32, length: i32| lines.into_iter().flatten().find(|line| (start - PAD..start + length + PAD).contains(line));
        let touched = |start: i32| touches(start, length);
        let inside = top.max(low) + PAD;
        let inside = touched(inside).map_or(inside, |line| line + PAD);
        let above = top.min(high) - PAD - length;
        let above = touched(above).map_or(above, |line| line - PAD - length);
        let (color, start) = if inside + length + PAD <= bottom {
            (theme::ink_on(within), inside)
        } else if above >= panel.inner.top {
            (INK, above)
        } else {
            return Ok(());
        };
        let middle = (from + to) / 2;
        write_value(root, &text, color, (middle, start), values)?;
        let Some(lesser) = bar.lesser().filter(|_| to - from >= BAR_WIDTH_FOOT).map(words::figure) else { return Ok(()) };
        let foot = bottom - PAD - length_of(&lesser);
        if foot < (start + length).max(top).max(low) + PAD || touches(foot, length_of(&lesser)).is_some() {
            return Ok(());
        }
        write_value(root, &lesser, theme::ink_on(within), (middle, foot), values)
    }
}

/// Writes a value from `start` on, downwards.
fn write_value<DB: DrawingBackend>(
    root: &Area<DB>,
    text: &str,
    color: RGBColor,
    (middle, start): (i32, i32),
    values: Values,
) -> Outcome<DB> {
    if values == Values::Across {
        return root.draw_text(text, &theme::style(TEXT, color, HPos::Center, VPos::Top), (middle, start));
    }
    // Turned text ends at its upper end.
    let style = theme::style(SMALL, color, HPos::Right, VPos::Center).transform(FontTransform::Rotate270);
    // Centred text stands half an x above its base line; digits are taller by 0.17 em.
    root.draw_text(text, &style, (middle + SMALL / 12, start))
}

/// The names of the clusters: broken at spaces, or turned when a word does not fit.
struct Labels {
    lines: Vec<Vec<String>>,
    turned: bool,
    height: i32,
}

impl Labels {
    fn new<'a>(labels: impl Iterator<Item = &'a str> + Clone, room: i32) -> Self {
        let longest = labels.clone().map(|label| theme::width(label, TEXT)).max().unwrap_or_default();
        let broken = labels.clone().flat_map(|label| label.split(' ')).any(|word| theme::width(word, TEXT) > room - 8);
        let turned = broken && longest <= TURNED_MAX;
        if turned {
            Self { lines: labels.map(|label| vec![label.to_owned()]).collect(), turned, height: longest + 20 }
        } else {
            let lines: Vec<_> = labels.map(|label| theme::wrap(label, TEXT, room - 8)).collect();
            let most = lines.iter().map(Vec::len).max().unwrap_or_default() as i32;
            Self { lines, turned, height: most * line_height(TEXT) + 16 }
        }
    }

    fn draw<DB: DrawingBackend>(&self, root: &Area<DB>, n: usize, middle: i32, bottom: i32) -> Outcome<DB> {
        for (line, text) in self.lines[n].iter().enumerate() {
            if self.turned {
                let style = theme::style(TEXT, INK, HPos::Right, VPos::Center).transform(FontTransform::Rotate270);
                root.draw_text(text, &style, (middle, bottom + 12))?;
            } else {
                let y = bottom + 12 + line as i32 * line_height(TEXT);
                root.draw_text(text, &theme::style(TEXT, INK, HPos::Center, VPos::Top), (middle, y))?;
            }
        }
        Ok(())
    }
}
