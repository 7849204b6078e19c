// targets: compute_70 compute_80
// Matrices times a few vectors, as in the decoding step of a language model:
// y[matrix][input][row] = sum of w[matrix][row][column] x[matrix][input][column] over the
// columns. Weights and inputs in f16, sums and results in f32.
//
// Every weight is loaded once, 16 bytes at a time, and enough of them are on their way at any
// moment; they have no use for L1, which is left to the inputs.
// src/pattern/matvec.rs derives grids and loads from the numbers below.
#include "common.cuh"

// Numbers in a vector of 16 bytes; the columns are a multiple of it.
const u32 VECTOR = 8;

// Warps of a block.
const u32 WARPS = 8;

// With fused multiply-adds: rows of a warp, and vectors of each row that a lane loads before it
// uses the first. Lanes take neighbouring vectors, so a row is read 2 KiB at a time.
const u32 FMA_ROWS = 4;
const u32 FMA_VECTORS = 4;

// Where a warp stands: blocks take the rows of one matrix after the other. Rows are below 2^31.
// Asked for again where it is needed again: registers are short in the loop between.
struct Place {
    u32 matrix, row;
};

__device__ __forceinline__ Place stand_of(u64 rows, u32 rows_of_warp) {
    u32 block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    const u32 rows_of_block = WARPS * rows_of_warp;
    const u32 blocks = ((u32)rows + rows_of_block - 1) / rows_of_block;
    return {block / blocks, block % blocks * rows_of_block + threadIdx.x / 32 * rows_of_warp};
}

// Loads a vector that is `at` places beyond `from`, beyond which there are `left`; zeros where
// there is none. Predicated here, because the front end would make a branch of each, and no
// load moves across a branch; volatile, so that they stay together.
#define LOAD(OPCODE, v, from, at, left)                                                                                                                       \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.gt.s32 p, %5, %6;\n\tmov.u32 %0, 0;\n\tmov.u32 %1, 0;\n\tmov.u32 %2, 0;\n\tmov.u32 %3, 0;\n\t"                    \
                 "@p " OPCODE " {%0, %1, %2, %3}, [%4];\n\t}"                                                                                                 \
                 : "=r"((v).x), "=r"((v).y), "=r"((v).z), "=r"((v).w)                                                                                         \
                 : "l"((from) + (at)), "r"(left), "r"((s32)(at)))

// Adds two products.
__device__ __forceinline__ float add2(u32 a, u32 b, float sum) {
    sum = fmaf(f32_of((u16)a), f32_of((u16)b), sum);
    return fmaf(f32_of((u16)(a >> 16)), f32_of((u16)(b >> 16)), sum);
}

