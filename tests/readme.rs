//! The README's tables and picture come from recorded runs, through the program.
//!
//! `HBMARK_UPDATE=1 cargo test --test readme` makes them anew.

use std::path::{Path, PathBuf};

use hbmark::{record, report};

/// The README with each table between its markers made from the file that the first marker names.
fn current(readme: &str, root: &Path) -> String {
    let mut text = String::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        text += &format!("{line}\n");
        let Some(file) = line.strip_prefix("<!-- table ").and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let run = record::load(&root.join(file)).unwrap_or_else(|error| panic!("{error}"));
        let table = report::render(&[run], report::Format::Table, None).expect("a table");
        text += &format!("```\n{}\n```\n", table.trim_end());
        let end = lines.find(|line| *line == "<!-- end -->").expect("the table's end marker");
        text += &format!("{end}\n");
    }
    text
}

#[test]
fn the_readme_shows_what_the_recorded_runs_print() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("README.md");
    let readme = std::fs::read_to_string(&path).expect("the README");
    let current = current(&readme, root);
    if std::env::var_os("HBMARK_UPDATE").is_some() {
        std::fs::write(&path, &current).expect("the README is writable");
    }
    assert!(readme == current || std::env::var_os("HBMARK_UPDATE").is_some(), "run: HBMARK_UPDATE=1 cargo test --test readme");
    assert!(current.matches("<!-- table ").count() >= 2);
}

/// The run whose table the README shows.
const SHORT_RUN: &str = "results/h200-sxm-141gb/2026-12-01-7caaedc4-quick.json";

/// The run whose report is published beside it, and that report.
const RUN: &str = "results/h200-sxm-141gb/2026-12-01-7caaedc4.json";
const REPORT: &str = "results/h200-sxm-141gb/report";

/// Every file under a folder, relative to it.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path())
            } else {
                found.push(entry.path().strip_prefix(dir).expect("below").to_owned())
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_published_report_is_what_the_program_makes_of_its_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let run = record::load(&root.join(RUN)).unwrap_or_else(|error| panic!("{error}"));
    let published = root.join(REPORT);
    if std::env::var_os("HBMARK_UPDATE").is_some() {
        report::write(std::slice::from_ref(&run), &published).expect("a report");
    }
    let fresh = tempfile::tempdir().expect("a folder");
    report::write(&[run], fresh.path()).expect("a report");
    assert_eq!(files(&published), files(fresh.path()));
    for file in files(fresh.path()) {
        let same = std::fs::read(published.join(&file)).expect("a file") == std::fs::read(fresh.path().join(&file)).expect("a file");
        assert!(same, "{} is not current; run: HBMARK_UPDATE=1 cargo test --test readme", file.display());
    }
}

#[test]
fn the_readme_shows_a_picture_of_the_published_report() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("the README");
    assert!(readme.contains(&format!("({REPORT}/charts/cards.png)")) && readme.contains(&format!("<!-- table {SHORT_RUN} -->")));
}
