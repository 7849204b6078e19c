// One pass over arrays, in every form that the tuner may try: the width of a vector, the vectors
// that a thread has in flight and the cache hint are compiled in; how many threads a block has and
// how many blocks there are is up to the launch. Each kernels/stream_<operation>.cu makes the
// kernels of one operation on one type of element; src/pattern/stream/form.rs lists them.
#pragma once
#include "common.cuh"

// Words of 32 bits that one access moves.
template <u32 BYTES> struct Vector {
    u32 word[BYTES / 4];
};

// Data that are used once (`cs`) are the first to leave the caches.
template <u32 BYTES, bool ONCE> __device__ __forceinline__ Vector<BYTES> load(const u32 *array, u64 vector) {
    const u32 *from = array + vector * (BYTES / 4);
    Vector<BYTES> v;
    if constexpr (BYTES == 4) {
        if constexpr (ONCE) {
            asm volatile("ld.global.cs.u32 %0, [%1];" : "=r"(v.word[0]) : "l"(from));
        } else {
            asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v.word[0]) : "l"(from));
        }
    } else if constexpr (BYTES == 8) {
        if constexpr (ONCE) {
            asm volatile("ld.global.cs.v2.u32 {%0, %1}, [%2];" : "=r"(v.word[0]), "=r"(v.word[1]) : "l"(from));
        } else {
            asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(v.word[0]), "=r"(v.word[1]) : "l"(from));
        }
    } else {
        if constexpr (ONCE) {
            asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3]) : "l"(from));
        } else {
            asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3]) : "l"(from));
        }
    }
    return v;
}

template <u32 BYTES, bool ONCE> __device__ __forceinline__ void store(u32 *array, u64 vector, Vector<BYTES> v) {
    u32 *to = array + vector * (BYTES / 4);
    if constexpr (BYTES == 4) {
        if constexpr (ONCE) {
            asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(to), "r"(v.word[0]) : "memory");
        } else {
            asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(v.word[0]) : "memory");
        }
    } else if constexpr (BYTES == 8) {
        if constexpr (ONCE) {
            asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(v.word[0]), "r"(v.word[1]) : "memory");
        } else {
            asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(v.word[0]), "r"(v.word[1]) : "memory");
        }
    } else {
        if constexpr (ONCE) {
            asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3]) : "memory");
        } else {
            asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3]) : "memory");
        }
    }
}

// Element types. Each says how many words an element has (of f16, a pair), what b, c and the
// scalar make in one operation with one rounding, and what a product adds to a sum.
struct F32 {
    static const u32 WORDS = 1;
    typedef float Sum;
    typedef float Scalar;
    static __device__ __forceinline__ Scalar scalar(float s) { return s; }
    static __device__ __forceinline__ void scale(u32 *a, const u32 *b, Scalar s) { *a = __float_as_uint(s * __uint_as_float(*b)); }
    static __device__ __forceinline__ void add(u32 *a, const u32 *b, const u32 *c) { *a = __float_as_uint(__uint_as_float(*b) + __uint_as_float(*c)); }
    static __device__ __forceinline__ void triad(u32 *a, const u32 *b, const u32 *c, Scalar s) {
        *a = __float_as_uint(fmaf(s, __uint_as_float(*c), __uint_as_float(*b)));
    }
    static __device__ __forceinline__ Sum dot(Sum sum, const u32 *b, const u32 *c) { return fmaf(__uint_as_float(*b), __uint_as_float(*c), sum); }
};

struct F64 {
    static const u32 WORDS = 2;
    typedef double Sum;
    typedef double Scalar;
    static __device__ __forceinline__ double number(const u32 *w) { return __hiloint2double((int)w[1], (int)w[0]); }
    static __device__ __forceinline__ void put(u32 *a, double x) {
        a[0] = (u32)__double2loint(x);
        a[1] = (u32)__double2hiint(x);
    }
    static __device__ __forceinline__ Scalar scalar(float s) { return s; }
    static __device__ __forceinline__ void scale(u32 *a, const u32 *b, Scalar s) { put(a, s * number(b)); }
    static __device__ __forceinline__ void add(u32 *a, const u32 *b, const u32 *c) { put(a, number(b) + number(c)); }
    static __device__ __forceinline__ void triad(u32 *a, const u32 *b, const u32 *c, Scalar s) { put(a, fma(s, number(c), number(b))); }
    static __device__ __forceinline__ Sum dot(Sum sum, const u32 *b, const u32 *c) { return fma(number(b), number(c), sum); }
};

