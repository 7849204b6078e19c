//! `table`: for terminals, with as many columns as the width has room for.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

use super::columns::{self, Column, Footnotes};
use super::{Exporter, ReportError, soak, together};
use crate::chart::words;
use crate::record::Run;

/// Columns from most to least room. Verdict and figures stay longest; the last
/// set is used however narrow the terminal is.
const SETS: [&[Column]; 6] = [
    &Column::ALL,
    &[
        Column::Case,
        Column::Bandwidth,
        Column::OfPeak,
        Column::OfLink,
        Column::Naive,
        Column::Ease,
        Column::Utilization,
        Column::Latency,
        Column::Time,
        Column::Noise,
        Column::Verdict,
    ],
    &[
        Column::Case,
        Column::Bandwidth,
        Column::OfPeak,
        Column::OfLink,
        Column::Naive,
        Column::Ease,
        Column::Utilization,
        Column::Latency,
        Column::Time,
        Column::Verdict,
    ],
    &[Column::Case, Column::Bandwidth, Column::OfPeak, Column::OfLink, Column::Naive, Column::Ease, Column::Latency, Column::Verdict],
    &[Column::Case, Column::Bandwidth, Column::OfPeak, Column::OfLink, Column::Latency, Column::Verdict],
    &[Column::Case, Column::Bandwidth, Column::Latency, Column::Verdict],
];

/// A rule under the head, and no more: lines between columns cost the room of one.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

pub(super) struct Table {
    /// Characters in a line; without it, every column is shown.
    pub width: Option<usize>,
}

impl Table {
    fn export_run(&self, run: &Run, name: &str) -> String {
        let mut footnotes = Footnotes::default();
        let rows: Vec<Vec<String>> = run.measurements.iter().map(|row| columns::cells(row, &mut footnotes)).collect();
        let fits = |text: &str| self.width.is_none_or(|width| text.lines().all(|line| line.chars().count() <= width));
        let of_run = |columns: &[Column]| columns.iter().copied().filter(|column| column.is_of(run)).collect::<Vec<_>>();
        let mut sets = SETS.into_iter().map(of_run).map(|columns| (chosen(&rows, &columns), columns));
        let (grid, columns) = sets.clone().find(|(text, _)| fits(text)).or_else(|| sets.next_back()).expect("there are sets");

        let mut text = format!("{name}: {}\n{grid}\n", columns::conditions(run).join("; "));
        let mut line = |line: &str| text.extend([line, "\n"]);
        columns::remarks(run, &footnotes).iter().for_each(|remark| line(remark));
        let left_out: Vec<&str> = of_run(&Column::ALL).into_iter().filter(|column| !columns.contains(column)).map(Column::head).collect();
        if !left_out.is_empty() {
            line(&format!("left out for want of room: {}; --format markdown shows them", left_out.join(", ")));
        }
        text
    }
}

impl Exporter for Table {
    fn export(&self, runs: &[Run]) -> Result<String, ReportError> {
        let names = words::names(&runs.iter().collect::<Vec<_>>());
        let mut tables: Vec<String> = runs.iter().zip(&names).map(|(run, name)| self.export_run(run, name)).collect();
        tables.extend(soak::table(runs, &names).map(|table| below("soak", &soak::HEADS, &table.rows, &table.remarks)));
        tables
            .extend(together::tables(runs, &names).iter().map(|table| below("all at once", &together::HEADS, &table.rows, &table.remarks)));
        Ok(if tables.is_empty() { "no run was given\n".to_owned() } else { tables.join("\n") })
    }
}

/// A table that stands below those of the runs.
fn below(title: &str, heads: &[(&str, bool)], rows: &[Vec<String>], remarks: &[String]) -> String {
    let rows = rows.iter().map(|row| row.iter().collect());
    format!("{title}\n{}\n{}\n", grid(heads, rows), remarks.join("\n"))
}

/// Rows of all columns as a table of these.
fn chosen(rows: &[Vec<String>], columns: &[Column]) -> String {
    let heads: Vec<(&str, bool)> = columns.iter().map(|column| (column.head(), column.is_figures())).collect();
    let cells = |row| Column::ALL.iter().zip(row).filter(|(column, _)| columns.contains(column)).map(|(_, cell)| cell).collect();
    grid(&heads, rows.iter().map(cells))
}

/// The table itself; the flag of a head says whether its column holds figures.
fn grid<'a>(heads: &[(&str, bool)], rows: impl Iterator<Item = Vec<&'a String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    // Heads on two lines: figures need less room than their names.
    table.set_header(heads.iter().map(|(head, _)| head.replacen(' ', "\n", 1)));
    for row in rows {
        table.add_row(row);
    }
    for ((_, figures), at) in heads.iter().zip(0..) {
        if *figures && let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200, h200_tuned, host, spoil};
    use crate::record::{Measurement, Status};

    fn render(runs: &[Run], width: Option<usize>) -> String {
        Table { width }.export(runs).unwrap()
    }

    #[test]
    fn every_column_row_and_remark_is_shown() {
        let mut run = h200();
        spoil(&mut run, "stream/copy/f32");
        for operation in ["read", "copy"] {
            let (id, reason) = (format!("stride/{operation}/4"), "stride has no CUDA kernel in this version".to_owned());
            run.measurements.push(Measurement::without_figures(&id, "stride", Status::Unsupported, reason));
        }
        insta::assert_snapshot!(render(&[run], None));
    }

    #[test]
    fn a_host_table_says_that_it_is_no_gpu() {
        insta::assert_snapshot!(render(&[host()], None));
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_is_told_so() {
        let run = h200();
        for width in [120, 100, 80, 60] {
            let text = render(std::slice::from_ref(&run), Some(width));
            let grid: Vec<&str> = text.lines().skip(1).take(3 + run.measurements.len()).collect();
            assert!(grid.last().unwrap().contains("copy_engine/d2d"), "{text}");
            assert!(grid.iter().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            assert_eq!(text.contains("left out for want of room"), width < 120, "{width}:\n{text}");
            assert!(text.contains("stream/copy/f32") && text.contains("4309.4") && text.contains("verdict"));
        }
    }

    #[test]
    fn a_tuned_run_keeps_naive_and_ease_down_to_80_characters() {
        let run = h200_tuned();
        for width in [140, 120, 100, 80, 60] {
            let text = render(std::slice::from_ref(&run), Some(width));
            let grid: Vec<&str> = text.lines().skip(1).take(3 + run.measurements.len()).collect();
            assert!(grid.iter().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            assert_eq!(grid[0].contains("naive") && grid[0].contains("ease"), width >= 80, "{width}:\n{text}");
        }
        assert!(!render(&[h200()], None).contains("naive"));
    }

    #[test]
    fn no_width_is_too_small_for_the_figures() {
        for width in [0, 1, 10] {
            assert!(render(&[h200()], Some(width)).contains("4309.4"));
        }
    }

    #[test]
    fn several_runs_have_a_table_each_under_names_that_differ() {
        let text = render(&[h200(), h200()], None);
        assert!(text.contains("NVIDIA H200 (1): driver") && text.contains("\nNVIDIA H200 (2): driver"), "{text}");
    }

    #[test]
    fn text_from_outside_reaches_no_terminal_as_control_characters() {
        let mut run = h200();
        run.device.name = "\u{1b}[2Jx".into();
        run.measurements[0].id = "a\u{7}\r\nb".into();
        run.measurements[0].notes.push("\u{1b}]0;title\u{7}".into());
        assert!(render(&[run], None).chars().all(|c| c == '\n' || !c.is_control()));
    }
}
