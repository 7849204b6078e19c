//! `stride`: what is left of the bandwidth when accesses lie apart.

use plotters::prelude::DrawingBackend;

use super::by_size::{self, KEY};
use super::curves::Curves;
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome, words};

pub(super) struct Stride {
    page: Page,
    panels: Vec<Curves>,
}

impl Chart for Stride {
    const NAME: &'static str = "stride";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let panels: Vec<Curves> = [("stride/read", "Read, GB/s"), ("stride/copy", "Copy, GB/s")]
            .into_iter()
            .filter_map(|(name, heading)| by_size::curves(group, &mut rows, name, heading, "stride in bytes, log scale"))
            .collect();
        if panels.is_empty() {
            return Err(rows.nothing("stride"));
        }
        let (bytes, sector) = (group.kind().sector_bytes(), words::sector(group.kind()));
        let reading = format!(
            "One 4-byte element at every stride, medians, 1 GB/s = 10⁹ bytes a second. Requested: the elements alone. \
             Compulsory: the whole {bytes}-byte {sector}s that must cross the memory bus for them; what is read to complete the \
             partly written {sector}s of a copy is not counted. Below {bytes} bytes neighbouring accesses share what moves; from there on \
             each uses 4 of {bytes} bytes. Where compulsory bandwidth falls further, the memory moves longer blocks than are counted, opens \
             rows for fewer and fewer accesses each, or, at the longest strides, has another page translated for each."
        );
        let (legend, shared) = rows.legend(Symbol::Points, |_, rows| array_sizes(rows).into_iter().collect());
        Ok(Self {
            page: Page {
                title: "Bandwidth of strided access",
                plot_height_min: PLOT_HEIGHT_MIN,
                key: KEY.to_vec(),
                legend,
                caption: rows.caption(&reading, shared),
            },
            panels,
        })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        by_size::draw(&self.panels, root, at)
    }
}
