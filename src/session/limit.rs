//! How long a child may take.

use std::time::Duration;

use crate::pattern::{Case, DeviceKind, Profile};

/// For opening the device. Without the persistence daemon the driver wakes every card of the
/// machine first, which takes some ten seconds with eight of them.
pub const OPENING: Duration = Duration::from_secs(120);

/// For ending, after the last answer: giving back memory and contexts.
pub const ENDING: Duration = Duration::from_secs(30);

/// For one case: preparation, warm-up, samples and verification.
///
/// A minute for `quick`, whose cases take one or two seconds on a GPU and at most ten on a host;
/// more for profiles that sample longer; and more for large buffers, which are passed over some
/// twenty times: 1 s for each GiB on a GPU (20 GB/s), 10 s on a host (2 GB/s). A search among several ways to write a
/// case, and what comes with it, are some three hundred passes.
fn of_case(case: &Case, profile: Profile, kind: DeviceKind) -> Duration {
    let least_s = match profile {
        Profile::Quick => 60,
        Profile::Standard => 120,
        Profile::Full => 300,
    };
    let gib_s = match kind {
        DeviceKind::Cuda => 1,
        DeviceKind::Host => 10,
    };
    let searched = if case.ways.is_some() { 15 } else { 1 };
    Duration::from_secs(least_s + gib_s * searched * (case.plan.footprint_bytes() >> 30))
}

/// The user's own limit for a case, or else that of the rule.
pub fn chosen(own: Option<Duration>, case: &Case, profile: Profile, kind: DeviceKind) -> Duration {
    own.unwrap_or_else(|| of_case(case, profile, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{CaseId, Facts, plan};

    fn seconds(id: &str, profile: Profile, facts: &Facts) -> u64 {
        of_case(&plan(&CaseId::new(id), facts).unwrap(), profile, facts.kind).as_secs()
    }

    #[test]
    fn a_case_has_a_minute_and_more_for_longer_profiles_and_larger_buffers() {
        assert_eq!(seconds("stream/read/f32@4096", Profile::Quick, &Facts::H200), 60);
        assert_eq!(seconds("stream/read/f32@4096", Profile::Full, &Facts::H200), 300);
        // Two arrays of 4 GiB.
        assert_eq!(seconds("copy_engine/d2d@4294967296", Profile::Quick, &Facts::H200), 68);
        assert_eq!(seconds("stream/copy/f32@4294967296", Profile::Quick, &Facts::H200), 180);
        assert_eq!(seconds("stream/copy/f32@4294967296", Profile::Quick, &Facts::HOST), 140);
    }
}