// A warp computes FMA_ROWS rows, each lane its share of the columns.
template <u32 BATCH> __device__ __forceinline__ void with_fma(float *y, const uint4 *w, const uint4 *x, u64 rows, u64 columns) {
    const u32 lane = threadIdx.x % 32;
    const u32 vectors = (u32)columns / VECTOR;
    const Place place = stand_of(rows, FMA_ROWS);
    const uint4 *own[FMA_ROWS], *inputs[BATCH];
#pragma unroll
    for (u32 r = 0; r < FMA_ROWS; r++) {
        own[r] = w + (place.matrix * rows + min(place.row + r, (u32)rows - 1)) * vectors + lane;
    }
#pragma unroll
    for (u32 n = 0; n < BATCH; n++) {
        inputs[n] = x + (u64)(place.matrix * BATCH + n) * vectors + lane;
    }
    float sums[FMA_ROWS][BATCH] = {};
#pragma unroll 1
    for (s32 left = (s32)(vectors - lane); left + (s32)lane > 0; left -= 32 * FMA_VECTORS) {
        uint4 weights[FMA_ROWS][FMA_VECTORS];
        BODY_BEGIN;
#pragma unroll
        for (u32 r = 0; r < FMA_ROWS; r++) {
#pragma unroll
            for (u32 k = 0; k < FMA_VECTORS; k++) {
                LOAD("ld.global.nc.L1::no_allocate.v4.u32", weights[r][k], own[r], 32 * k, left);
            }
            own[r] += 32 * FMA_VECTORS;
        }
#pragma unroll
        for (u32 k = 0; k < FMA_VECTORS; k++) {
#pragma unroll
            for (u32 n = 0; n < BATCH; n++) {
                uint4 b;
                LOAD("ld.global.nc.v4.u32", b, inputs[n], 32 * k, left);
#pragma unroll
                for (u32 r = 0; r < FMA_ROWS; r++) {
                    const uint4 a = weights[r][k];
                    sums[r][n] = add2(a.w, b.w, add2(a.z, b.z, add2(a.y, b.y, add2(a.x, b.x, sums[r][n]))));
                }
            }
        }
        BODY_END;
#pragma unroll
        for (u32 n = 0; n < BATCH; n++) {
            inputs[n] += 32 * FMA_VECTORS;
        }
    }
    const Place to = stand_of(rows, FMA_ROWS);
#pragma unroll
    for (u32 r = 0; r < FMA_ROWS; r++) {
#pragma unroll
        for (u32 n = 0; n < BATCH; n++) {
            float sum = sums[r][n];
            for (int offset = 16; offset > 0; offset /= 2) {
                sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
            }
            // Each result is written by a lane of its own.
            if (lane == r * BATCH + n && to.row + r < rows) {
                y[(to.matrix * BATCH + n) * rows + to.row + r] = sum;
            }
        }
    }
}

#define KERNEL_FMA(BATCH)                                                                                                                                     \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, 2)                                                                                       \
        matvec_fma_##BATCH(float *__restrict__ y, const uint4 *__restrict__ w, const uint4 *__restrict__ x, u64 rows, u64 columns) {                          \
        with_fma<BATCH>(y, w, x, rows, columns);                                                                                                              \
    }

KERNEL_FMA(1)
KERNEL_FMA(2)

#if __CUDA_ARCH__ >= 800

// With tensor cores: rows of one product; lanes that share a row, each with a vector of it, and
// how often they do so for one chunk of columns, which is a line of memory.
const u32 MMA_ROWS = 16;
const u32 MMA_LANES = 4;
const u32 MMA_STEPS = 2;
const u32 MMA_VECTORS = MMA_LANES * MMA_STEPS;
// Chunks that are on their way: those of 64 inputs fill the 48 KiB that a block has without asking.
const u32 MMA_CHUNKS = 4;
// Vectors of one input in shared memory. Four more than a chunk has: the eight inputs that one
// access reads then lie in different banks.
const u32 PITCH = MMA_VECTORS + 4;

// The columns of all inputs that are multiplied together.
template <u32 BATCH> struct Inputs {
    uint4 v[BATCH][PITCH];
};

