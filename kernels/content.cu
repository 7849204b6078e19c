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

// Word i is the place that comes at index i in a random order of as many places.
extern "C" __global__ void fill_permutation(u32 *out, u64 words, u32 seed) {
    const Permutation order = permutation(words, seed);
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        out[i] = (u32)place_of(order, i);
    }
}

// One cycle through all lines of 128 bytes: each begins with the address of the next, and
// the rest of it is words as above.
extern "C" __global__ void fill_cycle(u32 *out, u64 words, u32 seed, u32 data) {
    const u32 LINE_WORDS = 32;
    const Permutation order = permutation(words / LINE_WORDS, seed);
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        const u64 line = i / LINE_WORDS;
        const u32 word = (u32)(i % LINE_WORDS);
        if (word < 2) {
            u64 next = index_of(order, line) + 1;
            next = (u64)out + place_of(order, next == order.places ? 0 : next) * LINE_WORDS * 4;
            out[i] = (u32)(next >> 32 * word);
        } else {
            out[i] = data_word(data, seed, i);
        }
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
