// targets: compute_70
// Fills buffers before a case runs, and fills the caches with other memory.
#include "permutation.cuh"

extern "C" __global__ void fill_words(u32 *out, u64 words, u32 seed, u32 data) {
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        out[i] = data_word(data, seed, i);
    }
}

extern "C" __global__ void fill_f32(float *out, u64 words, u32 seed, u32 data) {
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        out[i] = data_f32(data, seed, i);
    }
}

// Word i is the place of item i in a random order of all of them.
extern "C" __global__ void fill_permutation(u32 *out, u64 words, u32 seed) {
    const Permutation order(words, seed);
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        out[i] = order.place((u32)i);
    }
}

// Reads vectors of 16 bytes. The sum depends on each of them, so that no load is left out;
// it is stored where a word happens to equal it, which changes nothing.
extern "C" __global__ void read_vectors(uint4 *memory, u64 vectors) {
    u32 sum = 0;
    for (u64 i = global_thread(); i < vectors; i += global_threads()) {
        const uint4 v = memory[i];
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == memory[0].x) {
        memory[0].x = sum;
    }
}
