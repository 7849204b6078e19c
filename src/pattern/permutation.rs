//! A random order of any number of items, one at a time and with nothing kept: the
//! same in `kernels/permutation.cuh`, so that an index array is filled where it lies.

/// A bijection of `0..items` that looks random to a memory: neighbours land far apart,
/// and no distance between them comes back more often than chance has it.
///
/// It mixes the positions below the next power of two, by steps that can each be undone
/// (adding, multiplying by an odd number, folding the upper half of the bits into the
/// lower), and mixes again what came out beyond `0..items`, as half of it at most does:
/// John Black and Phillip Rogaway, "Ciphers with arbitrary finite domains" (2002).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    items: u64,
    mask: u32,
    half: u32,
    seed: u32,
}

impl Permutation {
    /// The most items that it can order: places are 32 bits.
    pub const ITEMS_MAX: u64 = 1 << 32;

    /// The order of `items`, 1 to [`Self::ITEMS_MAX`], that `seed` chooses.
    pub fn new(items: u64, seed: u32) -> Self {
        assert!((1..=Self::ITEMS_MAX).contains(&items), "{items} items");
        // Two positions at the least, so that there is something to fold.
        let bits = (items - 1).checked_ilog2().unwrap_or_default() + 1;
        Self { items, mask: u32::MAX >> (32 - bits), half: bits.div_ceil(2), seed }
    }

    /// The place of item `item`, both in `0..items`.
    #[inline(always)]
    pub const fn place(self, item: u32) -> u32 {
        let mut x = item;
        loop {
            x = self.mixed(x);
            if (x as u64) < self.items {
                return x;
            }
        }
    }

    /// Any odd multipliers with bits all over do. With three of them some distances came
    /// back seven times as often as by chance, with four none did.
    #[inline(always)]
    const fn mixed(self, x: u32) -> u32 {
        let x = self.folded(x.wrapping_add(self.seed) & self.mask);
        let x = self.folded(x.wrapping_mul(0x9E37_79B1) & self.mask);
        let x = self.folded(x.wrapping_mul(0x21f0_aaad) & self.mask);
        let x = self.folded(x.wrapping_mul(0xd35a_2d97) & self.mask);
        self.folded(x.wrapping_mul(0x85eb_ca6b) & self.mask)
    }

    #[inline(always)]
    const fn folded(self, x: u32) -> u32 {
        x ^ (x >> self.half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn every_place_is_taken_exactly_once(items in 1u64..5000, seed: u32) {
            let order = Permutation::new(items, seed);
            let mut places: Vec<u32> = (0..items as u32).map(|item| order.place(item)).collect();
            places.sort_unstable();
            prop_assert!(places.into_iter().eq(0..items as u32));
        }

        /// Also where 32-bit counts would wrap; a bijection has no two items at one place.
        #[test]
        fn large_orders_stay_in_range_and_take_no_place_twice(
            items in prop::sample::select(vec![(1u64 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 1, 1 << 32]),
            first: u32,
            seed: u32,
        ) {
            let order = Permutation::new(items, seed);
            let some: Vec<u32> = (0..1000).map(|k| (u64::from(first.wrapping_add(k)) % items) as u32).collect();
            let places: std::collections::HashSet<u32> = some.iter().map(|&item| order.place(item)).collect();
            prop_assert_eq!(places.len(), some.iter().collect::<std::collections::HashSet<_>>().len());
            prop_assert!(places.iter().all(|&place| u64::from(place) < items));
        }
    }

    #[test]
    fn neighbours_land_far_apart_at_no_constant_distance() {
        for items in [1u64 << 15, 100_003, 1 << 18, 1_000_000, 1 << 20] {
            let order = Permutation::new(items, 0x5EED_0001);
            let mut distances = HashMap::<u64, u32>::new();
            let mut near = 0;
            for item in 1..items as u32 {
                let (a, b) = (u64::from(order.place(item - 1)), u64::from(order.place(item)));
                near += u64::from(a.abs_diff(b) < items / 100);
                // Modulo the number of items: a step of a constant stride is always the same.
                *distances.entry((b + items - a) % items).or_default() += 1;
            }
            // By chance 2 % are nearer than a hundredth, and no distance comes more than ten times or so.
            assert!(near < items / 40, "{near} of {items} are near");
            let most = distances.values().max().unwrap();
            assert!(*most < 16, "a distance comes {most} times among {items}");
        }
    }

    #[test]
    fn every_part_of_the_memory_is_asked_for_all_the_time() {
        let items = 1u64 << 20;
        let order = Permutation::new(items, 7);
        for window in 0..64u32 {
            let mut parts = [0u32; 16];
            let mut channels = [0u32; 16];
            for item in window * 4096..(window + 1) * 4096 {
                let place = u64::from(order.place(item));
                parts[(place * 16 / items) as usize] += 1;
                channels[(place % 16) as usize] += 1;
            }
            // 256 each, with a deviation of 15.5.
            assert!(parts.iter().chain(&channels).all(|n| (170..345).contains(n)), "{parts:?} {channels:?}");
        }
    }

    #[test]
    fn seeds_give_different_orders() {
        let [one, other] = [1, 2].map(|seed| Permutation::new(100_000, seed));
        let same = (0..100_000).filter(|&item| one.place(item) == other.place(item)).count();
        assert!(same < 20, "{same} items have the same place");
    }

    /// Places that `kernels/permutation.cuh` gave, compiled for a processor.
    #[test]
    fn the_order_is_that_of_the_kernels() {
        let places = |items, of: &[u32]| of.iter().map(|&item| Permutation::new(items, 3).place(item)).collect::<Vec<_>>();
        assert_eq!(places(1000, &[0, 1, 2, 3, 4, 5, 6, 7]), [482, 773, 788, 398, 749, 799, 818, 941]);
        assert_eq!(places(1 << 32, &[0, u32::MAX]), [115_214_785, 193_293_311]);
        assert_eq!(places((1 << 31) + 1, &[0, 1 << 31]), [115_214_785, 21_816_013]);
    }
}
