//! `markdown`: a page to publish: summary, charts, conditions, every figure, and
//! how to read them.

use std::fmt::Write;

use super::CHARTS;
use super::columns::{self, Column, Footnotes, UNKNOWN};
use super::{Exporter, ReportError, others, soak, together};
use super::{data, footprint};
use crate::chart::{Drawn, words};
use crate::pattern::{DeviceKind, Level};
use crate::record::Run;

/// The cases of the summary and their columns' heads.
const SUMMARY: [(&str, &str); 5] = [
    ("stream/read/f32", "read"),
    ("stream/write/f32", "write"),
    ("stream/copy/f32", "copy"),
    ("stream/triad/f32", "triad"),
    ("copy_engine/d2d", "copy engine"),
];

const HOW_TO_READ: &str = "\
## How to read this

- Every figure was measured by the program and version named with it, except the theoretical peak, which is computed from what the device says of itself, and what is marked as published or as of a data sheet.
- **GB/s** counts requested bytes: each element that is read and each that is written once, over the median time. 1 GB/s is 10^9 bytes a second. A copy counts both directions.
- **% of peak** is GB/s over the theoretical peak of the memory, 2 x memory clock x bus width / 8. It is given only where the data are several times larger than the last cache.
- **naive** is what the simplest kernel reaches, one element of 8 bytes a thread, in percent of GB/s, which is that of the best kernel that a search found. **ease** is how many KiB of loads a multiprocessor must have in flight for 90 % of GB/s: the fewer, the easier it is to reach.
- **compute utilization** is the floating-point operations a second over the peak that the same run measured on the same kind of arithmetic unit.
- **latency** is the time of one access that waits for the one before it; the bandwidth of such rows is no measure of the memory's.
- **±noise** is half the width of the 95 % bootstrap interval of the median, over the median.
- **verified** says whether every result that the device returned was right. **verdict** is `ok` only for verified rows that are physically possible; no other row stands in the summary or in a chart.
- A dash stands for what is not known or does not apply.
";

pub(super) struct Markdown<'a> {
    /// The charts that lie in [`CHARTS`] beside the page, if any were made.
    pub charts: Option<&'a Drawn>,
}

/// The first line of every summary: by it a folder is known to hold a report.
pub(super) const HEADING: &str = "# Memory bandwidth, measured";

impl Exporter for Markdown<'_> {
    fn export(&self, runs: &[Run]) -> Result<String, ReportError> {
        let names = words::names(&runs.iter().collect::<Vec<_>>());
        let together = together::tables(runs, &names);
        let soak = soak::table(runs, &names);
        let names: Vec<String> = names.iter().map(|name| escape(name)).collect();
        let mut page = format!("{HEADING}\n\n## Summary\n\n");
        if runs.is_empty() {
            page += "No run was given.\n\n";
        }
        for (kind, heading) in [(DeviceKind::Cuda, "GPUs"), (DeviceKind::Host, words::NOT_A_GPU)] {
            page += &summary(runs, &names, kind, heading);
        }
        if let Some(drawn) = self.charts {
            page += &charts(drawn);
        }
        page += &footprint::section(runs, &names);
        page += &others::section(runs);
        page += &data::section(runs, &names);
        page.extend(soak.map(|table| titled("Soak", &soak::HEADS, &table.rows, &table.remarks)));
        page.extend(together.iter().map(|table| titled("All at once", &together::HEADS, &table.rows, &table.remarks)));
        for (run, name) in runs.iter().zip(&names) {
            page += &details(run, name);
        }
        page += HOW_TO_READ;
        Ok(page)
    }
}

/// One row a run: the headline figures of one kind of device.
fn summary(runs: &[Run], names: &[String], kind: DeviceKind, heading: &str) -> String {
    let of_kind: Vec<(&Run, &String)> = runs.iter().zip(names).filter(|(run, _)| run.device.kind == kind).collect();
    if of_kind.is_empty() {
        return String::new();
    }
    // A column that no run has a figure for says nothing.
    let has = |id: &str| of_kind.iter().any(|(run, _)| headline(run, id).is_some());
    let cases: Vec<(&str, &str)> = SUMMARY.into_iter().filter(|(id, _)| has(id)).collect();
    let heads = cases.iter().map(|(_, head)| format!("{head} GB/s")).chain(["theoretical peak GB/s".to_owned()]);
    let heads: Vec<(String, bool)> = [("device".to_owned(), false)].into_iter().chain(heads.map(|head| (head, true))).collect();
    let rows = of_kind.iter().map(|(run, name)| {
        let figures = cases.iter().map(|(id, _)| headline(run, id).unwrap_or_else(|| UNKNOWN.to_owned()));
        [name.to_string()].into_iter().chain(figures).chain([columns::figure(words::memory_peak_gbps(run))]).collect()
    });
    format!("### {heading}\n\n{}\n", grid(&heads, rows.collect()))
}

/// A sound figure of a case, with its share of the peak or the reason why there is none.
fn headline(run: &Run, id: &str) -> Option<String> {
    let row = run.measurements.iter().find(|row| row.id == id && row.is_sound())?;
    let gbps = columns::figure(Some(row.achieved_gbps.filter(|gbps| gbps.is_finite())?));
    Some(match (row.fraction_of_peak, row.level) {
        (_, Some(level @ (Level::Cache | Level::Mixed))) => format!("{gbps} ({})", words::level(level)),
        (Some(fraction), _) => format!("{gbps} ({} %)", columns::percent(Some(fraction), 1)),
        (None, _) => gbps,
    })
}

