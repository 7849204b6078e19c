//! The best forms that searches have found, kept from run to run for each card.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use atomic_write_file::AtomicWriteFile;
use serde::{Deserialize, Serialize};

use crate::pattern::{CacheState, Case, Data, Form};
use crate::record::{Mark, Measurement, Run, SUITE_VERSION, slug};

/// By family of kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Forms(BTreeMap<String, Form>);

impl Forms {
    /// The form that is best for the case, as far as is known.
    pub fn of(&self, case: &Case) -> Option<&Form> {
        self.0.get(&case.id.to_string()).or_else(|| self.0.get(case.ways.as_ref()?.family))
    }

    /// Those that the rows of a run were measured with, each for its own case.
    pub(super) fn used_by(run: &Run) -> Self {
        Self(run.measurements.iter().filter_map(|row| Some((row.id.clone(), row.tuning.as_ref()?.form))).collect())
    }

    /// Learns from the row of a case of default size, if it is what other runs would find: sound, of random data,
    /// on hot caches, and with nobody else on the card.
    pub fn note(&mut self, case: &Case, row: &Measurement) {
        let is = |name: &str, value: &str| row.parameters.get(name).is_some_and(|parameter| parameter == value);
        let usual = is("data", &Data::Random.to_string()) && is("cache", &CacheState::Hot.to_string());
        if let (Some(ways), Some(tuning), None) = (&case.ways, &row.tuning, case.id.size())
            && row.is_sound()
            && usual
            && !row.marks.contains(&Mark::Shared)
        {
            self.0.insert(ways.family.to_owned(), tuning.form);
        }
    }

    /// Those of a card, from an earlier run of this version of the program; none where they cannot be read.
    pub fn load(file: &Path) -> Self {
        std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// Keeps them for later runs, beside those of other kernels that the file has by now.
    ///
    /// # Errors
    /// When the file or its folder cannot be written.
    pub fn save(&self, file: &Path) -> std::io::Result<()> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut all = Self::load(file);
        all.0.extend(self.0.clone());
        let mut writer = AtomicWriteFile::open(file)?;
        writer.write_all(serde_json::to_string_pretty(&all)?.as_bytes())?;
        writer.commit()
    }
}

/// Names another folder for what is kept from run to run.
pub const CACHE_VARIABLE: &str = "HBMARK_CACHE";

/// Where the forms of a card are kept: in the user's folder for caches, or that which [`CACHE_VARIABLE`] names. They
/// hold for one version of program and suite.
pub fn forms_file(card: &str) -> Option<PathBuf> {
    let name = format!("{}-{}-suite-{SUITE_VERSION}.json", slug(card), env!("CARGO_PKG_VERSION"));
    let own = std::env::var_os(CACHE_VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    Some(own.or_else(|| Some(dirs::cache_dir()?.join("hbmark")))?.join("forms").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::h200;
    use crate::pattern::{CaseId, Facts, plan};
    use crate::record::{Tuning, TuningSource};

    const BEST: Form = Form { vector_bytes: 16, unroll: 2, once: false, block: 128, blocks_per_unit: Some(8) };

    fn case(id: &str) -> Case {
        plan(&CaseId::new(id), &Facts::H200).unwrap()
    }

    /// The row of a copy that found [`BEST`].
    fn tuned() -> Measurement {
        let mut row = h200().measurements.into_iter().find(|row| row.id == "stream/copy/f32").unwrap();
        row.parameters.insert("data".into(), "random".into());
        row.parameters.insert("cache".into(), "hot".into());
        row.tuning = Some(Tuning {
            form: BEST,
            source: TuningSource::Searched,
            tried: 20,
            naive_gbps: None,
            ease_kib_per_unit: None,
            in_flight: Vec::new(),
            missing: Default::default(),
        });
        row
    }

    #[test]
    fn what_one_case_found_is_known_to_all_of_its_family_and_to_later_runs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a").join("forms.json");
        let mut forms = Forms::load(&file);
        assert_eq!(forms, Forms::default());
        forms.note(&case("stream/copy/f32"), &tuned());
        forms.save(&file).unwrap();
        // A later search for other kernels leaves these.
        Forms::default().save(&file).unwrap();
        let later = Forms::load(&file);
        assert_eq!((later.of(&case("stream/copy/f64")), later.of(&case("stream/read/f32"))), (Some(&BEST), None));
    }

    #[test]
    fn other_sizes_and_rows_that_are_not_sound_teach_nothing() {
        let mut forms = Forms::default();
        forms.note(&case("stream/copy/f32@4096"), &tuned());
        forms.note(&case("stream/copy/f32"), &Measurement { verified: Some(false), ..tuned() });
        forms.note(&case("stream/copy/f32"), &Measurement { marks: vec![Mark::Shared], ..tuned() });
        for (name, value) in [("data", "zero"), ("cache", "cold")] {
            let mut row = tuned();
            row.parameters.insert(name.into(), value.into());
            forms.note(&case("stream/copy/f32"), &row);
        }
        assert_eq!(forms, Forms::default());
    }

    #[test]
    fn what_a_row_was_measured_with_holds_for_its_own_case_whatever_its_size() {
        let mut run = h200();
        let row = Measurement { id: "stream/copy/f32@4096".into(), ..tuned() };
        run.measurements = vec![row];
        let forms = Forms::used_by(&run);
        assert_eq!(forms.of(&case("stream/copy/f32@4096")), Some(&BEST));
        assert_eq!(forms.of(&case("stream/copy/f32")), None);
    }

    #[test]
    fn a_file_that_is_no_list_of_forms_is_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("forms.json");
        for text in ["", "[1]", "{\"stream_read\": {\"vector_bytes\": \"many\"}}"] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(Forms::load(&file), Forms::default(), "{text}");
        }
    }
}
