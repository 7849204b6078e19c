// targets: compute_70
// Fills buffers before a case runs.
#include "common.cuh"

extern "C" __global__ void fill_random_words(u32 *out, u64 words, u32 seed) {
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        out[i] = random_word(seed, i);
    }
}

extern "C" __global__ void fill_random_f32(float *out, u64 words, u32 seed) {
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        out[i] = random_f32(seed, i);
    }
}
