//! What stands around a plot: title, key, legend and caption. The page grows
//! with its text, so that nothing is squeezed or cut off.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::marks::{SYMBOL_WIDTH, Symbol};
use super::theme::{self, INK, MARGIN, MUTED, SMALL, TITLE, WIDTH, line_height};
use super::{Area, Outcome};

/// The least height of a page: 16 to 9.
const HEIGHT_MIN: i32 = 900;
/// The least height that most plots need.
pub(super) const PLOT_HEIGHT_MIN: i32 = 520;
/// Wider names do not widen the column of names in the legend.
const NAME_COLUMN_MAX: i32 = 560;

/// A rectangle, in SVG units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rect {
    pub left: i32,
    pub top: i32,
    pub right: i32,
    pub bottom: i32,
}

/// One run in the legend.
pub(super) struct Entry {
    pub symbol: Symbol,
    pub name: String,
    pub conditions: String,
}

/// The texts of a chart.
pub(super) struct Page {
    /// What is measured.
    pub title: &'static str,
    /// The least height of the plot itself.
    pub plot_height_min: i32,
    /// What the signs in the plot mean.
    pub key: Vec<(Symbol, &'static str)>,
    /// Whose figures these are.
    pub legend: Vec<Entry>,
    /// How to read them; one paragraph each.
    pub caption: Vec<String>,
}

/// Where everything stands.
pub(super) struct Layout {
    texts: Vec<Line>,
    symbols: Vec<(Symbol, i32, i32)>,
    /// Where the plot goes.
    pub plot: Rect,
    height: i32,
}

struct Line {
    text: String,
    x: i32,
    y: i32,
    size: i32,
    color: RGBColor,
}

impl Layout {
    fn text(&mut self, text: impl Into<String>, x: i32, y: i32, size: i32, color: RGBColor) {
        self.texts.push(Line { text: text.into(), x, y, size, color });
    }

    fn symbol(&mut self, symbol: Symbol, x: i32, top: i32) {
        self.symbols.push((symbol, x, top + line_height(SMALL) / 2 - 4));
    }

    /// Writes a paragraph from `x` to the right edge; gives the height after it.
    fn paragraph(&mut self, text: &str, x: i32, mut y: i32) -> i32 {
        for line in theme::wrap(text, SMALL, WIDTH - MARGIN - x) {
            self.text(line, x, y, SMALL, MUTED);
            y += line_height(SMALL);
        }
        y
    }
}

impl Page {
    /// Finds room for every text.
    pub(super) fn layout(&self) -> Layout {
        let right = WIDTH - MARGIN;
        let plot = Rect { left: MARGIN, top: 0, right, bottom: 0 };
        let mut layout = Layout { texts: Vec::new(), symbols: Vec::new(), plot, height: 0 };

        let mut y = MARGIN - 8;
        layout.text(self.title, MARGIN, y, TITLE, INK);
        y += line_height(TITLE) + 10;
        let mut x = MARGIN;
        for (symbol, text) in &self.key {
            let end = x + SYMBOL_WIDTH + theme::width(text, SMALL);
            if end > right && x > MARGIN {
                (x, y) = (MARGIN, y + line_height(SMALL) + 4);
            }
            layout.symbol(*symbol, x, y);
            layout.text(*text, x + SYMBOL_WIDTH, y, SMALL, INK);
            x += SYMBOL_WIDTH + theme::width(text, SMALL) + 44;
        }
        layout.plot.top = y + line_height(SMALL) + 22;

        // What stands below the plot is laid out from 0 and then moved down.
        let (above, symbols_above) = (layout.texts.len(), layout.symbols.len());
        let mut y = self.legend(&mut layout) + 12;
        for paragraph in &self.caption {
            y = layout.paragraph(paragraph, MARGIN, y);
        }

        const GAP: i32 = 24;
        let below = GAP + y + MARGIN - 16;
        layout.height = (layout.plot.top + self.plot_height_min + below).max(HEIGHT_MIN);
        layout.plot.bottom = layout.height - below;
        let down = layout.plot.bottom + GAP;
        layout.texts[above..].iter_mut().for_each(|line| line.y += down);
        layout.symbols[symbols_above..].iter_mut().for_each(|(_, _, y)| *y += down);
        layout
    }

    /// Lays out the legend from height 0; gives the height after it.
    fn legend(&self, layout: &mut Layout) -> i32 {
        const GAP: i32 = 24;
        let right = WIDTH - MARGIN;
        // The conditions stand in a column of their own, unless a name is too long for that.
        let names = || self.legend.iter().map(|entry| theme::width(&entry.name, SMALL));
        let column = SYMBOL_WIDTH + names().filter(|width| *width <= NAME_COLUMN_MAX).max().unwrap_or_default() + GAP;
        let conditions = self.legend.iter().map(|entry| theme::width(&entry.conditions, SMALL)).max().unwrap_or_default();
        let entry_width = column + conditions + GAP;

        let abreast = (right - MARGIN) / entry_width;
        if abreast > 1 && names().all(|width| width <= NAME_COLUMN_MAX) {
            for (entry, n) in self.legend.iter().zip(0..) {
                let (x, y) = (MARGIN + n % abreast * entry_width, n / abreast * (line_height(SMALL) + 3));
                layout.symbol(entry.symbol, x, y);
                layout.text(entry.name.clone(), x + SYMBOL_WIDTH, y, SMALL, INK);
                if !entry.conditions.is_empty() {
                    layout.text(entry.conditions.clone(), x + column, y, SMALL, MUTED);
                }
            }
            return (self.legend.len() as i32 + abreast - 1) / abreast * (line_height(SMALL) + 3);
        }
        let mut y = 0;
        let x = MARGIN + SYMBOL_WIDTH;
        for Entry { symbol, name, conditions } in &self.legend {
            layout.symbol(*symbol, MARGIN, y);
            let lines = theme::wrap(name, SMALL, right - x);
            for line in &lines {
                layout.text(line.clone(), x, y, SMALL, INK);
                y += line_height(SMALL);
            }
            if !conditions.is_empty() {
                // Beside the name, or below one that is too long.
                let beside = theme::width(name, SMALL) <= NAME_COLUMN_MAX;
                y = layout.paragraph(conditions, MARGIN + column, if beside { y - line_height(SMALL) } else { y });
            }
            y += 3;
        }
        y
    }
}

impl Layout {
    /// Width and height of the page.
    pub(super) fn size(&self) -> (u32, u32) {
        (WIDTH.unsigned_abs(), self.height.unsigned_abs())
    }

    /// Draws all but the plot.
    pub(super) fn draw<DB: DrawingBackend>(&self, root: &Area<DB>) -> Outcome<DB> {
        root.fill(&WHITE)?;
        for Line { text, x, y, size, color } in &self.texts {
            root.draw_text(text, &theme::style(*size, *color, HPos::Left, VPos::Top), (*x, *y))?;
        }
        for (symbol, x, y) in &self.symbols {
            symbol.draw(root, *x, *y)?;
        }
        Ok(())
    }
}
