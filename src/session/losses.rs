//! When a device is given up.

use crate::pattern::CaseId;

/// Counts the cases in which the device was lost: it said so itself, the child died, or the case
/// ran into its limit. After each of them the next case is tried on a fresh context, because one
/// faulty kernel should lose its own case only. But a device that is really gone would fail
/// every case that is left, each after a minute perhaps. So:
///
/// - a device that cannot be opened again is given up at once;
/// - two losses in a row end their pattern;
/// - a third in a row, in the next pattern then, ends the run.
#[derive(Default)]
pub struct Losses {
    /// Losses since a case last ended well, or with a failure of its own.
    in_a_row: u32,
    /// The last of them.
    last: Option<CaseId>,
    /// Why the device could not be opened again.
    not_opened: Option<String>,
}

impl Losses {
    /// Takes note of how a case ended.
    pub fn note(&mut self, id: &CaseId, lost: bool) {
        self.in_a_row = if lost { self.in_a_row + 1 } else { 0 };
        self.last = lost.then(|| id.clone());
    }

    /// Whether the device was lost in the case before.
    pub fn any(&self) -> bool {
        self.last.is_some()
    }

    /// Takes note that the device could not be opened again.
    pub fn not_opened(&mut self, error: String) {
        self.not_opened = Some(error);
    }

    /// Why this case is not to be tried.
    pub fn reason_to_skip(&self, id: &CaseId) -> Option<String> {
        let last = self.last.as_ref()?;
        let lost = format!("not measured: the device was lost to this run in {last}");
        match (&self.not_opened, self.in_a_row) {
            (Some(error), _) => Some(format!("{lost} and could not be opened again: {error}")),
            (None, 2) if id.pattern() == last.pattern() => Some(format!("{lost}, as in the case before it")),
            (None, 0..=2) => None,
            (None, _) => Some(format!("{lost}, as in the two cases before it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips(losses: &Losses, id: &str) -> bool {
        losses.reason_to_skip(&CaseId::new(id)).is_some()
    }

    #[test]
    fn two_losses_in_a_row_end_their_pattern_and_a_third_the_run() {
        let mut losses = Losses::default();
        losses.note(&CaseId::new("stream/read/f32"), true);
        assert!(!skips(&losses, "stream/write/f32"));
        losses.note(&CaseId::new("stream/write/f32"), true);
        assert!(skips(&losses, "stream/copy/f32") && !skips(&losses, "stride/read/4"));
        losses.note(&CaseId::new("stride/read/4"), true);
        assert!(skips(&losses, "stride/read/8") && skips(&losses, "copy_engine/d2d"));
    }

    #[test]
    fn a_case_that_ends_otherwise_breaks_the_row() {
        let mut losses = Losses::default();
        for lost in [true, false, true] {
            losses.note(&CaseId::new("stream/read/f32"), lost);
        }
        assert!(!skips(&losses, "stream/copy/f32"));
    }

    #[test]
    fn a_device_that_cannot_be_opened_again_is_given_up_and_the_case_is_named() {
        let mut losses = Losses::default();
        losses.note(&CaseId::new("stream/read/f32"), true);
        losses.not_opened("no such device".into());
        let reason = losses.reason_to_skip(&CaseId::new("stride/read/4")).unwrap();
        assert!(reason.contains("stream/read/f32") && reason.contains("no such device"), "{reason}");
    }
}
