// targets: compute_70
// The results of contiguous passes, word by word or element by element: none of the index arithmetic
// of the passes.
#include "common.cuh"

// Launched with the grid of the pass: block b is answerable for every word of the tiles b, b + grid, ...
// of `tile_words`, and the last block for the words past the last whole vector of `vector_words`.
extern "C" __global__ void __launch_bounds__(256) check_stream_read(const u64 *sums, u64 words, u64 tile_words, u64 vector_words, u32 seed, u32 data,
                                                                    Status *status) {
    const u64 whole = words / vector_words * vector_words;
    u64 expected = 0;
    for (u64 tile = blockIdx.x; tile * tile_words < whole; tile += gridDim.x) {
        const u64 end = min(whole, (tile + 1) * tile_words);
        for (u64 i = tile * tile_words + threadIdx.x; i < end; i += blockDim.x) {
            expected += weighted(data_word(data, seed, i), i);
        }
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
        for (u64 i = whole; i < words; i++) {
            expected += weighted(data_word(data, seed, i), i);
        }
    }
    expected = block_sum(expected);
    u64 compared = 0;
    if (threadIdx.x == 0) {
        report(status, &compared, sums[blockIdx.x] != expected, blockIdx.x);
    }
    // All sums together, against every word once in plain order: no tiles, no blocks.
    u64 balance = 0;
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        balance += weighted(data_word(data, seed, i), i);
    }
    if (threadIdx.x == 0) {
        balance -= sums[blockIdx.x];
    }
    atomicAdd(&status->balance, balance);
    finish(status, compared);
}

extern "C" __global__ void check_stream_write(const u32 *dst, u64 words, u32 seed, Status *status) {
    u64 compared = 0;
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        report(status, &compared, dst[i] != ramp_word(seed, i), i);
    }
    finish(status, compared);
}

extern "C" __global__ void check_words(const u32 *dst, u64 words, u32 seed, u32 data, Status *status) {
    u64 compared = 0;
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        report(status, &compared, dst[i] != data_word(data, seed, i), i);
    }
    finish(status, compared);
}

// Element types: their elements in words, what their inputs hold, and half of their least step above
// zero, which rounding may cost a result however small.
struct F32 {
    typedef float Element;
    static __device__ __forceinline__ double value(float x) { return x; }
    static __device__ __forceinline__ double input(u32 data, u32 seed, u64 i) { return data_f32(data, seed, i); }
    static __device__ __forceinline__ double least() { return 0.0; }
};

struct F64 {
    typedef double Element;
    static __device__ __forceinline__ double value(double x) { return x; }
    static __device__ __forceinline__ double input(u32 data, u32 seed, u64 i) { return data_f64(data, seed, i); }
    static __device__ __forceinline__ double least() { return 0.0; }
};

struct F16 {
    typedef u16 Element;
    static __device__ __forceinline__ double value(u16 x) { return f32_of(x); }
    static __device__ __forceinline__ double input(u32 data, u32 seed, u64 i) { return f32_of(data_f16(data, seed, i)); }
    static __device__ __forceinline__ double least() { return 1.0 / 33554432.0; }
};

// a = b_factor b + c_factor c, in f64; `tolerance` is of the sum of both terms' magnitudes.
template <class T>
__device__ __forceinline__ void check_sum(const typename T::Element *a, u64 words, u32 seed_b, double b_factor, u32 seed_c, double c_factor, u32 data,
                                          float tolerance, Status *status) {
    u64 compared = 0;
    for (u64 i = global_thread(); i < words * 4 / sizeof(a[0]); i += global_threads()) {
        const double b = b_factor * T::input(data, seed_b, i);
        const double c = c_factor == 0.0 ? 0.0 : c_factor * T::input(data, seed_c, i);
        // Written so that a NaN fails.
        report(status, &compared, !(fabs(T::value(a[i]) - (b + c)) <= tolerance * (fabs(b) + fabs(c)) + T::least()), i);
    }
    finish(status, compared);
}

// The sum of each block's products, in f64; blocks and tiles as in `check_stream_read`. `tolerance` is of the
// sum of the products' magnitudes. Where it is 0, products and sums are integers, and all sums together are
// compared with all products in plain order as well.
template <class T>
__device__ __forceinline__ void check_dot(const double *sums, u64 words, u64 tile_words, u64 vector_words, u32 seed_b, u32 seed_c, u32 data, float tolerance,
                                          Status *status) {
    const u64 each = sizeof(typename T::Element);
    const u64 elements = words * 4 / each, tile_elements = tile_words * 4 / each, vector_elements = vector_words * 4 / each;
    const u64 whole = elements / vector_elements * vector_elements;
    double expected = 0.0, magnitude = 0.0;
    for (u64 tile = blockIdx.x; tile * tile_elements < whole; tile += gridDim.x) {
        const u64 end = min(whole, (tile + 1) * tile_elements);
        for (u64 i = tile * tile_elements + threadIdx.x; i < end; i += blockDim.x) {
            const double product = T::input(data, seed_b, i) * T::input(data, seed_c, i);
            expected += product;
            magnitude += fabs(product);
        }
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
        for (u64 i = whole; i < elements; i++) {
            const double product = T::input(data, seed_b, i) * T::input(data, seed_c, i);
            expected += product;
            magnitude += fabs(product);
        }
    }
    expected = block_sum(expected);
    __syncthreads();
    magnitude = block_sum(magnitude);
    u64 compared = 0;
    if (threadIdx.x == 0) {
        report(status, &compared, !(fabs(sums[blockIdx.x] - expected) <= tolerance * magnitude), blockIdx.x);
    }
    if (tolerance == 0.0f) {
        s64 balance = 0;
        for (u64 i = global_thread(); i < elements; i += global_threads()) {
            balance += (s64)(T::input(data, seed_b, i) * T::input(data, seed_c, i));
        }
        if (threadIdx.x == 0) {
            balance -= (s64)sums[blockIdx.x];
        }
        atomicAdd(&status->balance, (u64)balance);
    }
    finish(status, compared);
}

#define CHECKS(NAME, T)                                                                                                                                       \
    extern "C" __global__ void check_scale_##NAME(const T::Element *a, u64 words, u32 seed, float s, u32 data, float tolerance, Status *status) {             \
        check_sum<T>(a, words, seed, s, 0, 0.0, data, tolerance, status);                                                                                     \
    }                                                                                                                                                         \
    extern "C" __global__ void check_add_##NAME(const T::Element *a, u64 words, u32 seed_b, u32 seed_c, u32 data, float tolerance, Status *status) {          \
        check_sum<T>(a, words, seed_b, 1.0, seed_c, 1.0, data, tolerance, status);                                                                            \
    }                                                                                                                                                         \
    extern "C" __global__ void check_triad_##NAME(const T::Element *a, u64 words, u32 seed_b, u32 seed_c, float s, u32 data, float tolerance,                 \
                                                  Status *status) {                                                                                           \
        check_sum<T>(a, words, seed_b, 1.0, seed_c, s, data, tolerance, status);                                                                              \
    }                                                                                                                                                         \
    extern "C" __global__ void __launch_bounds__(256) check_dot_##NAME(const double *sums, u64 words, u64 tile_words, u64 vector_words, u32 seed_b, u32 seed_c, \
                                                                       u32 data, float tolerance, Status *status) {                                           \
        check_dot<T>(sums, words, tile_words, vector_words, seed_b, seed_c, data, tolerance, status);                                                         \
    }

CHECKS(f32, F32)
CHECKS(f64, F64)
CHECKS(f16, F16)
