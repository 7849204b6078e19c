//! The last-level cache, as Linux describes it under `/sys/devices/system/cpu`.

use std::collections::BTreeSet;

/// One cache as one processor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cache {
    level: u32,
    bytes: u64,
    /// The processors that share it: two with the same list are the same cache.
    shared_by: String,
}

/// All last-level caches together that the processors this program may use have.
///
/// # Errors
/// Why it is not known.
pub(super) fn last_level_bytes() -> Result<u64, String> {
    let unknown = |why: String| format!("the system does not describe its caches: {why}");
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| unknown(format!("{path}: {e}")));
    let cpus = allowed_cpus(&read("/proc/self/status")?).ok_or_else(|| unknown("no Cpus_allowed_list".into()))?;
    let mut caches = Vec::new();
    for cpu in cpus {
        for index in 0.. {
            let part = |name: &str| read(&format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}"));
            // The first index that is not there ends the list.
            let Ok(kind) = part("type") else { break };
            if let Some(cache) = parse(&kind, &part("level")?, &part("size")?, &part("shared_cpu_list")?) {
                caches.push(cache);
            }
        }
    }
    total(&caches).ok_or_else(|| unknown("no data cache listed under /sys/devices/system/cpu".into()))
}

/// The sum over the distinct caches of the highest level.
fn total(caches: &[Cache]) -> Option<u64> {
    let last = caches.iter().map(|c| c.level).max()?;
    let distinct: BTreeSet<_> = caches.iter().filter(|c| c.level == last).map(|c| (&c.shared_by, c.bytes)).collect();
    Some(distinct.iter().map(|(_, bytes)| bytes).sum())
}

/// A cache that holds data, from the texts of its files.
fn parse(kind: &str, level: &str, size: &str, shared_by: &str) -> Option<Cache> {
    matches!(kind.trim(), "Data" | "Unified").then_some(())?;
    let size = size.trim();
    let (digits, unit) = match size.char_indices().last()? {
        (at, 'K') => (&size[..at], 1 << 10),
        (at, 'M') => (&size[..at], 1 << 20),
        _ => (size, 1),
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    Some(Cache { level: level.trim().parse().ok()?, bytes, shared_by: shared_by.trim().to_owned() })
}

/// The processors in the `Cpus_allowed_list` of `/proc/self/status`.
fn allowed_cpus(status: &str) -> Option<Vec<u32>> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_processors_are_single_or_ranges() {
        let status = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-2,5\nMems_allowed:\t1\n";
        assert_eq!(allowed_cpus(status), Some(vec![0, 1, 2, 5]));
        assert_eq!(allowed_cpus("Name:\tx\n"), None);
    }

    #[test]
    fn sizes_have_units_and_instructions_do_not_count() {
        let cache = parse("Unified\n", "3\n", "491520K\n", "0-1\n").unwrap();
        assert_eq!((cache.level, cache.bytes), (3, 480 << 20));
        assert_eq!(parse("Data", "1", "2M", "0").unwrap().bytes, 2 << 20);
        assert_eq!(parse("Instruction", "1", "32K", "0"), None);
        assert_eq!(parse("Data", "1", "", "0"), None);
    }

    #[test]
    fn caches_of_two_sockets_add_up_and_shared_ones_count_once() {
        let cache = |level, mib: u64, shared: &str| Cache { level, bytes: mib << 20, shared_by: shared.into() };
        let caches = [cache(2, 1, "0"), cache(3, 32, "0-1"), cache(2, 1, "1"), cache(3, 32, "0-1"), cache(2, 1, "2"), cache(3, 32, "2-3")];
        assert_eq!(total(&caches), Some(64 << 20));
        assert_eq!(total(&[]), None);
    }
}
