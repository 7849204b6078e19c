//! The README's tables come from recorded runs, through the program.
//!
//! `HBMARK_UPDATE=1 cargo test --test readme` writes them anew.

use std::path::Path;

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
