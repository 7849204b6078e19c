//! `gather`: what is left of the bandwidth when chunks lie anywhere, by their size.

use plotters::prelude::DrawingBackend;

use super::by_size::{self, KEY};
use super::curves::Curves;
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome, words};

pub(super) struct Gather {
    page: Page,
    panels: Vec<Curves>,
}

impl Chart for Gather {
    const NAME: &'static str = "gather";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let panels: Vec<Curves> = [("gather/read", "Gather (read), GB/s"), ("scatter/write", "Scatter (write), GB/s")]
            .into_iter()
            .filter_map(|(name, heading)| by_size::curves(group, &mut rows, name, heading, "chunk in bytes, log scale"))
            .collect();
        if panels.is_empty() {
            return Err(rows.nothing("gather and scatter"));
        }
        let (bytes, sector) = (group.kind().sector_bytes(), words::sector(group.kind()));
        let reading = format!(
            "Chunks in a random order, each touched once, medians, 1 GB/s = 10⁹ bytes a second. Requested: the chunks alone. Compulsory: \
             the {bytes}-byte {sector}s that they lie in, and the index of 4 bytes for each that says where; what is read to complete \
             partly written {sector}s is not counted. A chunk below {bytes} bytes has a {sector} of its own, the rest of which moves for nothing. \
             The smaller the chunks, the more rows of the memory are opened, and pages translated, for the same bytes."
        );
        let (legend, shared) = rows.legend(Symbol::Points, |_, rows| array_sizes(rows).into_iter().collect());
        Ok(Self {
            page: Page {
                title: "Bandwidth of random access, by chunk",
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
