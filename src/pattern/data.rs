//! What buffers hold and what results are expected: functions of a seed and a
//! position, the same in `kernels/common.cuh`, so that every element can be checked
//! without keeping a copy.

use half::f16;

/// Fills outputs before the checked execution: a NaN as a float, and a word that
/// no expected value of a small test equals by chance.
pub const POISON: u32 = 0xFFFF_DEAD;

/// The multiplier of the triad, exact in every type.
pub const TRIAD_SCALAR: f32 = 3.0;

/// A bijective mixing of 32 bits (the constants are those found by C. Wellons's
/// hash prospector for the lowest bias: `16 21f0aaad 15 d35a2d97 15`).
#[inline(always)]
pub const fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x21f0_aaad);
    x ^= x >> 15;
    x = x.wrapping_mul(0xd35a_2d97);
    x ^ (x >> 15)
}

/// Folds a 64-bit position into 32 bits so that positions 2^32 apart differ.
#[inline(always)]
const fn fold(index: u64) -> u32 {
    (index as u32) ^ ((index >> 32) as u32).wrapping_mul(0x9E37_79B9)
}

/// What inputs hold. The hardware may serve some contents faster than others: memory that
/// compresses, data lines that toggle less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, clap::ValueEnum, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Data {
    /// A hash of the position: nothing to compress.
    #[default]
    Random,
    /// Zeros.
    Zero,
    /// One number everywhere.
    Constant,
    /// Whole numbers from -4 to 4: every sum and product of a pattern is exact in its type,
    /// so results are compared with no tolerance. For verification.
    #[value(skip)]
    SmallIntegers,
}

/// What [`Data::Constant`] repeats: 1.5 as a number, and as a word the bits of it.
const CONSTANT: f32 = 1.5;

impl Data {
    /// The number that kernels know it by; see `kernels/common.cuh`.
    pub const fn code(self) -> u32 {
        match self {
            Self::Random => 0,
            Self::Zero => 1,
            Self::Constant => 2,
            Self::SmallIntegers => 3,
        }
    }

    /// How far results may lie from their reference that may lie `rounded` from it where
    /// they are rounded.
    pub const fn tolerance(self, rounded: f32) -> f32 {
        match self {
            Self::SmallIntegers => 0.0,
            Self::Random | Self::Zero | Self::Constant => rounded,
        }
    }

    /// Word `index` of the sequence `seed`. Words are compared to the bit whatever they
    /// hold, so [`Self::SmallIntegers`] needs nothing else than [`Self::Random`].
    #[inline(always)]
    pub const fn word(self, seed: u32, index: u64) -> u32 {
        match self {
            Self::Random | Self::SmallIntegers => random_word(seed, index),
            Self::Zero => 0,
            Self::Constant => CONSTANT.to_bits(),
        }
    }

    /// Single-precision number `index` of the sequence `seed`.
    #[inline(always)]
    pub const fn number(self, seed: u32, index: u64) -> f32 {
        match self {
            Self::Random => random_f32(seed, index),
            Self::Zero => 0.0,
            Self::Constant => CONSTANT,
            Self::SmallIntegers => (random_word(seed, index) % 9) as f32 - 4.0,
        }
    }

    /// Double-precision number `index` of the sequence `seed`; of the same values as [`Self::number`] but for random ones.
    #[inline(always)]
    pub const fn double(self, seed: u32, index: u64) -> f64 {
        match self {
            Self::Random => random_f64(seed, index),
            Self::Zero | Self::Constant | Self::SmallIntegers => self.number(seed, index) as f64,
        }
    }

    /// Half-precision number `index` of the sequence `seed`: [`Self::number`] rounded to the
    /// nearest, to even where two are as near. Zeros, the constant and small integers are exact.
    #[inline(always)]
    pub fn half(self, seed: u32, index: u64) -> f16 {
        f16::from_f32(self.number(seed, index))
    }

    /// Two of them in a word: numbers `2 pair`, in the low half, and `2 pair + 1`.
    #[inline(always)]
    pub fn halves(self, seed: u32, pair: u64) -> u32 {
        let bits = |index| u32::from(self.half(seed, index).to_bits());
        bits(2 * pair) | bits(2 * pair + 1) << 16
    }
}

impl std::fmt::Display for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Random => "random",
            Self::Zero => "zero",
            Self::Constant => "constant",
            Self::SmallIntegers => "small-integers",
        })
    }
}

