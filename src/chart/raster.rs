//! PNG: the plotters bitmap, at two dots an SVG unit, with text set here.
//!
//! plotters' own bitmap text drops the side bearings of the glyphs and puts the
//! base line elsewhere than its SVG text. Here both agree.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, Glyph, GlyphId, point};
use plotters::backend::{BitMapBackend, DrawingBackend};
use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind};

/// Dots an SVG unit: 1600 units give 3200 dots, 450 an inch at the width of a page.
pub(super) const SCALE: u32 = 2;

/// plotters' text size over the em (its SVG output divides by the same number).
pub(super) const SIZE_PER_EM: f32 = 1.24;

/// Ubuntu Light for text; Hack has the arrows that it lacks.
static FONTS: LazyLock<[FontRef<'static>; 2]> = LazyLock::new(|| {
    [epaint_default_fonts::UBUNTU_LIGHT, epaint_default_fonts::HACK_REGULAR]
        .map(|bytes| FontRef::try_from_slice(bytes).expect("the compiled-in fonts are whole"))
});

/// One glyph of a text, at `x` from its start, in the unit of the em.
struct Placed {
    font: &'static FontRef<'static>,
    id: GlyphId,
    x: f32,
    advance: f32,
}

/// Sets a text on one line.
fn set(text: &str, em: f32) -> Vec<Placed> {
    let mut x = 0.0;
    let mut before: Option<(&'static FontRef<'static>, GlyphId)> = None;
    text.chars()
        .map(|c| {
            let font = FONTS.iter().find(|font| font.glyph_id(c).0 != 0).unwrap_or(&FONTS[0]);
            let unit = em / font.units_per_em().unwrap_or(1000.0);
            let id = font.glyph_id(c);
            if let Some((last, left)) = before
                && std::ptr::eq(last, font)
            {
                x += font.kern_unscaled(left, id) * unit;
            }
            before = Some((font, id));
            let advance = font.h_advance_unscaled(id) * unit;
            let placed = Placed { font, id, x, advance };
            x += advance;
            placed
        })
        .collect()
}

/// The width of a text in the compiled-in font, in the unit of the em.
pub(super) fn advance(text: &str, em: f32) -> f32 {
    set(text, em).last().map_or(0.0, |glyph| glyph.x + glyph.advance)
}

/// A bitmap that is addressed in SVG units.
pub(super) struct Raster<'a> {
    dots: BitMapBackend<'a>,
}

impl<'a> Raster<'a> {
    /// Draws into `buffer`, RGB, of `size` units.
    pub(super) fn new(buffer: &'a mut [u8], size: (u32, u32)) -> Self {
        Self { dots: BitMapBackend::with_buffer(buffer, (size.0 * SCALE, size.1 * SCALE)) }
    }
}

/// Bytes of the buffer for a drawing of this size.
pub(super) fn buffer_len(size: (u32, u32)) -> usize {
    (size.0 * SCALE) as usize * (size.1 * SCALE) as usize * 3
}

fn scaled((x, y): BackendCoord) -> BackendCoord {
    (x * SCALE as i32, y * SCALE as i32)
}

/// A style with its stroke in dots.
struct InDots<'a, S>(&'a S);

impl<S: BackendStyle> BackendStyle for InDots<'_, S> {
    fn color(&self) -> BackendColor {
        self.0.color()
    }

    fn stroke_width(&self) -> u32 {
        self.0.stroke_width() * SCALE
    }
}

type Outcome<'a> = Result<(), DrawingErrorKind<<BitMapBackend<'a> as DrawingBackend>::ErrorType>>;

impl<'a> DrawingBackend for Raster<'a> {
    type ErrorType = <BitMapBackend<'a> as DrawingBackend>::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        let (width, height) = self.dots.get_size();
        (width / SCALE, height / SCALE)
    }

    fn ensure_prepared(&mut self) -> Outcome<'a> {
        self.dots.ensure_prepared()
    }

    fn present(&mut self) -> Outcome<'a> {
        self.dots.present()
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Outcome<'a> {
        let (x, y) = scaled(point);
        let last = SCALE as i32 - 1;
        self.dots.draw_rect((x, y), (x + last, y + last), &color, true)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Outcome<'a> {
        self.dots.draw_path([scaled(from), scaled(to)], &InDots(style))
    }

    fn draw_rect<S: BackendStyle>(&mut self, a: BackendCoord, b: BackendCoord, style: &S, fill: bool) -> Outcome<'a> {
        self.dots.draw_rect(scaled(a), scaled(b), &InDots(style), fill)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Outcome<'a> {
        self.dots.draw_path(path.into_iter().map(scaled), &InDots(style))
    }

    fn draw_circle<S: BackendStyle>(&mut self, center: BackendCoord, radius: u32, style: &S, fill: bool) -> Outcome<'a> {
        self.dots.draw_circle(scaled(center), radius * SCALE, &InDots(style), fill)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Outcome<'a> {
        self.dots.fill_polygon(path.into_iter().map(scaled), &InDots(style))
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Outcome<'a> {
        let em = style.size() as f32 / SIZE_PER_EM * SCALE as f32;
        let glyphs = set(text, em);
        let width = glyphs.last().map_or(0.0, |glyph| glyph.x + glyph.advance);
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width / 2.0,
            HPos::Right => -width,
        };
        // The base line where the SVG output has it: 0.76 em, or half the height of an x of 0.52 em.
        let base = match style.anchor().v_pos {
            VPos::Top => 0.76 * em,
            VPos::Center => 0.26 * em,
            VPos::Bottom => -0.26 * em,
        };
        let (turn, color) = (style.transform(), style.color());
        let (origin_x, origin_y) = scaled(at);
        let (columns, rows) = self.dots.get_size();
        let mut outcome = Ok(());
        for Placed { font, id, x, .. } in glyphs {
            let height_per_em = font.height_unscaled() / font.units_per_em().unwrap_or(1000.0);
            let glyph = Glyph { id, scale: (em * height_per_em).into(), position: point(left + x, base) };
            let Some(outline) = font.outline_glyph(glyph) else { continue };
            let corner = outline.px_bounds().min;
            outline.draw(|dx, dy, coverage| {
                let (x, y) = turn.transform(corner.x as i32 + dx as i32, corner.y as i32 + dy as i32);
                let (x, y) = (origin_x + x, origin_y + y);
                if outcome.is_ok() && (0..columns as i32).contains(&x) && (0..rows as i32).contains(&y) {
                    let color = BackendColor { alpha: color.alpha * f64::from(coverage.clamp(0.0, 1.0)), ..color };
                    outcome = self.dots.draw_pixel((x, y), color);
                }
            });
        }
        outcome
    }
}

/// The PNG file of a drawing that [`Raster`] has made.
pub(super) fn encode(buffer: &[u8], size: (u32, u32)) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, size.0 * SCALE, size.1 * SCALE);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    // Flat areas: filters make the file larger, and cost most of the time.
    encoder.set_filter(png::Filter::NoFilter);
    encoder.write_header()?.write_image_data(buffer)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fonts_have_every_sign_that_charts_use() {
        for c in "→×±²…%⁹µ\u{a0}".chars() {
            assert!(FONTS.iter().any(|font| font.glyph_id(c).0 != 0), "{c}");
        }
    }

    #[test]
    fn the_width_of_a_text_grows_with_its_size() {
        assert_eq!(advance("", 10.0), 0.0);
        assert!((advance("4712 GB/s", 40.0) - 4.0 * advance("4712 GB/s", 10.0)).abs() < 1e-2);
    }
}
