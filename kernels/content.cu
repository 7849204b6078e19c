// targets: compute_70
// Fills buffers before a case runs.
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
