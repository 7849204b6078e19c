//! `json`: the run documents themselves, so that there is one form to know.

use super::{Exporter, ReportError};
use crate::record::Run;

pub(super) struct Json;

impl Exporter for Json {
    fn export(&self, runs: &[Run]) -> Result<String, ReportError> {
        Ok(serde_json::to_string_pretty(runs)? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200, host};

    #[test]
    fn the_array_holds_the_documents_themselves() {
        let runs = [h200(), host()];
        let text = Json.export(&runs).unwrap();
        let array: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(array[0]["measurements"][1]["id"], "stream/read/f32");
        assert_eq!(array[0]["measurements"][1]["achieved_gbps"], 4712.3);
        let back: Vec<Run> = serde_json::from_value(array).unwrap();
        assert_eq!(back.iter().map(|run| &run.device).collect::<Vec<_>>(), [&runs[0].device, &runs[1].device]);
        assert!(text.ends_with("]\n"));
    }
}
