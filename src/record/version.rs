//! The versions that a document carries, and when each is raised.

/// Version of the document's form.
///
/// Major: a field is renamed, removed, or changes its unit or meaning: readers
/// refuse a major above their own; so does a new kind of device, level or profile.
/// Minor: fields are added, which older readers ignore, or values of status, verdict,
/// mark or provenance, which older readers take for `unknown` and never draw. Patch:
/// wording of reasons only.
pub const SCHEMA_VERSION: &str = "1.4.0";

/// Version of what is measured.
///
/// Raised when a kernel, a byte or flop count, a default size or the timing
/// method changes, so that figures of two versions are not compared unawares.
pub const SUITE_VERSION: &str = "3";

/// The major part of a dotted version, if it is one.
pub(super) fn major(version: &str) -> Option<u64> {
    let mut parts = version.split('.');
    let major = parts.next()?.parse().ok()?;
    parts.all(|part| part.parse::<u64>().is_ok()).then_some(major)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dotted_numbers_are_versions() {
        assert_eq!(major("1.0.0"), Some(1));
        assert_eq!(major("12"), Some(12));
        assert_eq!(major("1.x"), None);
        assert_eq!(major(""), None);
    }

    #[test]
    fn this_programs_own_version_is_readable() {
        assert_eq!(major(SCHEMA_VERSION), Some(1));
    }
}
