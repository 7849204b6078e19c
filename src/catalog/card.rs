//! Cards by their data sheets.

use std::sync::LazyLock;

use serde::Deserialize;

static CARDS: LazyLock<Vec<Card>> =
    LazyLock::new(|| serde_json::from_str(include_str!("cards.json")).expect("a test reads the same compiled-in text"));

/// A product that one can buy, by its data sheet; what no source tells is none.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Its name in this program, such as `a100-80gb-sxm4`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What drivers call it, letter for letter.
    pub device_names: Vec<String>,
    /// Device ids on the bus, without the vendor, such as `0x2335`.
    pub pci_device_ids: Vec<String>,
    /// Who makes the chip.
    pub vendor: String,
    /// Generation of the chip.
    pub architecture: String,
    /// Compute capability of NVIDIA's chips, such as `9.0`.
    pub compute_capability: Option<String>,
    /// The memory.
    pub memory: CardMemory,
    /// Size of the L2 cache.
    pub l2_mib: Option<f64>,
    /// Size of a cache between L2 and memory.
    pub last_level_cache_mib: Option<f64>,
    /// Streaming multiprocessors; compute units of AMD, Xe cores of Intel.
    pub sm_count: Option<u32>,
    /// Boost clock.
    pub boost_mhz: Option<f64>,
    /// 32-bit arithmetic, 10^12 operations a second.
    pub fp32_tflops: Option<f64>,
    /// 16-bit matrix arithmetic without sparsity, 10^12 operations a second.
    pub fp16_dense_tflops: Option<f64>,
    /// What the matrix units add up in; cards that add up in 16 bits are twice as fast at it.
    pub fp16_accumulate: Option<String>,
    /// Power limit.
    pub tdp_w: Option<f64>,
    /// Year of its first sale.
    pub launch_year: Option<u16>,
    /// Price then, in US dollars.
    pub launch_price_usd: Option<f64>,
    /// Where each of the facts above was found.
    pub sources: Vec<Source>,
}

/// The memory of a card, by its data sheet.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardMemory {
    /// Kind and generation, such as `HBM3e` or `GDDR6X`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Capacity as the vendor names it; some name 10^9 bytes so, such as the 141 of the H200.
    pub capacity_gib: u32,
    /// Width of the bus.
    pub bus_width_bits: Option<u32>,
    /// Transfers on each line of the bus, 10^9 a second.
    pub data_rate_gtps: Option<f64>,
    /// Bandwidth that the data sheet states, 10^9 B/s.
    pub bandwidth_gbps: f64,
}

/// Kinds of memory that cards are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum MemoryFamily {
    /// Stacks beside the chip, with a wide bus
    Hbm,
    /// Graphics memory around the chip
    Gddr,
    /// Memory that is shared with a processor
    Lpddr,
}

/// Where a fact was found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Which facts.
    pub what: String,
    /// A page, or a file of a repository at a commit.
    #[serde(rename = "where")]
    pub place: String,
}

impl CardMemory {
    /// The family that the kind belongs to.
    pub fn family(&self) -> Option<MemoryFamily> {
        [("HBM", MemoryFamily::Hbm), ("GDDR", MemoryFamily::Gddr), ("LPDDR", MemoryFamily::Lpddr)]
            .into_iter()
            .find_map(|(beginning, family)| self.kind.starts_with(beginning).then_some(family))
    }
}

/// Every card, by generation of its vendor.
pub fn cards() -> &'static [Card] {
    &CARDS
}

/// The card with this id.
pub fn card(id: &str) -> Option<&'static Card> {
    CARDS.iter().find(|card| card.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_and_names_are_unique_and_ids_are_slugs() {
        for of in [|card: &Card| card.id.clone(), |card: &Card| card.name.clone()] {
            assert_eq!(cards().iter().map(of).collect::<BTreeSet<_>>().len(), cards().len());
        }
        assert!(cards().iter().all(|card| crate::record::slug(&card.id) == card.id));
        assert!(cards().len() >= 100);
    }

    #[test]
    fn every_card_has_sources_that_say_what_and_where() {
        for card in cards() {
            assert!(!card.sources.is_empty(), "{}", card.id);
            assert!(card.sources.iter().all(|source| source.what.len() > 2 && source.place.len() > 8), "{}", card.id);
        }
    }

    #[test]
    fn width_times_rate_agrees_with_the_stated_bandwidth_within_3_percent() {
        let mut checked = 0;
        for card in cards() {
            let CardMemory { bus_width_bits: Some(bits), data_rate_gtps: Some(rate), bandwidth_gbps, .. } = card.memory else { continue };
            let computed = f64::from(bits) * rate / 8.0;
            assert!((computed / bandwidth_gbps - 1.0).abs() < 0.03, "{}: {computed} and {bandwidth_gbps}", card.id);
            checked += 1;
        }
        assert!(checked > 90, "{checked}");
    }

    #[test]
    fn every_memory_belongs_to_a_family() {
        let family = |id| card(id).and_then(|card| card.memory.family());
        assert!(cards().iter().all(|card| card.memory.family().is_some()));
        assert_eq!(family("h200-sxm-141gb"), Some(MemoryFamily::Hbm));
        assert_eq!(family("rtx-4090"), Some(MemoryFamily::Gddr));
        assert_eq!(family("gb10"), Some(MemoryFamily::Lpddr));
        assert_eq!(family("no-such-card"), None);
    }
}
