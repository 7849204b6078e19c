//! What holds for a document as a whole.

use super::What;
use crate::chart::words::figure;
use crate::record::{Claims, Provenance};

pub(super) fn findings(claims: &Claims) -> Vec<(What, String)> {
    let mut found = Vec::new();
    found.extend(incomplete(claims).map(|says| (What::Incomplete, says)));
    if claims.program.build.as_deref() == Some("debug") {
        found.push((What::DebugBuild, "a debug build measured, which is slower than a release".to_owned()));
    }
    found.extend(unsound_peaks(claims).into_iter().map(|says| (What::UnsoundPeak, says)));
    found
}

fn incomplete(claims: &Claims) -> Option<String> {
    let rows = claims.measurements.len();
    let left = claims.cases.iter().filter(|id| !claims.measurements.iter().any(|row| row.id == **id)).count();
    if left > 0 {
        Some(format!("{left} of {} cases have no row", claims.cases.len()))
    } else if rows == 0 {
        Some("there are no rows".to_owned())
    } else {
        (claims.complete == Some(false)).then(|| format!("the run was broken off or is under way; it has rows of {rows} cases"))
    }
}

fn unsound_peaks(claims: &Claims) -> Vec<String> {
    let theoretical = claims.peaks.memory_gbps.iter().filter(|peak| peak.provenance != Provenance::Measured);
    let mut found: Vec<String> = theoretical
        .filter(|peak| !(peak.value.is_finite() && peak.value > 0.0))
        .map(|peak| format!("a memory peak of {} GB/s is none", figure(peak.value)))
        .collect();
    if let Some((attributes, datasheet)) = claims.peaks.memory_disagreement_gbps() {
        let (attributes, datasheet) = (figure(attributes), figure(datasheet));
        found.push(format!("{attributes} GB/s by the device's attributes and {datasheet} GB/s by the data sheet are more than 3 % apart"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Claim, Peak, Writer};

    fn whole() -> Claims {
        let row = Claim { id: "stream/copy/f32".into(), ..Claim::default() };
        Claims { complete: Some(true), measurements: vec![row], ..Claims::default() }
    }

    fn peaks(values: &[(f64, Provenance)]) -> Vec<(What, String)> {
        let mut claims = whole();
        claims.peaks.memory_gbps = values.iter().map(|&(value, provenance)| Peak { value, provenance }).collect();
        findings(&claims)
    }

    #[test]
    fn a_whole_document_of_a_release_gives_no_finding() {
        assert_eq!(findings(&whole()), []);
    }

    #[test]
    fn a_document_that_lacks_rows_is_incomplete_with_their_number() {
        let cases = ["stream/read/f32", "stream/copy/f32", "stream/write/f32"].map(String::from).to_vec();
        assert_eq!(findings(&Claims { cases, ..whole() }), [(What::Incomplete, "2 of 3 cases have no row".to_owned())]);
        assert_eq!(findings(&Claims { complete: Some(false), ..whole() })[0].0, What::Incomplete);
        assert_eq!(findings(&Claims::default())[0].0, What::Incomplete);
    }

    #[test]
    fn a_debug_build_is_named() {
        let debug = Claims { program: Writer { build: Some("debug".into()) }, ..whole() };
        assert_eq!(findings(&debug)[0].0, What::DebugBuild);
    }

    #[test]
    fn theoretical_peaks_that_contradict_or_are_none_are_named_with_their_numbers() {
        use Provenance::{Datasheet, DeviceAttributes, Measured};
        let found = peaks(&[(4814.3, DeviceAttributes), (4000.0, Datasheet)]);
        assert!(found[0].0 == What::UnsoundPeak && found[0].1.contains("4814") && found[0].1.contains("4000"), "{found:?}");
        assert_eq!(peaks(&[(0.0, DeviceAttributes)])[0].0, What::UnsoundPeak);
        assert_eq!(peaks(&[(4814.3, DeviceAttributes), (4800.0, Datasheet), (3000.0, Measured)]), []);
    }
}