/// Random data: word `index` of the sequence `seed`. The seed is mixed and added, so
/// that two sequences are not each other's words in another order.
#[inline(always)]
pub const fn random_word(seed: u32, index: u64) -> u32 {
    mix(fold(index).wrapping_add(mix(seed)))
}

/// Random single-precision data in [-1, 1].
#[inline(always)]
pub const fn random_f32(seed: u32, index: u64) -> f32 {
    (random_word(seed, index) as i32) as f32 * (1.0 / 2_147_483_648.0)
}

/// Random double-precision data in [-1, 1): the upper 53 bits of two random words.
#[inline(always)]
pub const fn random_f64(seed: u32, index: u64) -> f64 {
    let high = random_word(seed, index.wrapping_mul(2)) as u64;
    let low = random_word(seed, index.wrapping_mul(2).wrapping_add(1)) as u64;
    ((high << 32 | low).cast_signed() >> 11) as f64 * (1.0 / 4_503_599_627_370_496.0)
}

/// What a pure write stores at word `index`: one multiply-add, so that making the
/// data costs less than storing it, yet every position differs from its neighbours.
#[inline(always)]
pub const fn ramp_word(seed: u32, index: u64) -> u32 {
    fold(index).wrapping_mul(0x9E37_79B1).wrapping_add(seed)
}

/// What word `word` at position `index` adds to a 64-bit read checksum. The odd weight
/// makes the sum depend on where each word was read, a single wrong word always changes
/// it, and a sum modulo 2^64 does not depend on the order in which threads read them.
/// The product is taken modulo 2^32: a GPU then keeps more loads in flight (see METHOD.md).
#[inline(always)]
pub const fn weighted(word: u32, index: u64) -> u64 {
    word.wrapping_mul((index as u32).wrapping_mul(2).wrapping_add(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_differ_between_positions_more_than_four_gi_elements_apart() {
        for index in [0u64, 1, 12_345, u32::MAX as u64] {
            assert_ne!(random_word(1, index), random_word(1, index + (1 << 32)));
            assert_ne!(ramp_word(1, index), ramp_word(1, index + (1 << 32)));
        }
    }

    #[test]
    fn random_numbers_stay_in_range_and_are_never_nan() {
        for index in 0..100_000 {
            let x = random_f32(7, index);
            assert!((-1.0..=1.0).contains(&x), "{x} at {index}");
        }
    }

    #[test]
    fn small_integers_are_whole_and_take_every_value() {
        let mut seen = std::collections::BTreeSet::new();
        for index in 0..10_000 {
            let x = Data::SmallIntegers.number(3, index);
            assert!(x.fract() == 0.0 && x.abs() <= 4.0, "{x}");
            seen.insert(x as i32);
        }
        assert_eq!(seen.len(), 9);
    }

    #[test]
    fn half_precision_numbers_are_the_nearest_and_two_fill_a_word() {
        for index in 0..100_000 {
            let (exact, half) = (f64::from(random_f32(7, index)), Data::Random.half(7, index));
            let away = |bits: u16| (f64::from(f16::from_bits(bits)) - exact).abs();
            let bits = half.to_bits();
            assert!(away(bits) <= away(bits + 1) && (half == f16::ZERO || away(bits) <= away(bits - 1)), "{exact} as {half}");
        }
        for data in [Data::Zero, Data::Constant, Data::SmallIntegers] {
            assert!((0..1000).all(|index| data.half(3, index).to_f32() == data.number(3, index)), "{data}");
        }
        let (low, high) = (Data::Random.half(7, 10).to_bits(), Data::Random.half(7, 11).to_bits());
        assert_eq!(Data::Random.halves(7, 5), u32::from(high) << 16 | u32::from(low));
    }

    #[test]
    fn two_seeds_share_no_words_at_nearby_positions() {
        let b: std::collections::HashSet<u32> = (0..4096).map(|i| random_word(0x5EED_000B, i)).collect();
        let common = (0..4096).filter(|&i| b.contains(&random_word(0x5EED_000C, i))).count();
        assert!(common < 10, "{common} of 4096 words are the same");
    }

    #[test]
    fn a_checksum_sees_two_words_that_changed_places() {
        let (a, b) = (random_word(1, 10), random_word(1, 11));
        let right = weighted(a, 10).wrapping_add(weighted(b, 11));
        let swapped = weighted(b, 10).wrapping_add(weighted(a, 11));
        assert_ne!(right, swapped);
    }
}
