//! What the caches hold when an execution begins.

use super::Facts;

/// Whether an execution finds in the caches what the one before it left there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, clap::ValueEnum, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// Executions follow each other at once.
    #[default]
    Hot,
    /// Other memory is read before each execution, and each is timed by itself.
    Cold,
}

/// Other memory that is read, as a multiple of the last cache: no policy of replacement keeps a line
/// while twice the cache passes through it.
const EVICTION_MULTIPLE: u64 = 2;
/// A last cache assumed where the device names none: larger than any GPU's yet.
const CACHE_ASSUMED_BYTES: u64 = 128 << 20;

/// How much other memory is read before an execution on cold caches, in bytes; a multiple of 16.
pub fn eviction_bytes(facts: &Facts) -> u64 {
    (facts.cache_bytes.unwrap_or(CACHE_ASSUMED_BYTES) * EVICTION_MULTIPLE).next_multiple_of(16)
}

impl CacheState {
    /// How the state comes about on a device.
    pub fn how(self, facts: &Facts) -> String {
        match self {
            Self::Hot => "as the execution before leaves them".to_owned(),
            // Read and not written: dirty lines would be written back at the expense of the case.
            Self::Cold => format!("{} bytes of other memory read before each execution", eviction_bytes(facts)),
        }
    }
}

impl std::fmt::Display for CacheState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hot => "hot",
            Self::Cold => "cold",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_last_cache_is_read_and_twice_an_assumed_one_where_none_is_named() {
        assert_eq!(eviction_bytes(&Facts::H200), 120 << 20);
        assert_eq!(eviction_bytes(&Facts { cache_bytes: None, ..Facts::H200 }), 256 << 20);
        assert_eq!(eviction_bytes(&Facts { cache_bytes: Some(3), ..Facts::H200 }), 16);
    }
}
