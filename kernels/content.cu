// targets: compute_70
// Fills buffers before a case runs, and fills the caches with other memory.
#include "common.cuh"

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

extern "C" __global__ void fill_f64(double *out, u64 words, u32 seed, u32 data) {
    for (u64 i = global_thread(); i < words / 2; i += global_threads()) {
        out[i] = data_f64(data, seed, i);
    }
}

// Two numbers a word, the first in its low half.
extern "C" __global__ void fill_f16(u32 *out, u64 words, u32 seed, u32 data) {
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        out[i] = data_f16(data, seed, 2 * i) | (u32)data_f16(data, seed, 2 * i + 1) << 16;
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