struct F16 {
    static const u32 WORDS = 1;
    typedef float Sum;
    typedef u32 Scalar;
    static __device__ __forceinline__ Scalar scalar(float s) {
        u32 both;
        asm("{ .reg .f16 h; cvt.rn.f16.f32 h, %1; mov.b32 %0, {h, h}; }" : "=r"(both) : "f"(s));
        return both;
    }
    static __device__ __forceinline__ void scale(u32 *a, const u32 *b, Scalar s) { asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(*a) : "r"(*b), "r"(s)); }
    static __device__ __forceinline__ void add(u32 *a, const u32 *b, const u32 *c) { asm("add.rn.f16x2 %0, %1, %2;" : "=r"(*a) : "r"(*b), "r"(*c)); }
    static __device__ __forceinline__ void triad(u32 *a, const u32 *b, const u32 *c, Scalar s) {
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(*a) : "r"(s), "r"(*c), "r"(*b));
    }
    static __device__ __forceinline__ Sum dot(Sum sum, const u32 *b, const u32 *c) {
        float b0, b1, c0, c1;
        asm("{ .reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }" : "=f"(b0), "=f"(b1) : "r"(*b));
        asm("{ .reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }" : "=f"(c0), "=f"(c1) : "r"(*c));
        return fmaf(b1, c1, fmaf(b0, c0, sum));
    }
};

// Operations: how many arrays they load (b, then c), whether they store a, and what they make of one
// element, the first word of which has the index `word`.
template <class T> struct Read {
    static const u32 LOADS = 1;
    static const bool STORES = false;
    typedef u64 Sum;
    static __device__ __forceinline__ Sum sum(Sum sum, const u32 *b, const u32 *, u64 word) { return sum + weighted(*b, word); }
};

template <class T> struct Write {
    static const u32 LOADS = 0;
    static const bool STORES = true;
    static __device__ __forceinline__ void element(u32 *a, const u32 *, const u32 *, typename T::Scalar, u32 seed, u64 word) { *a = ramp_word(seed, word); }
};

template <class T> struct Copy {
    static const u32 LOADS = 1;
    static const bool STORES = true;
    static __device__ __forceinline__ void element(u32 *a, const u32 *b, const u32 *, typename T::Scalar, u32, u64) { *a = *b; }
};

template <class T> struct Scale {
    static const u32 LOADS = 1;
    static const bool STORES = true;
    static __device__ __forceinline__ void element(u32 *a, const u32 *b, const u32 *, typename T::Scalar s, u32, u64) { T::scale(a, b, s); }
};

template <class T> struct Add {
    static const u32 LOADS = 2;
    static const bool STORES = true;
    static __device__ __forceinline__ void element(u32 *a, const u32 *b, const u32 *c, typename T::Scalar, u32, u64) { T::add(a, b, c); }
};

template <class T> struct Triad {
    static const u32 LOADS = 2;
    static const bool STORES = true;
    static __device__ __forceinline__ void element(u32 *a, const u32 *b, const u32 *c, typename T::Scalar s, u32, u64) { T::triad(a, b, c, s); }
};

template <class T> struct Dot {
    static const u32 LOADS = 2;
    static const bool STORES = false;
    typedef typename T::Sum Sum;
    static __device__ __forceinline__ Sum sum(Sum sum, const u32 *b, const u32 *c, u64) { return T::dot(sum, b, c); }
};

struct Arrays {
    u32 *a;
    const u32 *b, *c;
    u64 words;
};

