// What every kernel shares: fixed-width types, the data that buffers hold, and how
// a check reports. The functions of data match src/pattern/data.rs to the bit.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
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

// In [-1, 1), from the upper 53 bits of two random words.
__device__ __forceinline__ double random_f64(u32 seed, u64 index) {
    const u64 bits = (u64)random_word(seed, 2 * index) << 32 | random_word(seed, 2 * index + 1);
    return (double)((s64)bits >> 11) * (1.0 / 4503599627370496.0);
}

__device__ __forceinline__ double data_f64(u32 data, u32 seed, u64 index) {
    return data == 0 ? random_f64(seed, index) : (double)data_f32(data, seed, index);
}

// A half-precision number is kept as its bits: NVRTC brings no type for it.
__device__ __forceinline__ u16 f16_of(float x) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

__device__ __forceinline__ float f32_of(u16 bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

__device__ __forceinline__ u16 data_f16(u32 data, u32 seed, u64 index) {
    return f16_of(data_f32(data, seed, index));
}

__device__ __forceinline__ u32 ramp_word(u32 seed, u64 index) {
    return fold(index) * 0x9E3779B1u + seed;
}

// What a word at a position adds to a read checksum.
__device__ __forceinline__ u64 weighted(u32 word, u64 index) {
    return word * (2u * (u32)index + 1u);
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

// Sum over a block of whole warps; valid in thread 0.
template <class T> __device__ __forceinline__ T block_sum(T value) {
    __shared__ T warp_sums[32];
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        warp_sums[threadIdx.x / 32] = value;
    }
    __syncthreads();
    T sum = 0;
    if (threadIdx.x == 0) {
        for (u32 warp = 0; warp < blockDim.x / 32; warp++) {
            sum += warp_sums[warp];
        }
    }
    return sum;
}
