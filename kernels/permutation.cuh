// A random order of any number of items, as src/pattern/permutation.rs has it to the bit.
#pragma once
#include "common.cuh"

struct Permutation {
    u64 items;
    u32 mask;
    u32 half;
    u32 seed;

    // 1 to 2^32 items.
    __device__ __forceinline__ Permutation(u64 items, u32 seed) : items(items), seed(seed) {
        const u32 bits = items > 2 ? 64 - __clzll(items - 1) : 1;
        mask = 0xFFFFFFFFu >> (32 - bits);
        half = (bits + 1) / 2;
    }

    __device__ __forceinline__ u32 place(u32 item) const {
        u32 x = item;
        do {
            x = mixed(x);
        } while (x >= items);
        return x;
    }

  private:
    __device__ __forceinline__ u32 mixed(u32 x) const {
        x = folded((x + seed) & mask);
        x = folded((x * 0x9E3779B1u) & mask);
        x = folded((x * 0x21f0aaadu) & mask);
        x = folded((x * 0xd35a2d97u) & mask);
        return folded((x * 0x85ebca6bu) & mask);
    }

    __device__ __forceinline__ u32 folded(u32 x) const {
        return x ^ (x >> half);
    }
};
