// What every kernel shares: fixed-width types, the data that buffers hold, and how
// a check reports. The functions of data match src/pattern/data.rs to the bit.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

// Brackets the loads and stores of a kernel's hot body. The comments survive into
// the PTX, where a test counts what stands between them against what the pattern
// declares; they become no instruction. Loop-invariant loads belong before the
// body: the front end moves no load out of it.
#define BODY_BEGIN asm volatile("// body begin")
#define BODY_END asm volatile("// body end")

// What outputs hold before the checked execution.
const u32 POISON = 0xFFFFDEADu;

__device__ __forceinline__ u32 mix(u32 x) {
    x ^= x >> 16;
    x *= 0x21f0aaadu;
    x ^= x >> 15;
    x *= 0xd35a2d97u;
    return x ^ (x >> 15);
}

// Folds a 64-bit position into 32 bits so that positions 2^32 apart differ.
__device__ __forceinline__ u32 fold(u64 index) {
    return (u32)index ^ ((u32)(index >> 32) * 0x9E3779B9u);
}

__device__ __forceinline__ u32 random_word(u32 seed, u64 index) {
    return mix(fold(index) + mix(seed));
}

// In [-1, 1].
__device__ __forceinline__ float random_f32(u32 seed, u64 index) {
    return __int2float_rn((int)random_word(seed, index)) * (1.0f / 2147483648.0f);
}

// What inputs hold, by the codes of src/pattern/data.rs: 0 random, 1 zero, 2 constant,
// 3 small integers.
__device__ __forceinline__ u32 data_word(u32 data, u32 seed, u64 index) {
    return data == 1 ? 0u : data == 2 ? 0x3FC00000u : random_word(seed, index);
}

__device__ __forceinline__ float data_f32(u32 data, u32 seed, u64 index) {
    switch (data) {
    case 0:
        return random_f32(seed, index);
    case 1:
        return 0.0f;
    case 2:
        return 1.5f;
    default:
        return (float)(random_word(seed, index) % 9u) - 4.0f;
    }
}

__device__ __forceinline__ u32 ramp_word(u32 seed, u64 index) {
    return fold(index) * 0x9E3779B1u + seed;
}

// What a word at a position adds to a read checksum.
__device__ __forceinline__ u64 weighted(u32 word, u64 index) {
    return word * (2u * (u32)index + 1u);
}

// Orders that look random, as in src/pattern/permutation.rs: every place once.
struct Permutation {
    u64 places;
    u32 half_bits;
    u32 seed;
};

__device__ __forceinline__ Permutation permutation(u64 places, u32 seed) {
    const u32 bits = places > 1 ? 64 - __clzll(places - 1) : 0;
    return Permutation{places, bits < 2 ? 1 : (bits + 1) / 2, seed};
}

__device__ __forceinline__ u32 half_mask(const Permutation &p) {
    return 0xFFFFFFFFu >> (32 - p.half_bits);
}

__device__ __forceinline__ u32 mixed_half(const Permutation &p, u32 half, u32 round) {
    return mix(half + mix(p.seed + round)) & half_mask(p);
}

// The place that comes at an index.
__device__ __forceinline__ u64 place_of(const Permutation &p, u64 number) {
    do {
        u32 left = (u32)(number >> p.half_bits), right = (u32)number & half_mask(p);
        for (u32 round = 0; round < 4; round++) {
            const u32 mixed = left ^ mixed_half(p, right, round);
            left = right;
            right = mixed;
        }
        number = (u64)left << p.half_bits | right;
    } while (number >= p.places);
    return number;
}

// At which index a place comes.
__device__ __forceinline__ u64 index_of(const Permutation &p, u64 number) {
    do {
        u32 left = (u32)(number >> p.half_bits), right = (u32)number & half_mask(p);
        for (u32 round = 4; round-- > 0;) {
            const u32 mixed = right ^ mixed_half(p, left, round);
            right = left;
            left = mixed;
        }
        number = (u64)left << p.half_bits | right;
    } while (number >= p.places);
    return number;
}

// How many results were wrong and the lowest wrong index, over all blocks; what was
// expected of all results together less what they are, which must be 0; and how many
// results were compared, so that a check that did not run is no pass.
struct Status {
    u64 mismatches;
    u64 first_bad;
    u64 balance;
    u64 compared;
};

// Compares one result and counts it in the thread's own `compared`.
__device__ __forceinline__ void report(Status *status, u64 *compared, bool wrong, u64 index) {
    *compared += 1;
    if (wrong) {
        atomicAdd(&status->mismatches, 1ull);
        atomicMin(&status->first_bad, index);
    }
}

// Called by every thread when it has nothing left to compare.
__device__ __forceinline__ void finish(Status *status, u64 compared) {
    atomicAdd(&status->compared, compared);
}

__device__ __forceinline__ u64 global_thread() {
    return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ u64 global_threads() {
    return (u64)gridDim.x * blockDim.x;
}

// Sum over a block of 256 threads; valid in thread 0.
__device__ __forceinline__ u64 block_sum(u64 value) {
    __shared__ u64 warp_sums[8];
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        warp_sums[threadIdx.x / 32] = value;
    }
    __syncthreads();
    u64 sum = 0;
    if (threadIdx.x == 0) {
        for (int warp = 0; warp < 8; warp++) {
            sum += warp_sums[warp];
        }
    }
    return sum;
}