// What stores: vector by vector.
template <class T, template <class> class OP> struct Storing {
    typename T::Scalar scalar;
    u32 seed;

    template <u32 BYTES, bool ONCE> __device__ __forceinline__ void take(Arrays arrays, u64 vector, Vector<BYTES> b, Vector<BYTES> c) {
        Vector<BYTES> a;
#pragma unroll
        for (u32 k = 0; k < BYTES / 4; k += T::WORDS) {
            OP<T>::element(a.word + k, b.word + k, c.word + k, scalar, seed, vector * (BYTES / 4) + k);
        }
        store<BYTES, ONCE>(arrays.a, vector, a);
    }
};

// What sums, in each thread for itself.
template <class T, template <class> class OP> struct Summing {
    typename OP<T>::Sum sum;

    template <u32 BYTES, bool ONCE> __device__ __forceinline__ void take(Arrays, u64 vector, Vector<BYTES> b, Vector<BYTES> c) {
#pragma unroll
        for (u32 k = 0; k < BYTES / 4; k += T::WORDS) {
            sum = OP<T>::sum(sum, b.word + k, c.word + k, vector * (BYTES / 4) + k);
        }
    }
};

// What the operation loads of one vector.
template <class O, u32 BYTES, bool ONCE> __device__ __forceinline__ void loads(Arrays arrays, u64 vector, Vector<BYTES> *b, Vector<BYTES> *c) {
    if constexpr (O::LOADS > 0) {
        *b = load<BYTES, ONCE>(arrays.b, vector);
    }
    if constexpr (O::LOADS > 1) {
        *c = load<BYTES, ONCE>(arrays.c, vector);
    }
}

// Blocks take tiles in turn, each thread UNROLL vectors of a tile, a block's width apart; a launch of as
// many blocks as tiles has each block take one.
template <class T, template <class> class OP, u32 BYTES, u32 UNROLL, bool ONCE, class TAKER> __device__ __forceinline__ void pass(Arrays arrays, TAKER &taker) {
    const u64 vectors = arrays.words / (BYTES / 4);
    const u64 tile = (u64)blockDim.x * UNROLL;
    for (u64 base = blockIdx.x * tile; base < vectors; base += gridDim.x * tile) {
        const u64 first = base + threadIdx.x;
        if (base + tile <= vectors) {
            Vector<BYTES> b[UNROLL] = {}, c[UNROLL] = {};
            BODY_BEGIN;
#pragma unroll
            for (u32 k = 0; k < UNROLL; k++) {
                loads<OP<T>, BYTES, ONCE>(arrays, first + k * blockDim.x, b + k, c + k);
            }
#pragma unroll
            for (u32 k = 0; k < UNROLL; k++) {
                taker.template take<BYTES, ONCE>(arrays, first + k * blockDim.x, b[k], c[k]);
            }
            BODY_END;
        } else {
            for (u64 i = first; i < vectors; i += blockDim.x) {
                Vector<BYTES> b = {}, c = {};
                loads<OP<T>, BYTES, ONCE>(arrays, i, &b, &c);
                taker.template take<BYTES, ONCE>(arrays, i, b, c);
            }
        }
    }
    // Elements past the last whole vector: one thread each.
    const u32 ELEMENT = 4 * T::WORDS;
    const u64 element = vectors * (BYTES / 4) / T::WORDS + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && element < arrays.words / T::WORDS) {
        Vector<ELEMENT> b = {}, c = {};
        loads<OP<T>, ELEMENT, ONCE>(arrays, element, &b, &c);
        taker.template take<ELEMENT, ONCE>(arrays, element, b, c);
    }
}

template <class T, template <class> class OP, u32 BYTES, u32 UNROLL, bool ONCE> __device__ __forceinline__ void storing_pass(Arrays arrays, float scalar, u32 seed) {
    Storing<T, OP> taker = {T::scalar(scalar), seed};
    pass<T, OP, BYTES, UNROLL, ONCE>(arrays, taker);
}

// One sum a block: of words in 64 bits, of products in f64.
template <class T, template <class> class OP, u32 BYTES, u32 UNROLL, bool ONCE, class TOTAL> __device__ __forceinline__ void summing_pass(Arrays arrays, TOTAL *sums) {
    Summing<T, OP> taker = {0};
    pass<T, OP, BYTES, UNROLL, ONCE>(arrays, taker);
    const TOTAL total = block_sum((TOTAL)taker.sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = total;
    }
}

