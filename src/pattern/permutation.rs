//! Orders that look random and are computed place by place, forwards and backwards; the same
//! in `kernels/common.cuh`, so that every place can be filled and checked by itself.

use super::data::mix;

/// Every place once, in an order that the seed chooses.
///
/// A Feistel network on the next even number of bits is a bijection whatever its round function
/// is, and has an inverse; numbers beyond the places are sent through it again until they fall
/// inside ("cycle walking": Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002),
/// which takes less than four turns in the mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    places: u64,
    half_bits: u32,
    seed: u32,
}

/// Four make a Feistel network with good round functions look random from both sides
/// (Luby and Rackoff, 1988).
const ROUNDS: u32 = 4;

impl Permutation {
    /// An order of `places` places, of which there is at least one.
    pub const fn new(places: u64, seed: u32) -> Self {
        let bits = 64 - places.saturating_sub(1).leading_zeros();
        let half_bits = if bits < 2 { 1 } else { bits.div_ceil(2) };
        Self { places, half_bits, seed }
    }

    /// The place that comes at `index`, from 0.
    pub fn place(self, index: u64) -> u64 {
        self.walk(index, |left, right, round| (right, left ^ self.half(right, round)), false)
    }

    /// At which index `place` comes.
    pub fn index(self, place: u64) -> u64 {
        self.walk(place, |left, right, round| (right ^ self.half(left, round), left), true)
    }

    /// The place that comes after `place`; the first one after the last, so that all places are one cycle.
    pub fn after(self, place: u64) -> u64 {
        self.place((self.index(place) + 1) % self.places)
    }

    /// What a round mixes one half with.
    fn half(self, half: u32, round: u32) -> u32 {
        mix(half.wrapping_add(mix(self.seed.wrapping_add(round)))) & (u32::MAX >> (32 - self.half_bits))
    }

    fn walk(self, mut number: u64, step: impl Fn(u32, u32, u32) -> (u32, u32), backwards: bool) -> u64 {
        loop {
            let (mut left, mut right) = ((number >> self.half_bits) as u32, number as u32 & (u32::MAX >> (32 - self.half_bits)));
            for round in 0..ROUNDS {
                (left, right) = step(left, right, if backwards { ROUNDS - 1 - round } else { round });
            }
            number = u64::from(left) << self.half_bits | u64::from(right);
            if number < self.places {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_place_comes_once_and_knows_its_index(places in 1u64..3000, seed: u32) {
            let order = Permutation::new(places, seed);
            let mut seen = vec![false; places as usize];
            for index in 0..places {
                let place = order.place(index);
                prop_assert!(!std::mem::replace(&mut seen[place as usize], true), "{} twice", place);
                prop_assert_eq!(order.index(place), index);
            }
        }

        #[test]
        fn places_beyond_32_bits_are_found_again(base in prop::sample::select(vec![1u64 << 31, 1 << 32, 1 << 40, 1 << 63]), off in 0u64..1000, seed: u32, index: u64) {
            let order = Permutation::new(base + off, seed);
            let index = index % (base + off);
            let place = order.place(index);
            prop_assert!(place < base + off);
            prop_assert_eq!(order.index(place), index);
        }
    }

    #[test]
    fn all_places_are_one_cycle() {
        for places in [1u64, 2, 3, 41, 64, 1000] {
            let order = Permutation::new(places, 7);
            let (mut at, mut steps) = (order.place(0), 0);
            loop {
                at = order.after(at);
                steps += 1;
                assert_eq!(at, order.place(steps % places));
                if at == order.place(0) {
                    break;
                }
            }
            assert_eq!(steps, places);
        }
    }

    #[test]
    fn neighbours_in_the_order_are_no_neighbours_in_memory() {
        let places = 1 << 20;
        let order = Permutation::new(places, 1);
        let distances: Vec<u64> = (0..10_000).map(|i| order.place(i).abs_diff(order.place(i + 1))).collect();
        let mean = distances.iter().sum::<u64>() / 10_000;
        // A third of the places, as of two random ones.
        assert!((mean as f64 / (places as f64 / 3.0) - 1.0).abs() < 0.05, "{mean}");
        assert!(distances.iter().filter(|&&d| d < 64).count() < 20);
        assert_ne!(
            (0..64).map(|i| order.place(i)).collect::<Vec<_>>(),
            (0..64).map(|i| Permutation::new(places, 2).place(i)).collect::<Vec<_>>()
        );
    }
}
