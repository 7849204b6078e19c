//! Reports: run documents as tables for people and as data for programs, one
//! exporter a file.

mod columns;
mod csv;
mod data;
mod footprint;
mod json;
mod markdown;
mod others;
mod soak;
mod table;
mod together;

use std::path::{Path, PathBuf};

use crate::chart::{self, ChartError};
use crate::record::{Run, write_whole};

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Format {
    /// For terminals: as many columns as fit.
    Table,
    /// The run documents, whole, as one array.
    Json,
    /// One row a measurement, with the run's identity in each row.
    Csv,
    /// For pages: summary, conditions, every figure, and how to read them.
    Markdown,
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The charts.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The CSV.
    #[error("cannot make the CSV: {0}")]
    Csv(#[from] ::csv::Error),
    /// The JSON.
    #[error("cannot make the JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Files of a report's names that no report of this program wrote.
    #[error("{} is there already and no report of this program; choose another folder with -o", path.display())]
    Foreign {
        /// The file or folder in the way.
        path: PathBuf,
    },
    /// A file or the folder could not be written.
    #[error("cannot write {}: {source}; choose a folder that you can write to", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The folder of charts in a report.
pub const CHARTS: &str = "charts";

/// What [`write()`] makes in a folder.
pub const NAMES: [&str; 3] = ["summary.md", "measurements.csv", CHARTS];

/// What [`write()`] did.
#[derive(Debug)]
pub struct Written {
    /// The files written.
    pub files: Vec<PathBuf>,
    /// Charts that were not drawn, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// Turns runs into the text of one format.
trait Exporter {
    fn export(&self, runs: &[Run]) -> Result<String, ReportError>;
}

/// The runs in one format. A table has as many columns as fit into `width` characters,
/// and all without a width.
///
/// # Errors
/// When a document cannot be put into the format.
pub fn render(runs: &[Run], format: Format, width: Option<usize>) -> Result<String, ReportError> {
    let exporter: Box<dyn Exporter> = match format {
        Format::Table => Box::new(table::Table { width }),
        Format::Json => Box::new(json::Json),
        Format::Csv => Box::new(csv::Csv),
        Format::Markdown => Box::new(markdown::Markdown { charts: None }),
    };
    exporter.export(runs)
}

/// Writes `summary.md`, `measurements.csv` and `charts/` into `dir`, each file
/// whole or not at all. An earlier report there is replaced; files of these names that
/// are no report's stay.
///
/// # Errors
/// When a document cannot be exported, a file cannot be written, or foreign files are in the way.
pub fn write(runs: &[Run], dir: &Path) -> Result<Written, ReportError> {
    if let Some(path) = foreign(dir) {
        return Err(ReportError::Foreign { path });
    }
    // By this a folder is known for a report's, should this be cut short.
    let summary = dir.join(NAMES[0]);
    if !summary.exists() {
        let begun = format!("{}\n\nThis report is not finished.\n", markdown::HEADING);
        write_whole(&summary, begun.as_bytes()).map_err(|source| ReportError::Write { path: summary, source })?;
    }
    let drawn = chart::draw_all(runs, &dir.join(CHARTS))?;
    let mut written = Written { files: Vec::new(), left_out: drawn.left_out.clone() };
    for (name, text) in
        [("summary.md", markdown::Markdown { charts: Some(&drawn) }.export(runs)?), ("measurements.csv", csv::Csv.export(runs)?)]
    {
        let path = dir.join(name);
        write_whole(&path, text.as_bytes()).map_err(|source| ReportError::Write { path: path.clone(), source })?;
        written.files.push(path);
    }
    written.files.extend(drawn.files);
    Ok(written)
}

/// What stands in a folder under a report's names without being a report's.
pub fn foreign(dir: &Path) -> Option<PathBuf> {
    let is_report = std::fs::read_to_string(dir.join(NAMES[0])).is_ok_and(|text| text.starts_with(markdown::HEADING));
    if is_report { None } else { NAMES.iter().map(|name| dir.join(name)).find(|path| path.exists()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200, host};

    #[test]
    fn a_report_lists_every_file_that_it_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let written = write(&[h200(), host()], &dir.path().join("new/report")).unwrap();
        assert!(written.files.iter().all(|file| file.is_file()));
        let names: Vec<_> = written.files.iter().map(|f| f.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned()).collect();
        assert_eq!(
            names[..4],
            ["new/report/summary.md", "new/report/measurements.csv", "new/report/charts/bandwidth.svg", "new/report/charts/bandwidth.png"]
        );
        let left_out: Vec<&str> = written.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert!(left_out.starts_with(&["stride", "footprint"]) && !left_out.contains(&"bandwidth"), "{left_out:?}");
        // Nothing else, and nothing half-written.
        let count = |dir: &Path| std::fs::read_dir(dir).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file()).count();
        assert_eq!(count(&dir.path().join("new/report")) + count(&dir.path().join("new/report/charts")), names.len());
    }

    #[test]
    fn the_summary_shows_the_charts_that_were_drawn() {
        let dir = tempfile::tempdir().unwrap();
        write(&[h200()], dir.path()).unwrap();
        let summary = std::fs::read_to_string(dir.path().join("summary.md")).unwrap();
        assert!(summary.contains("![bandwidth](charts/bandwidth.svg)"), "{summary}");
        assert!(summary.contains("- stride: no run has a row of stride at its default size"), "{summary}");
    }

    #[test]
    fn a_report_that_was_cut_short_can_be_written_again() {
        let dir = tempfile::tempdir().unwrap();
        // A file where the folder of charts should be ends it after its first step.
        std::fs::write(dir.path().join("summary.md"), format!("{}\n\nThis report is not finished.\n", markdown::HEADING)).unwrap();
        std::fs::create_dir(dir.path().join(CHARTS)).unwrap();
        write(&[host()], dir.path()).unwrap();
        assert!(!std::fs::read_to_string(dir.path().join("summary.md")).unwrap().contains("not finished"));
    }

    #[test]
    fn a_second_report_replaces_the_first() {
        let dir = tempfile::tempdir().unwrap();
        write(&[host()], dir.path()).unwrap();
        write(&[h200()], dir.path()).unwrap();
        let summary = std::fs::read_to_string(dir.path().join("summary.md")).unwrap();
        assert!(summary.contains("NVIDIA H200") && !summary.contains("Xeon"));
    }

    #[test]
    fn every_format_accepts_no_runs() {
        use clap::ValueEnum;
        for format in Format::value_variants() {
            render(&[], *format, None).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let written = write(&[], dir.path()).unwrap();
        assert_eq!((written.files.len(), written.left_out.len()), (2, crate::chart::NAMES.len()));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = write(&[], file.path()).unwrap_err().to_string();
        assert!(error.contains(file.path().to_str().unwrap()), "{error}");
    }
}