// The kernels of one operation, by the form that the name says: bytes of a vector, vectors that a thread has
// in flight, and whether the data are marked as used once. Up to 32 registers of data leave room for blocks of
// 1024 threads, 64 for blocks of 512. The second bound has the compiler take the registers that the first
// grants: for more threads at once it would put loads behind the use of others.
#define READ_KERNEL(NAME, T, BYTES, UNROLL, ONCE, THREADS)                                                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) NAME(const u32 *src, u64 *sums, u64 words) {                                                     \
        summing_pass<T, Read, BYTES, UNROLL, ONCE>(Arrays{nullptr, src, nullptr, words}, sums);                                                               \
    }
#define WRITE_KERNEL(NAME, T, BYTES, UNROLL, ONCE, THREADS)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) NAME(u32 *dst, u64 words, u32 seed) {                                                            \
        storing_pass<T, Write, BYTES, UNROLL, ONCE>(Arrays{dst, nullptr, nullptr, words}, 0.0f, seed);                                                        \
    }
#define COPY_KERNEL(NAME, T, BYTES, UNROLL, ONCE, THREADS)                                                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) NAME(u32 *dst, const u32 *src, u64 words) {                                                      \
        storing_pass<T, Copy, BYTES, UNROLL, ONCE>(Arrays{dst, src, nullptr, words}, 0.0f, 0);                                                                \
    }
#define SCALE_KERNEL(NAME, T, BYTES, UNROLL, ONCE, THREADS)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) NAME(u32 *a, const u32 *b, u64 words, float s) {                                                 \
        storing_pass<T, Scale, BYTES, UNROLL, ONCE>(Arrays{a, b, nullptr, words}, s, 0);                                                                      \
    }
#define ADD_KERNEL(NAME, T, BYTES, UNROLL, ONCE, THREADS)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) NAME(u32 *a, const u32 *b, const u32 *c, u64 words) {                                            \
        storing_pass<T, Add, BYTES, UNROLL, ONCE>(Arrays{a, b, c, words}, 0.0f, 0);                                                                           \
    }
#define TRIAD_KERNEL(NAME, T, BYTES, UNROLL, ONCE, THREADS)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) NAME(u32 *a, const u32 *b, const u32 *c, u64 words, float s) {                                   \
        storing_pass<T, Triad, BYTES, UNROLL, ONCE>(Arrays{a, b, c, words}, s, 0);                                                                            \
    }
#define DOT_KERNEL(NAME, T, BYTES, UNROLL, ONCE, THREADS)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) NAME(const u32 *b, const u32 *c, double *sums, u64 words) {                                      \
        summing_pass<T, Dot, BYTES, UNROLL, ONCE>(Arrays{nullptr, b, c, words}, sums);                                                                        \
    }

// The forms of every operation; DEEP is how many threads a block may have with eight vectors of 16 bytes a thread.
#define FORMS(KERNEL, NAME, T, DEEP)                                                                                                                          \
    KERNEL(NAME##_v8_u1, T, 8, 1, false, 1024)                                                                                                                \
    KERNEL(NAME##_v8_u4, T, 8, 4, false, 1024)                                                                                                                \
    KERNEL(NAME##_v16_u1, T, 16, 1, false, 1024)                                                                                                              \
    KERNEL(NAME##_v16_u2, T, 16, 2, false, 1024)                                                                                                              \
    KERNEL(NAME##_v16_u4, T, 16, 4, false, 1024)                                                                                                              \
    KERNEL(NAME##_v16_u8, T, 16, 8, false, DEEP)                                                                                                              \
    KERNEL(NAME##_v16_u1_cs, T, 16, 1, true, 1024)                                                                                                            \
    KERNEL(NAME##_v16_u4_cs, T, 16, 4, true, 1024)                                                                                                            \
// Of elements of 4 bytes and less.
#define FORMS_NARROW(KERNEL, NAME, T)                                                                                                                         \
    KERNEL(NAME##_v4_u1, T, 4, 1, false, 1024)                                                                                                                \
    KERNEL(NAME##_v4_u4, T, 4, 4, false, 1024)
