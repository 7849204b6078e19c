//! Colours, text sizes and text widths that all charts share.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::raster;

/// Width of every chart, in SVG units.
pub(super) const WIDTH: i32 = 1600;
/// Free space along the edges.
pub(super) const MARGIN: i32 = 48;

/// Text sizes as plotters counts them: 1.24 times the em.
pub(super) const TITLE: i32 = 48;
/// Axes and values.
pub(super) const TEXT: i32 = 30;
/// Legend and caption.
pub(super) const SMALL: i32 = 27;

/// Text.
pub(super) const INK: RGBColor = RGBColor(0x1a, 0x1a, 0x1a);
/// Text of lesser weight, with a contrast of 7 to 1 on white.
pub(super) const MUTED: RGBColor = RGBColor(0x55, 0x55, 0x55);
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// The colour-blind safe palette of Okabe and Ito (2008), with grey in place of
/// yellow, which cannot be read on white.
pub(super) const PALETTE: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0x99, 0x99, 0x99),
];

/// Distance between two lines of text.
pub(super) const fn line_height(size: i32) -> i32 {
    size * 23 / 20
}

/// Black or white, whichever is easier to read on `background`.
pub(super) fn ink_on(background: RGBColor) -> RGBColor {
    let RGBColor(r, g, b) = background;
    // Relative luminance with a gamma of 2; the two contrasts (WCAG 2, L + 0.05) are equal at 0.18.
    let part = |c: u8| (f64::from(c) / 255.0).powi(2);
    if 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b) > 0.18 { INK } else { WHITE }
}

/// A light tint of a colour, on which black text can be read.
pub(super) fn tint(RGBColor(r, g, b): RGBColor) -> RGBColor {
    let part = |c: u8| 255 - (255 - c) / 5;
    RGBColor(part(r), part(g), part(b))
}

/// A text style. SVG viewers take their own sans-serif font.
pub(super) fn style(size: i32, color: RGBColor, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    let font = (FontFamily::SansSerif, size).into_font();
    TextStyle { font, color: color.to_backend_color(), pos: Pos::new(horizontal, vertical) }
}

/// How much wider than the compiled-in font the sans-serif font of an SVG viewer
/// may run: DejaVu Sans, the widest in common use, is 17 % wider in mixed text.
const WIDEST_FONT: f32 = 1.18;

/// The room that a text needs, whichever font shows it.
pub(super) fn width(text: &str, size: i32) -> i32 {
    (raster::advance(text, size as f32 / raster::SIZE_PER_EM) * WIDEST_FONT).ceil() as i32
}

/// Breaks a text into lines of at most `width`; words only when a whole line
/// cannot hold them.
pub(super) fn wrap(text: &str, size: i32, width: i32) -> Vec<String> {
    let fits = |line: &str| self::width(line, size) <= width;
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if fits(&longer) {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            if !line.is_empty() && !fits(&format!("{line}{c}")) {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_keep_every_word_and_their_width() {
        let text = "driver 580.159.03; arrays of 3.75 GiB; theoretical peak 4814 GB/s; 2026-01-02";
        let lines = wrap(text, SMALL, 400);
        assert!(lines.len() > 1);
        assert_eq!(lines.join(" "), text);
        assert!(lines.iter().all(|line| width(line, SMALL) <= 400), "{lines:?}");
    }

    #[test]
    fn a_word_longer_than_a_line_is_broken() {
        let word = "W".repeat(100);
        let lines = wrap(&word, SMALL, 300);
        assert_eq!(lines.concat(), word);
        assert!(lines.iter().all(|line| width(line, SMALL) <= 300));
    }

    #[test]
    fn values_are_readable_on_every_bar() {
        assert_eq!(ink_on(PALETTE[0]), WHITE);
        assert_eq!(ink_on(PALETTE[1]), INK);
        assert_eq!(ink_on(PALETTE[6]), WHITE);
        assert_eq!(ink_on(PALETTE[7]), INK);
        assert!(PALETTE.iter().all(|color| ink_on(tint(*color)) == INK));
    }
}