// Begins to copy the columns `at` vectors further on to shared memory; zeros beyond the last.
// `x` is where a thread reads of its first input, and `left` what is left of it from there on.
template <u32 BATCH> __device__ __forceinline__ void fetch(Inputs<BATCH> &inputs, const uint4 *x, u32 vectors, u32 at, s32 left) {
    const u32 together = 32 * WARPS / MMA_VECTORS;
#pragma unroll
    for (u32 begin = 0; begin < BATCH; begin += together) {
        const u32 n = begin + threadIdx.x / MMA_VECTORS;
        if (n < BATCH) {
            const bool inside = left > (s32)at;
            asm volatile("{\n\t.reg .u64 a;\n\t.reg .u32 to;\n\tcvta.to.shared.u64 a, %0;\n\tcvt.u32.u64 to, a;\n\t"
                         "cp.async.cg.shared.global [to], [%1], 16, %2;\n\t}" ::"l"(&inputs.v[n][threadIdx.x % MMA_VECTORS]),
                         "l"(x + begin * vectors + at), "r"(inside ? 16u : 0u)
                         : "memory");
        }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits for the oldest of the chunks that every thread began to copy, and for every thread to be
// done with the chunk before it.
__device__ __forceinline__ void arrive() {
    asm volatile("cp.async.wait_group %0;" ::"n"(MMA_CHUNKS - 2) : "memory");
    __syncthreads();
}

// A lane's weights of TILES x MMA_ROWS rows. The tensor core wants of it two rows, eight apart,
// and in each pair of products eight columns of both. Which columns they are does not matter
// to a sum over all of them, as long as the inputs have the same: so they are a whole vector.
template <u32 TILES> struct Weights {
    uint4 v[2 * TILES][MMA_STEPS];
};

// Loads the chunk that is `at` vectors further on: four lanes read 64 bytes of a row at a time.
// L2 is told to fetch 256 at once, as the next chunk is wanted soon. These loads move across no
// barrier, as those of read-only data would: the assembler would gather them, and wait for all.
template <u32 TILES> __device__ __forceinline__ void load(Weights<TILES> &weights, const uint4 *const (&rows)[2 * TILES], u32 at, s32 left) {
    BODY_BEGIN;
#pragma unroll
    for (u32 r = 0; r < 2 * TILES; r++) {
#pragma unroll
        for (u32 step = 0; step < MMA_STEPS; step++) {
            LOAD("ld.global.L1::no_allocate.L2::256B.v4.u32", weights.v[r][step], rows[r], at + MMA_LANES * step, left);
        }
    }
    BODY_END;
}

// sums += a b, of 16 rows, 16 columns and 8 inputs (PTX ISA, "Matrix Fragments for mma.m16n8k16").
__device__ __forceinline__ void mma(float (&sums)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Adds the products of a chunk.
template <u32 BATCH, u32 TILES, u32 EIGHTS>
__device__ __forceinline__ void multiply(float (&sums)[TILES][EIGHTS][4], const Weights<TILES> &weights, const Inputs<BATCH> &inputs) {
    const u32 group = threadIdx.x % 32 / MMA_LANES;
#pragma unroll
    for (u32 step = 0; step < MMA_STEPS; step++) {
#pragma unroll
        for (u32 eight = 0; eight < EIGHTS; eight++) {
            // Of fewer than eight inputs, some are taken twice and their second results left.
            const uint4 b = inputs.v[(8 * eight + group) % BATCH][MMA_LANES * step + threadIdx.x % MMA_LANES];
#pragma unroll
            for (u32 tile = 0; tile < TILES; tile++) {
                const uint4 upper = weights.v[2 * tile][step], lower = weights.v[2 * tile + 1][step];
                mma(sums[tile][eight], upper.x, lower.x, upper.y, lower.y, b.x, b.y);
                mma(sums[tile][eight], upper.z, lower.z, upper.w, lower.w, b.z, b.w);
            }
        }
    }
}

// A warp computes TILES x MMA_ROWS rows. As soon as a chunk of weights is multiplied, the one
// MMA_CHUNKS further on is loaded in its place. The inputs come through shared memory, where all
// warps of the block find them.
template <u32 BATCH, u32 TILES> __device__ __forceinline__ void with_mma(float *y, const uint4 *w, const uint4 *x, u64 rows, u64 columns) {
    const u32 EIGHTS = (BATCH + 7) / 8;
    __shared__ Inputs<BATCH> inputs[MMA_CHUNKS];
    const u32 group = threadIdx.x % 32 / MMA_LANES, at = threadIdx.x % MMA_LANES;
    const u32 vectors = (u32)columns / VECTOR;
    const Place place = stand_of(rows, TILES * MMA_ROWS);
    const u32 first = threadIdx.x % MMA_VECTORS;
    x += (u64)(place.matrix * BATCH + threadIdx.x / MMA_VECTORS) * vectors + first;
    const uint4 *own[2 * TILES];
#pragma unroll
    for (u32 r = 0; r < 2 * TILES; r++) {
        const u32 row = min(place.row + 8 * r + group, (u32)rows - 1);
        own[r] = w + (place.matrix * rows + row) * vectors + at;
    }
    float sums[TILES][EIGHTS][4] = {};
    Weights<TILES> weights[MMA_CHUNKS];
    s32 left = (s32)vectors;
#pragma unroll
    for (u32 chunk = 0; chunk < MMA_CHUNKS - 1; chunk++) {
        load(weights[chunk], own, chunk * MMA_VECTORS, left - (s32)at);
        fetch(inputs[chunk], x, vectors, chunk * MMA_VECTORS, left - (s32)first);
    }
    // Past the last column all is zeros.
#pragma unroll 1
    for (; left > 0; left -= MMA_CHUNKS * MMA_VECTORS) {
#pragma unroll
        for (u32 chunk = 0; chunk < MMA_CHUNKS; chunk++) {
            const u32 next = chunk + MMA_CHUNKS - 1;
            arrive();
            load(weights[next % MMA_CHUNKS], own, next * MMA_VECTORS, left - (s32)at);
            fetch(inputs[next % MMA_CHUNKS], x, vectors, next * MMA_VECTORS, left - (s32)first);
            multiply(sums, weights[chunk], inputs[chunk]);
        }
        x += MMA_CHUNKS * MMA_VECTORS;
#pragma unroll
        for (u32 r = 0; r < 2 * TILES; r++) {
            own[r] += MMA_CHUNKS * MMA_VECTORS;
        }
    }
    const Place to = stand_of(rows, TILES * MMA_ROWS);
#pragma unroll
    for (u32 tile = 0; tile < TILES; tile++) {
#pragma unroll
        for (u32 eight = 0; eight < EIGHTS; eight++) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                const u32 row = to.row + MMA_ROWS * tile + 8 * (i / 2) + group;
                const u32 n = 8 * eight + 2 * at + i % 2;
                if (row < rows && n < BATCH) {
                    y[(to.matrix * BATCH + n) * rows + row] = sums[tile][eight][i];
                }
            }
        }
    }
}

// With many inputs a warp takes twice the rows, so that a vector of the inputs serves twice the
// weights, and one block has the registers of two.
#define KERNEL_MMA(BATCH, TILES)                                                                                                                              \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, 2 / TILES)                                                                                       \
        matvec_mma_##BATCH(float *__restrict__ y, const uint4 *__restrict__ w, const uint4 *__restrict__ x, u64 rows, u64 columns) {                          \
        with_mma<BATCH, TILES>(y, w, x, rows, columns);                                                                                                       \
    }