fn charts(drawn: &Drawn) -> String {
    let mut text = "## Charts\n\n".to_owned();
    let svgs = drawn.files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "svg"));
    for name in svgs.filter_map(|file| file.file_stem()?.to_str()) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "![{name}]({CHARTS}/{name}.svg)\n");
    }
    if !drawn.left_out.is_empty() {
        text += "Not drawn:\n\n";
        for (name, why) in &drawn.left_out {
            let _ = writeln!(text, "- {name}: {}", escape(why));
        }
        text.push('\n');
    }
    text
}

/// A section that is a table and what stands below it.
fn titled(title: &str, heads: &[(&str, bool)], rows: &[Vec<String>], remarks: &[String]) -> String {
    let heads: Vec<(String, bool)> = heads.iter().map(|(head, figures)| ((*head).to_owned(), *figures)).collect();
    let rows = rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect()).collect();
    let remarks: String = remarks.iter().map(|remark| format!("- {}\n", escape(remark))).collect();
    format!("## {title}\n\n{}\n{remarks}\n", grid(&heads, rows))
}

/// Conditions and every row of one run.
fn details(run: &Run, name: &str) -> String {
    let device = &run.device;
    let mut text = format!("## {name}\n\n");
    let mut item = |what: &str, value: &str| {
        let _ = writeln!(text, "- {what}: {}", escape(value));
    };
    item("card", &device.card);
    item("device", &format!("{} ({})", device.name, device.kind));
    let cache = device.memory.cache_bytes.map(|cache| format!(", last cache {}", words::bytes(cache))).unwrap_or_default();
    item("memory", &format!("{}{cache}", words::bytes(device.memory.total_bytes)));
    item("started", &run.started_at);
    item("profile", &run.profile.to_string());
    item("conditions", &columns::conditions(run).join("; "));
    text.push('\n');

    let mut footnotes = Footnotes::default();
    let of_run = |cells: Vec<String>| Column::ALL.into_iter().zip(cells).filter(|(column, _)| column.is_of(run));
    let rows = run.measurements.iter().map(|row| of_run(columns::cells(row, &mut footnotes)).map(|(_, cell)| escape(&cell)).collect());
    let rows: Vec<Vec<String>> = rows.collect();
    let heads = Column::ALL.into_iter().filter(|column| column.is_of(run));
    text += &grid(&heads.map(|column| (column.head().to_owned(), column.is_figures())).collect::<Vec<_>>(), rows);
    text.push('\n');
    for line in columns::remarks(run, &footnotes) {
        let _ = writeln!(text, "- {}", escape(&line));
    }
    text.push('\n');
    text
}

/// A table of cells that are escaped already; the flag of a head says whether its column holds figures.
pub(super) fn grid(heads: &[(String, bool)], rows: Vec<Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let titles: Vec<String> = heads.iter().map(|(head, _)| head.clone()).collect();
    let rules: Vec<String> = heads.iter().map(|(_, figures)| if *figures { "---:" } else { "---" }.to_owned()).collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    line(&titles) + &line(&rules) + &rows
}

/// Text from outside as plain text: on one line, with nothing that Markdown or
/// HTML would act on.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in words::clean(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' | '#' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200, host, spoil};

    fn page(runs: &[Run]) -> String {
        Markdown { charts: None }.export(runs).unwrap()
    }

    #[test]
    fn the_page_holds_summary_conditions_figures_and_how_to_read_them() {
        insta::assert_snapshot!(page(&[h200(), host()]));
    }

    #[test]
    fn an_unsound_row_is_in_its_table_and_not_in_the_summary() {
        let mut run = h200();
        spoil(&mut run, "stream/copy/f32");
        let page = page(&[run]);
        let (summary, rest) = page.split_once("## Beside other cards").unwrap();
        let (_, details) = rest.split_once("## NVIDIA H200").unwrap();
        assert!(!summary.contains("4309") && !summary.contains("copy GB/s"), "{summary}");
        assert!(details.contains("| stream/copy/f32 | 4309.4 |") && details.contains("unverified"), "{details}");
    }

    #[test]
    fn hosts_and_gpus_are_never_in_one_summary_table() {
        let page = page(&[host(), h200()]);
        let (gpus, hosts) = page.split_once("### RAM of this machine, not a GPU").unwrap();
        assert!(gpus.contains("NVIDIA H200") && !gpus.contains("Xeon"));
        assert!(hosts.split_once("## ").unwrap().0.contains("Xeon"));
    }

    #[test]
    fn a_headline_from_the_cache_is_marked() {
        let mut run = h200();
        run.measurements[1].level = Some(Level::Cache);
        run.measurements[1].fraction_of_peak = None;
        assert!(page(&[run]).contains("| 4712.3 (cache) |"));
    }

    #[test]
    fn text_from_outside_stays_text() {
        let mut run = h200();
        run.device.name = "a|b<img src=x>\n# h *i* `c` [l](x)".into();
        run.labels.insert("k|".into(), "<script>".into());
        run.measurements[0].id = "x|y".into();
        run.measurements[0].notes.push("n|<b>".into());
        let page = page(&[run]);
        assert!(!page.contains("<img") && !page.contains("<script") && !page.contains("<b>"), "{page}");
        assert!(page.contains("a\\|b&lt;img src=x&gt; \\# h \\*i\\* \\`c\\` \\[l\\](x)"), "{page}");
        // Every row of a table has as many cells as its head.
        let mut cells = None;
        for line in page.lines() {
            let n = line.replace("\\|", "").matches('|').count();
            if n == 0 {
                cells = None;
            } else {
                assert_eq!(*cells.get_or_insert(n), n, "{line}");
            }
        }
    }
}
