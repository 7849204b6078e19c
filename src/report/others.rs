//! "Beside other cards": what the runs measured and what others published, in one table.

use std::fmt::Write;

use super::columns::{self, UNKNOWN};
use super::markdown::{escape, grid};
use crate::catalog::OPERATIONS;
use crate::chart::beside::{self, Beside, Figure, Note};
use crate::pattern::{DeviceKind, Level, StreamOperation};
use crate::record::Run;

/// The section; nothing when no GPU was measured.
pub(super) fn section(runs: &[Run]) -> String {
    let gpus: Vec<&Run> = runs.iter().filter(|run| run.device.kind == DeviceKind::Cuda).collect();
    let cards = beside::beside(&gpus, |run, operation| figure(gpus[run], operation));
    if !cards.iter().flat_map(|card| card.figures).flatten().any(|figure| matches!(figure, Figure::Measured(_))) {
        return String::new();
    }
    let notes = beside::notes(&cards);
    let figures = OPERATIONS.map(|operation| format!("{} GB/s", operation.name()));
    let heads = [("card".to_owned(), false), ("memory".to_owned(), false), ("data sheet GB/s".to_owned(), true)];
    let heads: Vec<_> = heads.into_iter().chain(figures.map(|head| (head, true))).collect();
    let rows = cards.iter().map(|card| row(card, &notes)).collect();
    let mut text = format!(
        "## Beside other cards\n\n{}\nPercentages refer to the data sheet. Measured: f32, arrays beyond the cache, the median of a run; \
         of several runs of a card, the median of those of the newest suite version. Published figures were made by others with other programs and methods, \
         so they are not comparable with measured ones, or among each other, to the last percent. A card that was measured here \
         shows measured figures alone; of several published ones, one is shown: made by a kernel before the driver's copy, then by \
         confidence in the source, then by the size of the arrays.\n\n",
        grid(&heads, rows)
    );
    for (n, note) in (1..).zip(&notes) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- \\[{n}\\] {}: {}", escape(&note.method), escape(&note.sources.join("; ")));
    }
    text.push('\n');
    text
}

/// What a run measured of the memory alone.
fn figure(run: &Run, operation: StreamOperation) -> Option<f64> {
    let id = format!("stream/{}/f32", operation.name());
    let row = run.measurements.iter().find(|row| row.id == id)?;
    row.achieved_gbps.filter(|_| row.is_sound() && row.level == Some(Level::Dram))
}

fn row(card: &Beside, notes: &[Note]) -> Vec<String> {
    let memory = match card.card {
        Some(card) => format!("{} GB {}", card.memory.capacity_gib, card.memory.kind),
        None => UNKNOWN.to_owned(),
    };
    let mut cells = vec![escape(&card.name), escape(&memory), columns::figure(card.data_sheet_gbps())];
    cells.extend(card.figures.iter().map(|figure| match figure {
        None => UNKNOWN.to_owned(),
        Some(figure) => {
            let share = card.data_sheet_gbps().map(|peak| format!(" ({} %)", columns::percent(Some(figure.gbps() / peak), 1)));
            let (gbps, share) = (columns::figure(Some(figure.gbps())), share.unwrap_or_default());
            match figure {
                Figure::Measured(_) => format!("{gbps}{share} measured"),
                Figure::Published(published) => {
                    let note = beside::number(notes, published).map(|n| format!(" \\[{n}\\]")).unwrap_or_default();
                    format!("{gbps}{share} published{note}")
                }
            }
        }
    }));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200, host, spoil};

    #[test]
    fn the_table_says_of_each_figure_whether_it_was_measured_or_published() {
        insta::assert_snapshot!(section(&[h200(), host()]));
    }

    #[test]
    fn a_wrong_row_and_one_of_a_cache_are_not_in_the_table() {
        let mut run = h200();
        spoil(&mut run, "stream/copy/f32");
        run.measurements.iter_mut().find(|row| row.id == "stream/read/f32").unwrap().level = Some(Level::Mixed);
        let text = section(&[run]);
        let row = text.lines().find(|line| line.contains("H200")).unwrap();
        assert_eq!(row, "| NVIDIA H200 SXM 141 GB | 141 GB HBM3e | 4800.0 | - | 4697.0 (97.9 %) measured | - | 4396.1 (91.6 %) measured |");
    }

    #[test]
    fn a_card_that_the_catalog_does_not_know_has_figures_without_percentages() {
        let mut run = h200();
        run.device.name = "NVIDIA | Device".into();
        let text = section(&[run]);
        assert!(text.contains("| NVIDIA \\| Device (140 GiB) | - | - | 4712.3 measured |"), "{text}");
    }

    #[test]
    fn without_a_gpu_there_is_no_section() {
        assert_eq!(section(&[host()]), "");
        assert_eq!(section(&[]), "");
    }
}
