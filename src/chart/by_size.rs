//! Bandwidth over a size of the access, such as a stride or a chunk: what is requested, and
//! what must move for it.

use plotters::prelude::DrawingBackend;

use super::curves::{Curves, Line, Scale};
use super::marks::Symbol;
use super::page::Rect;
use super::rows::{Group, Rows};
use super::{Area, Outcome, words};
use crate::pattern::CaseId;

/// Space between two panels.
const GUTTER: i32 = 56;

/// What the lines of every panel mean.
pub(super) const KEY: [(Symbol, &str); 2] = [(Symbol::Solid, "requested bytes a second"), (Symbol::Dashed, "compulsory bytes a second")];

/// Gathers the lines of the cases `<name>/<size>`; none when no row can be drawn.
pub(super) fn curves<'a>(
    group: &'a Group<'a>,
    rows: &mut Rows<'a>,
    name: &str,
    heading: &'static str,
    axis: &'static str,
) -> Option<Curves> {
    let size_of = |id: &str| {
        let id = CaseId::new(id);
        let size = id.name().strip_prefix(name)?.strip_prefix('/')?.parse::<u64>().ok()?;
        (id.size().is_none() && size > 0).then_some(size)
    };
    let mut sizes: Vec<u64> = (0..group.len()).flat_map(|run| &group.run(run).measurements).filter_map(|row| size_of(&row.id)).collect();
    sizes.sort_unstable();
    sizes.dedup();

    let mut lines = Vec::new();
    for (run, color) in group.colors().into_iter().enumerate() {
        let (mut requested, mut compulsory) = (Vec::new(), Vec::new());
        for size in &sizes {
            let Some(row) = group.row(run, &format!("{name}/{size}")) else { continue };
            let sound = rows.sound(run, row);
            let mut point = |value, what| Some((*size as f64, rows.figure(run, row, value, what)?));
            requested.push(if sound { point(row.achieved_gbps, "GB/s") } else { None });
            compulsory.push(if sound { point(row.compulsory_gbps, "compulsory GB/s") } else { None });
        }
        lines.push(Line { color, shape: Some(run), dashed: true, points: compulsory });
        lines.push(Line { color, shape: Some(run), dashed: false, points: requested });
    }
    let curves = Curves { heading, axis, scale: Scale::Log(label), lines, bounds: Vec::new(), bands: Vec::new() };
    curves.has_values().then_some(curves)
}

/// `512`, and from 1 KiB on with the unit.
fn label(size: u64) -> String {
    if size < 1024 { size.to_string() } else { words::bytes(size) }
}

/// Draws panels beside each other with one scale, so that they can be compared.
pub(super) fn draw<DB: DrawingBackend>(panels: &[Curves], root: &Area<DB>, at: Rect) -> Outcome<DB> {
    let largest = panels.iter().map(Curves::largest).fold(0.0, f64::max);
    let n = panels.len() as i32;
    let width = (at.right - at.left - GUTTER * (n - 1)) / n;
    for (panel, n) in panels.iter().zip(0..) {
        let left = at.left + n * (width + GUTTER);
        panel.draw(root, Rect { left, right: left + width, ..at }, largest)?;
    }
    Ok(())
}
