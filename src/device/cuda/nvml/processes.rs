//! How many other programs are on a card, from lists that may not show all of them.

use std::collections::BTreeSet;

/// Counts the other processes, given the ids that NVML lists on a card on which `own` has a context.
///
/// # Errors
/// When the list does not even show this program: then nobody can tell what else it hides. A
/// container sees no processes outside it, or sees itself under a number that it does not know.
pub(super) fn others(listed: impl IntoIterator<Item = u32>, own: u32) -> Result<u32, String> {
    let listed: BTreeSet<u32> = listed.into_iter().collect();
    // One of them is this program, under whatever number.
    let others = listed.len().saturating_sub(1) as u32;
    if listed.contains(&own) || others > 0 {
        Ok(others)
    } else {
        Err("cannot tell: NVML's list of processes does not show this program, as in a container".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_no_other_and_one_process_counts_once() {
        assert_eq!(others([7], 7), Ok(0));
        assert_eq!(others([7, 8, 8, 9], 7), Ok(2));
    }

    #[test]
    fn a_list_without_this_program_tells_nothing_unless_it_has_more_than_one() {
        assert!(others([], 7).is_err());
        assert!(others([8], 7).is_err());
        assert_eq!(others([8, 9], 7), Ok(1));
    }
}
