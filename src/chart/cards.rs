//! `cards`: the bandwidth of measured cards beside what others published of other cards.

use plotters::prelude::DrawingBackend;
use plotters::style::RGBColor;

use super::bars::{Bar, Bars, Cluster, Fill};
use super::beside::{self, Beside, Family, Figure, Note};
use super::marks::Symbol;
use super::page::{Entry, Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome, theme, words};
use crate::catalog::OPERATIONS;
use crate::record::Run;

/// Space between two panels.
const GUTTER: i32 = 40;
/// About what the labels of a vertical axis take.
const AXIS: i32 = 90;

pub(super) struct Cards {
    page: Page,
    panels: Vec<Bars>,
}

impl Chart for Cards {
    const NAME: &'static str = "cards";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let runs: Vec<&Run> = (0..group.len()).map(|run| group.run(run)).collect();
        let cards = beside::beside(&runs, |run, operation| {
            let row = group.row(run, &format!("stream/{}/f32", operation.name()))?;
            if rows.of_memory(run, row) { rows.figure(run, row, row.achieved_gbps, "GB/s") } else { None }
        });
        if !cards.iter().flat_map(|card| card.figures).flatten().any(|figure| matches!(figure, Figure::Measured(_))) {
            return Err(rows.nothing("stream"));
        }
        let notes = beside::notes(&cards);
        let operations = OPERATIONS.into_iter().zip(theme::PALETTE).map(|(o, color)| (Symbol::Bar(color), o.name()));
        let key = operations.chain([
            (Symbol::Bar(theme::MUTED), "measured by this program"),
            (Symbol::LightBar(theme::MUTED), "published by others"),
            (Symbol::Tick, "data-sheet peak"),
        ]);
        let mut caption = rows.caption(
            "Bars: bytes read and written, 10⁹ a second. Measured: f32, arrays beyond the cache, medians; several runs of a card: \
             the median of those of the newest suite version. Published figures were made by others, with other programs and methods: they are not \
             comparable to the last percent. A missing bar: not measured, and no figure of others in the catalog.",
            programs(&runs),
        );
        if cards.iter().any(|card| card.family() == Family::Other) {
            caption.push("Other: neither HBM nor GDDR, or a card that the catalog does not know.".to_owned());
        }
        caption.extend((1..).zip(&notes).map(|(n, note)| format!("[{n}] {} ({})", note.method, note.source_name)));
        let page = Page {
            title: "Memory bandwidth by card",
            // GDDR beside HBM, on one scale, still needs room for a figure in each bar.
            plot_height_min: 720,
            key: key.collect(),
            legend: cards.iter().map(|card| entry(card, &notes, group, &rows)).collect(),
            caption,
        };
        let panels = [(Family::Hbm, "HBM, GB/s"), (Family::Gddr, "GDDR, GB/s"), (Family::Other, "Other, GB/s")];
        let panels = panels.into_iter().filter_map(|(family, heading)| {
            let clusters: Vec<Cluster> = cards.iter().filter(|card| card.family() == family).map(cluster).collect();
            let colors: Vec<RGBColor> = theme::PALETTE[..OPERATIONS.len()].to_vec();
            (!clusters.is_empty()).then_some(Bars { heading, colors, clusters, threshold: None })
        });
        Ok(Self { page, panels: panels.collect() })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        // One width for all cards; the heading over a single one needs the room of two.
        let places = |panel: &Bars| panel.clusters.len().max(2) as i32;
        let n = self.panels.len() as i32;
        let room = at.right - at.left - n * AXIS - (n - 1) * GUTTER;
        let all: i32 = self.panels.iter().map(places).sum();
        let mut left = at.left;
        let placed = self.panels.iter().map(|panel| {
            let right = left + AXIS + room * places(panel) / all.max(1);
            let place = Rect { left, right, ..at };
            left = right + GUTTER;
            (panel, place)
        });
        Bars::draw_aligned(root, &placed.collect::<Vec<_>>())
    }
}

/// One card's place in a panel.
fn cluster(card: &Beside) -> Cluster {
    let bar = |figure: Figure| {
        let fill = match figure {
            Figure::Measured(_) => Fill::Solid,
            Figure::Published(_) => Fill::Light,
        };
        Bar { value: figure.gbps(), fill, ..Bar::default() }
    };
    Cluster { label: label(&card.name), bars: card.figures.map(|figure| figure.map(bar)).into(), bound: card.data_sheet_gbps() }
}

/// A card's name without what most names have in common, and short enough to stand under its bars.
fn label(name: &str) -> String {
    const CHARS: usize = 24;
    let name = ["NVIDIA ", "GeForce "].into_iter().fold(name, |name, part| name.strip_prefix(part).unwrap_or(name));
    let label = match name.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", name[..end].trim_end()),
        None => name.to_owned(),
    };
    // A capacity and its unit stay on one line.
    label.replace(" GB", "\u{a0}GB")
}

/// Whose figures a card's are.
fn entry(card: &Beside, notes: &[Note], group: &Group, rows: &Rows) -> Entry {
    let published = card.figures.iter().flatten().any(|figure| matches!(figure, Figure::Published(_)));
    let (symbol, conditions) = if !card.runs.is_empty() {
        (Symbol::Bar(theme::MUTED), measured(card, group, rows))
    } else if published {
        (Symbol::LightBar(theme::MUTED), methods(card, notes))
    } else {
        (Symbol::Tick, "no figure of these operations in the catalog".to_owned())
    };
    Entry { symbol, name: card.name.clone(), conditions }
}

/// `3 runs; driver 580.159.04; ECC on; …`, each condition of any run once.
fn measured(card: &Beside, group: &Group, rows: &Rows) -> String {
    let n = card.runs.len();
    let mut parts = vec![if n == 1 { "1 run".to_owned() } else { format!("median of {n} runs") }];
    parts.extend(array_sizes(&rows.drawn(&card.runs)));
    for condition in card.runs.iter().flat_map(|run| words::conditions(group.run(*run))) {
        if !parts.contains(&condition) {
            parts.push(condition);
        }
    }
    parts.join("; ")
}

/// `read, write [1]; copy [2]`.
fn methods(card: &Beside, notes: &[Note]) -> String {
    let numbered: Vec<(usize, &str)> = card
        .each()
        .filter_map(|(operation, figure)| match figure? {
            Figure::Published(figure) => Some((beside::number(notes, figure)?, operation.name())),
            Figure::Measured(_) => None,
        })
        .collect();
    let by_note = numbered.chunk_by(|a, b| a.0 == b.0).map(|same| {
        let operations: Vec<&str> = same.iter().map(|(_, operation)| *operation).collect();
        format!("{} [{}]", operations.join(", "), same[0].0)
    });
    by_note.collect::<Vec<_>>().join("; ")
}

/// `Measured by hbmark 0.1.0 (suite version 1).`
fn programs(runs: &[&Run]) -> Vec<String> {
    let mut programs: Vec<String> = runs.iter().map(|run| words::program(run)).collect();
    programs.sort();
    programs.dedup();
    vec![format!("Measured by {}.", programs.join(", "))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_leaves_out_what_most_names_begin_with_and_is_short() {
        assert_eq!(label("NVIDIA GeForce RTX 4090"), "RTX 4090");
        assert_eq!(label("AMD Instinct MI300X"), "AMD Instinct MI300X");
        assert_eq!(label("NVIDIA H100 SXM5 80 GB"), "H100 SXM5 80\u{a0}GB");
        assert_eq!(label(&"é".repeat(60)).chars().count(), 25);
    }
}
