//! Which card a device is.

use super::{Card, cards};
use crate::pattern::DeviceKind;
use crate::record::Device;

/// What a device reports of the nominal capacity. Error correction within GDDR memory
/// takes a sixteenth, and drivers keep a little: a T4 of 16 GiB reports 14.6. The next
/// smaller capacity sold under one name is 10 of 12 GiB, 0.83.
const REPORTED: std::ops::RangeInclusive<f64> = 0.88..=1.02;

/// How far two widths of one bus may lie apart: drivers tell 6016 of the 6144 bits of an
/// H200, and 7680 or 8192 for a B200 (0.0625). The nearest two that differ, 352 and 384
/// bits, lie 0.083 apart.
const WIDTHS_APART: f64 = 0.07;

/// The card that a device is, when all that is known of it fits one card alone: the name
/// letter for letter, the PCI device id (`0x2335`) where device and catalog have one, the
/// size of the memory and, where both have one, the width of its bus.
pub fn recognise(name: &str, pci_device_id: Option<&str>, memory_bytes: u64, bus_width_bits: Option<u32>) -> Option<&'static Card> {
    let fits = |card: &&Card| {
        let memory = &card.memory;
        let nominal_bytes = f64::from(memory.capacity_gib) * (1u64 << 30) as f64;
        card.device_names.iter().any(|known| known == name)
            && pci_device_id
                .is_none_or(|id| card.pci_device_ids.is_empty() || card.pci_device_ids.iter().any(|known| known.eq_ignore_ascii_case(id)))
            && REPORTED.contains(&(memory_bytes as f64 / nominal_bytes))
            && bus_width_bits
                .zip(memory.bus_width_bits)
                .is_none_or(|(told, known)| f64::from(told.abs_diff(known)) <= WIDTHS_APART * f64::from(told.max(known)))
    };
    let mut fitting = cards().iter().filter(fits);
    fitting.next().filter(|_| fitting.next().is_none())
}

/// The card that a recorded device is. A host is none.
pub fn of_device(device: &Device) -> Option<&'static Card> {
    match device.kind {
        DeviceKind::Cuda => {
            recognise(&device.name, device.pci_device_id.as_deref(), device.memory.total_bytes, device.memory.bus_width_bits)
        }
        DeviceKind::Host => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200, host};

    /// What a card with so many GiB reports.
    fn gib(capacity: f64) -> u64 {
        (capacity * (1u64 << 30) as f64) as u64
    }

    fn id(name: &str, pci: Option<&str>, memory_bytes: u64, bits: Option<u32>) -> Option<&'static str> {
        recognise(name, pci, memory_bytes, bits).map(|card| card.id.as_str())
    }

    #[test]
    fn an_h200_is_recognised_by_what_its_driver_reports() {
        assert_eq!(id("NVIDIA H200", Some("0x2335"), 150_109_880_320, Some(6016)), Some("h200-sxm-141gb"));
        assert_eq!(id("NVIDIA H200", None, 150_109_880_320, None), Some("h200-sxm-141gb"));
        assert_eq!(id("NVIDIA H200 NVL", Some("0x233B"), 150_109_880_320, Some(6016)), Some("h200-nvl-141gb"));
    }

    #[test]
    fn names_that_begin_alike_are_different_cards() {
        assert_eq!(id("NVIDIA GeForce RTX 4090", Some("0x2684"), gib(23.5), Some(384)), Some("rtx-4090"));
        assert_eq!(id("NVIDIA GeForce RTX 4090 D", Some("0x2685"), gib(23.5), Some(384)), Some("rtx-4090-d"));
        assert_eq!(id("NVIDIA GeForce RTX 4090 Laptop GPU", Some("0x2717"), gib(15.7), Some(256)), Some("rtx-4090-laptop"));
        assert_eq!(id("NVIDIA GeForce RTX 409", None, gib(23.5), Some(384)), None);
        assert_eq!(id("nvidia geforce rtx 4090", None, gib(23.5), Some(384)), None);
    }

    #[test]
    fn a_card_with_more_memory_than_was_sold_is_not_the_card() {
        assert_eq!(id("NVIDIA GeForce RTX 4090", Some("0x2684"), gib(47.4), Some(384)), None);
        assert_eq!(id("NVIDIA GeForce RTX 2080 Ti", Some("0x1e07"), gib(21.5), Some(352)), None);
    }

    #[test]
    fn memory_that_error_correction_takes_is_allowed_for() {
        assert_eq!(id("Tesla T4", Some("0x1eb8"), gib(14.56), Some(256)), Some("t4"));
        assert_eq!(id("NVIDIA A10", Some("0x2236"), gib(22.06), Some(384)), Some("a10"));
        assert_eq!(id("NVIDIA L40S", Some("0x26b9"), gib(44.4), Some(384)), Some("l40s"));
    }

    #[test]
    fn a_name_with_another_id_or_another_bus_is_another_card() {
        assert_eq!(id("NVIDIA GeForce RTX 4090", Some("0x9999"), gib(23.5), Some(384)), None);
        assert_eq!(id("NVIDIA GeForce RTX 4090", Some("0x2684"), gib(23.5), Some(256)), None);
    }

    #[test]
    fn one_name_for_several_cards_is_told_apart_by_id_or_memory_or_not_at_all() {
        let name = "NVIDIA GeForce RTX 3080";
        assert_eq!(id(name, None, gib(9.8), None), Some("rtx-3080-10gb"));
        assert_eq!(id(name, None, gib(11.8), Some(384)), Some("rtx-3080-12gb"));
        let name = "NVIDIA GeForce RTX 3060 Ti";
        assert_eq!(id(name, Some("0x24c9"), gib(7.8), Some(256)), Some("rtx-3060-ti-gddr6x"));
        assert_eq!(id(name, None, gib(7.8), Some(256)), None);
    }

    #[test]
    fn names_that_say_nothing_and_slices_are_unknown() {
        assert_eq!(id("NVIDIA Graphics Device", Some("0x2684"), gib(23.5), Some(384)), None);
        assert_eq!(id("NVIDIA A100-SXM4-40GB MIG 3g.20gb", Some("0x20b0"), gib(19.6), Some(5120)), None);
        assert_eq!(id("", None, 0, None), None);
        assert_eq!(id("NVIDIA H200", None, 0, Some(0)), None);
    }

    #[test]
    fn every_card_of_nvidia_is_recognised_by_its_own_data() {
        for card in cards().iter().filter(|card| card.vendor == "NVIDIA") {
            for name in &card.device_names {
                for pci in &card.pci_device_ids {
                    let memory_bytes = gib(f64::from(card.memory.capacity_gib));
                    assert_eq!(recognise(name, Some(pci), memory_bytes, card.memory.bus_width_bits), Some(card), "{name} {pci}");
                }
            }
        }
    }

    #[test]
    fn a_document_from_before_the_catalog_is_recognised_by_its_device() {
        let mut run = h200();
        run.device.card = "nvidia-h200".into();
        assert_eq!(of_device(&run.device).map(|card| card.id.as_str()), Some("h200-sxm-141gb"));
        assert_eq!(of_device(&host().device), None);
    }
}