KERNEL_MMA(4, 1)
KERNEL_MMA(8, 1)
KERNEL_MMA(16, 1)
KERNEL_MMA(32, 2)
KERNEL_MMA(64, 2)

#endif

// One output a thread in f64, from the sequences that filled weights and inputs; the product of
// two f16 is exact in f32. `tolerance` is of the sum of the products' magnitudes. Each of
// `slices` launches compares its share of the outputs.
extern "C" __global__ void check_matvec(const float *y, u64 matrices, u64 batch, u64 rows, u64 columns, u32 seed_weights, u32 seed_inputs, u32 data,
                                        float tolerance, u32 slice, u32 slices, Status *status) {
    u64 compared = 0;
    for (u64 i = slice * global_threads() + global_thread(); i < matrices * batch * rows; i += slices * global_threads()) {
        const u64 row = i % rows, input = i / rows, matrix = input / batch;
        double sum = 0.0, magnitude = 0.0;
        for (u64 column = 0; column < columns; column++) {
            const float weight = f32_of(data_f16(data, seed_weights, (matrix * rows + row) * columns + column));
            const float product = weight * f32_of(data_f16(data, seed_inputs, input * columns + column));
            sum += product;
            magnitude += fabsf(product);
        }
        // Written so that a NaN fails.
        report(status, &compared, !(fabs(y[i] - sum) <= tolerance * magnitude), i);
    }
    finish(status, compared);
}
