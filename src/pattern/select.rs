//! From the names on the command line to the ids that a run measures.

use super::{CaseId, DeviceKind, Facts, PATTERNS, PlanError, Profile, pattern_of};

/// Why the wanted names give no cases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// A name that nothing is called.
    #[error("no pattern or case is called '{name}'{}; 'hbmark list cases' shows all", .nearest.as_ref().map(|n| format!(" (did you mean '{n}'?)")).unwrap_or_default())]
    Unknown {
        /// As the user wrote it.
        name: String,
        /// The closest name there is.
        nearest: Option<String>,
    },
    /// A pattern that this kind of device does not have.
    #[error("'{name}' does not run on a {kind} device; 'hbmark list cases' shows what runs where")]
    NotHere {
        /// As the user wrote it.
        name: String,
        /// The kind of device.
        kind: DeviceKind,
    },
}

/// The cases that `names` (patterns, beginnings of ids, or ids with a size) select
/// on this device; without names, all of the profile.
///
/// A name selects from the profile first and from the next larger one when the
/// profile has none of it, so an exact id always works. The order is the suite's.
///
/// # Errors
/// When a name matches nothing, with the nearest name.
pub fn select(names: &[String], profile: Profile, facts: &Facts) -> Result<Vec<CaseId>, SelectError> {
    if names.is_empty() {
        return Ok(ids_on(profile, facts).iter().map(|id| CaseId::new(id)).collect());
    }
    let mut chosen: Vec<CaseId> = Vec::new();
    for name in names {
        for id in matching(name, profile, facts)? {
            if !chosen.contains(&id) {
                chosen.push(id);
            }
        }
    }
    let order = |id: &CaseId| PATTERNS.iter().position(|p| p.name() == id.pattern());
    chosen.sort_by_key(order);
    Ok(chosen)
}

