// Reads by a known number of multiprocessors: one block of 1024 threads on each, every warp of
// which takes tiles of its own in turn. src/pattern/reading.rs has the same numbers.
#pragma once
#include "common.cuh"

const u32 READING_BLOCK = 1024;
// Vectors of 16 bytes that a thread has in flight: 128 KiB a multiprocessor. They also take more
// than half of the registers that a multiprocessor has for 1024 threads, so no two blocks fit on one.
const u32 READING_UNROLL = 8;
const u32 TILE_VECTORS = 32 * READING_UNROLL;
const u32 TILE_WORDS = 4 * TILE_VECTORS;

// What a warp leaves: the sum of every word that it read, weighted by its position, and a second
// figure that depends on the kernel.
struct Record {
    u64 sum;
    u64 figure;
};

__device__ __forceinline__ u64 weighted_vector(uint4 v, u64 vector) {
    const u64 word = 4 * vector;
    return weighted(v.x, word) + weighted(v.y, word + 1) + weighted(v.z, word + 2) + weighted(v.w, word + 3);
}

// One warp reads one tile; gives this lane's part of the sum.
__device__ __forceinline__ u64 read_tile(const uint4 *src, u64 tile) {
    const u64 first = tile * TILE_VECTORS + threadIdx.x % 32;
    uint4 v[READING_UNROLL];
    BODY_BEGIN;
#pragma unroll
    for (u32 k = 0; k < READING_UNROLL; k++) {
        v[k] = src[first + k * 32];
    }
    BODY_END;
    u64 sum = 0;
#pragma unroll
    for (u32 k = 0; k < READING_UNROLL; k++) {
        sum += weighted_vector(v[k], first + k * 32);
    }
    return sum;
}

// Sum over a warp; valid in lane 0.
__device__ __forceinline__ u64 warp_sum(u64 value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
    }
    return value;
}

// What the checks of both kernels expect of one warp that read `count` tiles, from tile `first`
// on in steps of `step` and round the array of `tiles`. Word by word, by a block of 256 threads;
// valid in thread 0.
__device__ __forceinline__ u64 expected_sum(u64 first, u64 step, u64 count, u64 tiles, u32 seed, u32 data) {
    u64 sum = 0;
    for (u64 n = 0; n < count; n++) {
        const u64 begin = (first + n * step) % tiles * TILE_WORDS;
        for (u32 word = threadIdx.x; word < TILE_WORDS; word += blockDim.x) {
            sum += weighted(data_word(data, seed, begin + word), begin + word);
        }
    }
    return block_sum(sum);
}
