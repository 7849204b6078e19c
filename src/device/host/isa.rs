//! One source for every vector unit: a kernel is written once against [`Simd`],
//! and [`Isa::run`] compiles it for each instruction set and picks at run time.

use half::f16;

/// The vector operations of one instruction set.
///
/// A value of an implementing type is the proof that the processor has the
/// instructions: only [`Isa::run`] makes one, after detection.
pub(super) trait Simd: Copy {
    /// [`Self::LANES`] single-precision numbers.
    type Vector: Copy;
    /// Running 64-bit sums.
    type Sums: Copy;
    /// Numbers in one vector.
    const LANES: usize;
    /// Whether [`Self::multiply_add`] rounds once.
    const FUSED: bool;
    /// Independent vectors that keep the multiply-add units busy: latency times
    /// units, and some to spare where registers allow.
    const CHAINS: usize;

    /// `x` in every lane.
    fn splat(self, x: f32) -> Self::Vector;
    /// `a * b + c`.
    fn multiply_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// Every lane moved up by one; 0 comes in at the bottom.
    fn shift_up(self, v: Self::Vector) -> Self::Vector;
    /// Every lane moved down by one; 0 comes in at the top.
    fn shift_down(self, v: Self::Vector) -> Self::Vector;
    /// `word` added to every lane, taken as words.
    fn add_word(self, v: Self::Vector, word: u32) -> Self::Vector;
    /// Asks for the cache line at an address, which need not be valid.
    fn prefetch(self, address: *const f32);
    /// Orders the streaming stores before whatever follows.
    fn fence(self);

    /// Sums of nothing.
    fn no_sums(self) -> Self::Sums;
    /// All sums together, modulo 2^64.
    fn total(self, sums: Self::Sums) -> u64;
    /// Adds [`Self::LANES`] products modulo 2^32, of the k-th word and `weight + 2 k`.
    ///
    /// # Safety
    /// [`Self::LANES`] words at `from` are readable.
    unsafe fn add_weighted(self, sums: Self::Sums, from: *const u32, weight: u32) -> Self::Sums;

    /// Reads one vector from any address.
    ///
    /// # Safety
    /// [`Self::LANES`] numbers at `from` are readable.
    unsafe fn load(self, from: *const f32) -> Self::Vector;
    /// Reads one vector of half-precision numbers, whose bits they are, from any address.
    ///
    /// # Safety
    /// [`Self::LANES`] numbers at `from` are readable.
    unsafe fn load_halves(self, from: *const u16) -> Self::Vector;
    /// Writes one vector to any address.
    ///
    /// # Safety
    /// [`Self::LANES`] numbers at `to` are writable.
    unsafe fn store(self, to: *mut f32, v: Self::Vector);
    /// Writes one vector past the caches where the instruction set can: an ordinary store
    /// reads the line first. On two cores of a Sapphire Rapids server that gives a write
    /// 2.5 x, a copy and a triad 1.4 x.
    ///
    /// # Safety
    /// As [`Self::store`], and `to` is a multiple of the vector's size; [`Self::fence`]
    /// comes before another thread reads.
    unsafe fn store_streaming(self, to: *mut f32, v: Self::Vector);
}

/// A piece of work that is compiled once for each instruction set.
pub(super) trait Kernel {
    /// What it gives.
    type Output;
    /// The work. Implementations are `#[inline(always)]`, and so is all they call that uses
    /// `simd`: only code that is inlined into [`Isa::run`]'s entries gets the instructions.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// An instruction set that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Isa(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Isa {
    /// All that this processor has, the widest first.
    pub fn all() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                sets.push(Self(Set::Avx512));
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
                sets.push(Self(Set::Avx2));
            }
        }
        sets.push(Self(Set::Portable));
        sets
    }

    /// The widest.
    pub fn best() -> Self {
        Self::all()[0]
    }

    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512f",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2+fma",
            Set::Portable => "portable",
        }
    }

    /// Whether bulk stores go past the caches.
    pub fn streams(self) -> bool {
        self.0 != Set::Portable
    }

    /// Whether a multiply-add rounds once.
    pub fn fused(self) -> bool {
        self.0 != Set::Portable || Portable::FUSED
    }

    /// Runs `kernel` with this instruction set.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f")]
        fn avx512<K: Kernel>(kernel: K) -> K::Output {
            kernel.run(x86::Avx512(()))
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c")]
        fn avx2<K: Kernel>(kernel: K) -> K::Output {
            kernel.run(x86::Avx2(()))
        }
        match self.0 {
            // SAFETY: this value exists because `all` has found avx512f.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512(kernel) },
            // SAFETY: this value exists because `all` has found avx2, fma and f16c.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2(kernel) },
            Set::Portable => kernel.run(Portable(())),
        }
    }
}

/// What every processor can do. Four lanes are one register of NEON and of SSE2;
/// the compiler makes vectors of the arrays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable(());

#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
pub(super) struct Four([f32; 4]);

