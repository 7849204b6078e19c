//! WHAT IS KEPT: the run document, one JSON file for each run of one device.

mod claim;
mod contention;
mod device;
mod document;
mod measurement;
mod schema;
mod soak;
mod store;
mod telemetry;
mod tuning;
mod version;

pub use claim::{Claim, Claims, Median, Settled, Store, Subject, Writer};
pub use contention::Contention;
pub use device::{Device, Ecc, Memory, Pcie, PowerLimits, RemappedRows, Virtualization};
pub use document::{Host, Peak, Peaks, Program, Provenance, Run};
pub use measurement::{Mark, Measurement, Status, Time, Verdict};
pub use schema::schema;
pub use soak::{Soak, SoakInterval};
pub(crate) use store::write_whole;
pub use store::{DOCUMENT_NAME, Held, LoadError, SaveError, create, find, hold, load, load_all, load_claims, save};
pub use telemetry::{EnergySource, PowerSource, Spread, Telemetry};
pub use tuning::{InFlight, Tuning, TuningSource};
pub use version::{SCHEMA_VERSION, SUITE_VERSION};

/// Why optional fields of an object hold null: field name to reason.
///
/// Every object with optional fields has such a map beside them, so that "not
/// known" always comes with its cause.
pub type Missing = std::collections::BTreeMap<String, String>;

/// Splits a finding into the value for a field and, when there is none, the
/// reason under the field's name in `missing`.
pub fn known<T>(missing: &mut Missing, field: &str, finding: Result<T, String>) -> Option<T> {
    match finding {
        Ok(value) => Some(value),
        Err(reason) => {
            missing.insert(field.to_owned(), reason);
            None
        }
    }
}

/// The time now, UTC, to the second (RFC 3339).
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A name as an id: lower case, and one dash for whatever is neither letter nor digit;
/// `unnamed` when nothing is left.
pub fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    match slug.trim_end_matches('-') {
        "" => "unnamed".to_owned(),
        slug => slug.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_has_letters_digits_and_single_dashes() {
        assert_eq!(slug("NVIDIA A100-SXM4-80GB"), "nvidia-a100-sxm4-80gb");
        assert_eq!(slug("Intel(R) Xeon(R)  Gold/../x"), "intel-r-xeon-r-gold-x");
        assert_eq!(slug("***"), "unnamed");
    }

    #[test]
    fn what_is_not_known_leaves_its_reason() {
        let mut missing = Missing::new();
        assert_eq!(known(&mut missing, "serial", Err::<String, _>("not told".into())), None);
        assert_eq!(missing["serial"], "not told");
        assert_eq!(known(&mut missing, "uuid", Ok(1)), Some(1));
        assert!(!missing.contains_key("uuid"));
    }
}