fn matching(name: &str, profile: Profile, facts: &Facts) -> Result<Vec<CaseId>, SelectError> {
    let kind = facts.kind;
    let wanted = CaseId::new(name.trim_end_matches('/'));
    let within = |ids: Vec<String>| -> Vec<CaseId> {
        ids.iter()
            // What has a size of its own takes no other.
            .filter(|id| wanted.size().is_none() || !id.contains('@'))
            .filter(|id| *id == wanted.name() || id.strip_prefix(wanted.name()).is_some_and(|rest| rest.starts_with('/')))
            .map(|id| match wanted.size() {
                Some(size) => CaseId::new(&format!("{id}@{size}")),
                None => CaseId::new(id),
            })
            .collect()
    };
    // What the profile leaves out is measured as in the next one that has it.
    for profile in [profile, Profile::Standard, Profile::Full] {
        let found = within(ids_on(profile, facts));
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let elsewhere = || [DeviceKind::Cuda, DeviceKind::Host].iter().any(|&k| k != kind && !within(ids(Profile::Full, k)).is_empty());
    // A stride or a channel count outside the sweeps is still a case of its pattern.
    match pattern_of(&wanted).map(|pattern| pattern.case(&wanted, facts)) {
        Some(Err(PlanError::Unsupported(_))) => Err(SelectError::NotHere { name: name.to_owned(), kind }),
        Some(Err(PlanError::Unknown(_))) | None if elsewhere() => Err(SelectError::NotHere { name: name.to_owned(), kind }),
        Some(Err(PlanError::Unknown(_))) | None => {
            Err(SelectError::Unknown { name: name.to_owned(), nearest: nearest(wanted.name(), facts) })
        }
        // Whatever else is wrong with it is said when it is planned.
        Some(_) => Ok(vec![wanted]),
    }
}

fn ids(profile: Profile, kind: DeviceKind) -> Vec<String> {
    PATTERNS.iter().flat_map(|p| p.ids(profile, kind)).collect()
}

fn ids_on(profile: Profile, facts: &Facts) -> Vec<String> {
    PATTERNS.iter().flat_map(|p| p.ids_on(profile, facts)).collect()
}

fn nearest(name: &str, facts: &Facts) -> Option<String> {
    let name = name.to_lowercase();
    let mut names: Vec<String> = PATTERNS.iter().map(|p| p.name().to_owned()).collect();
    names.extend(ids_on(Profile::Full, facts));
    names
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&name, &candidate), candidate))
        .filter(|(score, _)| *score > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str], profile: Profile, kind: DeviceKind) -> Result<Vec<String>, SelectError> {
        let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
        let facts = Facts { kind, free_bytes: 64 << 30, ..Facts::H200 };
        Ok(select(&names, profile, &facts)?.iter().map(CaseId::to_string).collect())
    }

    #[test]
    fn a_pattern_selects_its_cases_of_the_profile() {
        assert_eq!(chosen(&["stride"], Profile::Quick, DeviceKind::Host).unwrap().len(), 6);
        assert_eq!(chosen(&["stride"], Profile::Standard, DeviceKind::Host).unwrap().len(), 18);
    }

    #[test]
    fn a_beginning_selects_at_whole_parts_only() {
        let e = chosen(&["stream/co"], Profile::Quick, DeviceKind::Host).unwrap_err().to_string();
        assert!(e.contains("did you mean"), "{e}");
        assert_eq!(chosen(&["stream/copy"], Profile::Quick, DeviceKind::Host).unwrap(), ["stream/copy/f32"]);
    }

    #[test]
    fn an_exact_id_works_outside_the_profile() {
        assert_eq!(chosen(&["stride/read/1024"], Profile::Quick, DeviceKind::Host).unwrap(), ["stride/read/1024"]);
        assert_eq!(chosen(&["stride/read/4096"], Profile::Quick, DeviceKind::Host).unwrap(), ["stride/read/4096"]);
    }

    #[test]
    fn a_case_of_another_devices_sweep_can_be_asked_for() {
        for id in ["conv3d/direct/f32/32x32", "conv3d/direct/f32/32x32@8x8x8"] {
            assert_eq!(chosen(&[id], Profile::Quick, DeviceKind::Host).unwrap(), [id]);
        }
    }

    #[test]
    fn a_size_is_kept() {
        assert_eq!(chosen(&["stream/copy/f32@4096"], Profile::Quick, DeviceKind::Cuda).unwrap(), ["stream/copy/f32@4096"]);
    }

    #[test]
    fn a_pattern_that_the_profile_lacks_is_taken_from_the_next_that_has_it() {
        let of = |profile| chosen(&["gather"], profile, DeviceKind::Cuda).unwrap();
        assert_eq!(of(Profile::Quick), of(Profile::Standard));
        assert!(of(Profile::Full).len() > of(Profile::Quick).len());
    }

    #[test]
    fn a_size_is_given_to_no_case_that_has_one() {
        assert_eq!(chosen(&["gather/read/64@half"], Profile::Quick, DeviceKind::Cuda).unwrap(), ["gather/read/64@half"]);
        let sized = chosen(&["gather/read@1048576"], Profile::Full, DeviceKind::Cuda).unwrap();
        assert_eq!(sized.len(), 11);
        assert!(sized.iter().all(|id| id.ends_with("@1048576")), "{sized:?}");
    }

    #[test]
    fn a_mistyped_name_gets_the_nearest() {
        let e = chosen(&["strem"], Profile::Quick, DeviceKind::Host).unwrap_err().to_string();
        assert!(e.contains("'strem' (did you mean 'stream'?)"), "{e}");
        let e = chosen(&["zzz"], Profile::Quick, DeviceKind::Host).unwrap_err().to_string();
        assert!(!e.contains("did you mean"), "{e}");
    }

    #[test]
    fn a_case_of_another_device_is_told_apart_from_an_unknown_one() {
        for (name, kind) in [("copy_engine/d2d", DeviceKind::Host), ("copy_engine", DeviceKind::Host)] {
            assert!(matches!(chosen(&[name], Profile::Quick, kind), Err(SelectError::NotHere { .. })), "{name}");
        }
    }

    #[test]
    fn compute_peaks_are_measured_first_and_nothing_twice() {
        let ids = chosen(&["stream", "compute", "stream/copy"], Profile::Quick, DeviceKind::Host).unwrap();
        assert_eq!(ids[0], "compute/fma/f32");
        assert_eq!(ids.len(), 5);
    }
}
