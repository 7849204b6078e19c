//! "Caches and footprints": what the curve of each run says of its caches and its memory.

use super::columns;
use super::markdown::{escape, grid};
use crate::chart::words;
use crate::plateau;
use crate::record::Run;

/// The section; nothing where no run has a row of footprints.
pub(super) fn section(runs: &[Run], names: &[String]) -> String {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for (run, name) in runs.iter().zip(names) {
        match plateau::of_run(run) {
            None => {}
            Some(Err(why)) => lines.push(format!("- {name}: no plateaus are named: {}.", escape(&why))),
            Some(Ok(findings)) => {
                rows.extend(findings.plateaus.iter().map(|plateau| {
                    let [first, last] = [plateau.first_bytes, plateau.last_bytes].map(words::bytes);
                    vec![name.clone(), findings.name(plateau.place).to_owned(), columns::figure(Some(plateau.gbps)), first, last]
                }));
                let ends = words::figure(findings.capacity.hits_end_bytes as f64 / f64::from(1 << 20));
                lines.push(format!("- {name}: {} Less than a tenth of the reads hits beyond {ends} MiB.", escape(&findings.extent())));
            }
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let heads = [("device", false), ("plateau", false), ("GB/s", true), ("from", true), ("to", true)];
    let table = if rows.is_empty() { String::new() } else { grid(&heads.map(|(head, figures)| (head.to_owned(), figures)), rows) + "\n" };
    format!("## Caches and footprints\n\n{table}{}\n\n", lines.join("\n"))
}

/// What stands under a run's table.
pub(super) fn remarks(run: &Run) -> Vec<String> {
    match plateau::of_run(run) {
        None => Vec::new(),
        Some(Ok(findings)) => vec![findings.levels(), findings.extent()],
        Some(Err(why)) => vec![format!("footprints: no plateaus are named: {why}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{footprint_row, h200, h200_with_footprints};

    #[test]
    fn the_section_names_each_plateau_and_sets_the_curves_cache_beside_the_drivers() {
        let mut run = h200_with_footprints();
        let text = section(std::slice::from_ref(&run), &["one".to_owned()]);
        for part in
            ["## Caches and footprints", "| one | L2 | ", "| one | DRAM | ", "the driver says 60 MiB", "Less than a tenth of the reads"]
        {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        assert!(!text.contains("apart"), "{text}");
        run.device.memory.cache_bytes = Some(32 << 20);
        assert!(section(&[run], &["one".to_owned()]).contains("% apart: trust the curve"));
    }

    #[test]
    fn two_sentences_stand_under_the_table() {
        let remarks = remarks(&h200_with_footprints());
        assert!(remarks.len() == 2 && remarks[0].starts_with("Reads by footprint: L2 ") && remarks[1].contains("MiB ("), "{remarks:?}");
    }

    #[test]
    fn a_curve_that_tells_nothing_says_why_and_a_run_without_one_is_not_mentioned() {
        let mut run = h200();
        assert_eq!(section(std::slice::from_ref(&run), &["one".to_owned()]), "");
        assert!(remarks(&run).is_empty());
        run.measurements.push(footprint_row("read", 1 << 20, 5000.0));
        let text = section(std::slice::from_ref(&run), &["one".to_owned()]);
        assert!(text.contains("- one: no plateaus are named: too few footprints") && !text.contains("| device"), "{text}");
        assert_eq!(remarks(&run).len(), 1);
    }
}