impl Simd for Portable {
    type Vector = Four;
    type Sums = [u64; 4];
    const LANES: usize = 4;
    // Elsewhere `mul_add` is a call into the C library, far slower than the two operations.
    const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));
    // Four units of latency 4 (Neoverse V, Apple M) need 16; with 24 registers spill.
    const CHAINS: usize = 16;

    #[inline(always)]
    fn splat(self, x: f32) -> Four {
        Four([x; 4])
    }

    #[inline(always)]
    fn multiply_add(self, a: Four, b: Four, c: Four) -> Four {
        Four(std::array::from_fn(|i| if Self::FUSED { a.0[i].mul_add(b.0[i], c.0[i]) } else { a.0[i] * b.0[i] + c.0[i] }))
    }

    #[inline(always)]
    fn shift_up(self, Four([a, b, c, _]): Four) -> Four {
        Four([0.0, a, b, c])
    }

    #[inline(always)]
    fn shift_down(self, Four([_, b, c, d]): Four) -> Four {
        Four([b, c, d, 0.0])
    }

    #[inline(always)]
    fn add_word(self, v: Four, word: u32) -> Four {
        Four(v.0.map(|x| f32::from_bits(x.to_bits().wrapping_add(word))))
    }

    #[inline(always)]
    fn prefetch(self, _address: *const f32) {}

    #[inline(always)]
    fn fence(self) {}

    #[inline(always)]
    fn no_sums(self) -> [u64; 4] {
        [0; 4]
    }

    #[inline(always)]
    fn total(self, sums: [u64; 4]) -> u64 {
        sums.into_iter().fold(0, u64::wrapping_add)
    }

    #[inline(always)]
    unsafe fn add_weighted(self, sums: [u64; 4], from: *const u32, weight: u32) -> [u64; 4] {
        // SAFETY: the caller vouches for four readable words.
        let words = unsafe { from.cast::<[u32; 4]>().read_unaligned() };
        std::array::from_fn(|k| sums[k].wrapping_add(u64::from(words[k].wrapping_mul(weight.wrapping_add(2 * k as u32)))))
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Four {
        // SAFETY: the caller vouches for four readable numbers.
        Four(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_halves(self, from: *const u16) -> Four {
        // SAFETY: the caller vouches for four readable numbers.
        let bits = unsafe { from.cast::<[u16; 4]>().read_unaligned() };
        Four(bits.map(|bits| f16::from_bits(bits).to_f32()))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: Four) {
        // SAFETY: the caller vouches for four writable numbers.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(v.0) }
    }

    #[inline(always)]
    unsafe fn store_streaming(self, to: *mut f32, v: Four) {
        // SAFETY: the caller vouches for more than an ordinary store needs.
        unsafe { self.store(to, v) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Simd;
    use std::arch::x86_64::*;

    /// 512 bits; the field keeps others from making one.
    #[derive(Debug, Clone, Copy)]
    pub struct Avx512(pub(super) ());

    /// 256 bits with fused multiply-add; the field keeps others from making one.
    #[derive(Debug, Clone, Copy)]
    pub struct Avx2(pub(super) ());

    // "See above" in the SAFETY notes: a value of the type is the proof that the processor
    // has the instruction, and for addresses the caller vouches.
    macro_rules! simd {
        (
            $name:ident, $vector:ty, $splat:ident, $fma:ident, $load:ident, $store:ident, $stream:ident, $halves:expr, $up:expr, $down:expr;
            $sums:ty, $load_words:ident, $splat_words:ident, $add_words:ident, $high:ident, $and:ident, $multiply:ident, $add_sums:ident, $to_words:ident, $from_words:ident
        ) => {
            impl Simd for $name {
                type Vector = $vector;
                type Sums = $sums;
                const LANES: usize = size_of::<$vector>() / 4;
                const FUSED: bool = true;
                // Two units of latency 4 (Intel since Skylake, Zen 2 on) need 8; 12 fit the
                // 16 registers of AVX2 beside two constants.
                const CHAINS: usize = 12;

                #[inline(always)]
                fn splat(self, x: f32) -> $vector {
                    // SAFETY: see above.
                    unsafe { $splat(x) }
                }

                #[inline(always)]
                fn multiply_add(self, a: $vector, b: $vector, c: $vector) -> $vector {
                    // SAFETY: see above.
                    unsafe { $fma(a, b, c) }
                }

                #[inline(always)]
                fn shift_up(self, v: $vector) -> $vector {
                    // SAFETY: see above.
                    unsafe { $up(v) }
                }

                #[inline(always)]
                fn shift_down(self, v: $vector) -> $vector {
                    // SAFETY: see above.
                    unsafe { $down(v) }
                }

                #[inline(always)]
                fn add_word(self, v: $vector, word: u32) -> $vector {
                    // SAFETY: see above.
                    unsafe { $from_words($add_words($to_words(v), $splat_words(word as i32))) }
                }

                #[inline(always)]
                fn prefetch(self, address: *const f32) {
                    // SAFETY: a prefetch never faults.
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
                }

                #[inline(always)]
                fn fence(self) {
                    // SAFETY: SSE is part of x86-64.
                    unsafe { _mm_sfence() }
                }

                #[inline(always)]
                fn no_sums(self) -> $sums {
                    // SAFETY: see above.
                    unsafe { $splat_words(0) }
                }

                #[inline(always)]
                fn total(self, sums: $sums) -> u64 {
                    // SAFETY: both are the same plain bits.
                    let sums: [u64; size_of::<$sums>() / 8] = unsafe { std::mem::transmute(sums) };
                    sums.into_iter().fold(0, u64::wrapping_add)
                }

                #[inline(always)]
                unsafe fn add_weighted(self, sums: $sums, from: *const u32, weight: u32) -> $sums {
                    const STEPS: [u32; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];
                    const LOWER: [u32; 16] =
                        [u32::MAX, 0, u32::MAX, 0, u32::MAX, 0, u32::MAX, 0, u32::MAX, 0, u32::MAX, 0, u32::MAX, 0, u32::MAX, 0];
                    // The sums take the lower product of each pair as it is and the upper one moved down.
                    // SAFETY: see above.
                    unsafe {
                        let weights = $add_words($splat_words(weight as i32), $load_words(STEPS.as_ptr().cast()));
                        let products = $multiply($load_words(from.cast()), weights);
                        let sums = $add_sums(sums, $and(products, $load_words(LOWER.as_ptr().cast())));
                        $add_sums(sums, $high::<32>(products))
                    }
                }

                #[inline(always)]
                unsafe fn load(self, from: *const f32) -> $vector {
                    // SAFETY: see above.
                    unsafe { $load(from) }
                }

                #[inline(always)]
                unsafe fn load_halves(self, from: *const u16) -> $vector {
                    // SAFETY: see above.
                    unsafe { $halves(from.cast()) }
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut f32, v: $vector) {
                    // SAFETY: see above.
                    unsafe { $store(to, v) }
                }

                #[inline(always)]
                unsafe fn store_streaming(self, to: *mut f32, v: $vector) {
                    // SAFETY: see above.
                    unsafe { $stream(to, v) }
                }
            }
        };
    }

    simd!(
        Avx512,
        __m512,
        _mm512_set1_ps,
        _mm512_fmadd_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_stream_ps,
        |from| _mm512_cvtph_ps(_mm256_loadu_si256(from)),
        |v| _mm512_castsi512_ps(_mm512_alignr_epi32::<15>(_mm512_castps_si512(v), _mm512_setzero_si512())),
        |v| _mm512_castsi512_ps(_mm512_alignr_epi32::<1>(_mm512_setzero_si512(), _mm512_castps_si512(v)));
        __m512i,
        _mm512_loadu_si512,
        _mm512_set1_epi32,
        _mm512_add_epi32,
        _mm512_srli_epi64,
        _mm512_and_si512,
        _mm512_mullo_epi32,
        _mm512_add_epi64,
        _mm512_castps_si512,
        _mm512_castsi512_ps
    );

    simd!(
        Avx2,
        __m256,
        _mm256_set1_ps,
        _mm256_fmadd_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_stream_ps,
        |from| _mm256_cvtph_ps(_mm_loadu_si128(from)),
        |v| _mm256_blend_ps::<1>(_mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 0, 1, 2, 3, 4, 5, 6)), _mm256_setzero_ps()),
        |v| _mm256_blend_ps::<128>(_mm256_permutevar8x32_ps(v, _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 7)), _mm256_setzero_ps());
        __m256i,
        _mm256_loadu_si256,
        _mm256_set1_epi32,
        _mm256_add_epi32,
        _mm256_srli_epi64,
        _mm256_and_si256,
        _mm256_mullo_epi32,
        _mm256_add_epi64,
        _mm256_castps_si256,
        _mm256_castsi256_ps
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shifts([f32; 16]);

    impl Kernel for Shifts {
        type Output = (Vec<f32>, Vec<f32>);

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let (mut up, mut down) = ([0.0; 16], [0.0; 16]);
            // SAFETY: no instruction set has more than 16 lanes.
            unsafe {
                let v = simd.load(self.0.as_ptr());
                simd.store(up.as_mut_ptr(), simd.shift_up(v));
                simd.store(down.as_mut_ptr(), simd.shift_down(v));
            }
            (up[..S::LANES].to_vec(), down[..S::LANES].to_vec())
        }
    }

    #[test]
    fn a_shift_moves_each_lane_by_one_and_brings_in_a_zero() {
        for isa in Isa::all() {
            let (up, down) = isa.run(Shifts(std::array::from_fn(|i| i as f32 + 1.0)));
            let n = up.len();
            let expected: Vec<f32> = (0..n).map(|i| i as f32).collect();
            assert_eq!(up, expected, "{}", isa.name());
            let expected: Vec<f32> = (2..=n).map(|i| i as f32).chain([0.0]).collect();
            assert_eq!(down, expected, "{}", isa.name());
        }
    }

    #[test]
    fn every_processor_has_at_least_the_portable_set() {
        assert_eq!(Isa::all().last().unwrap().name(), "portable");
        assert_eq!(Isa::best(), Isa::all()[0]);
    }
}
