// targets: compute_70
// local-memory: conv3d_depthwise_f32_v4
// (8 bytes a thread outside the loop, on compute capability 7.0 and 7.2 alone.)
// Three-dimensional convolutions, 3 x 3 x 3 with padding 1, over
// [batch][channel][depth][height][width] in single precision.
//
// A warp computes a tile of one plane, 8 threads wide and 4 high; a thread a patch of
// VECTOR columns and ROWS rows, so that each input it loads serves up to 3 x 3 outputs
// from a register. Inputs come through L1, where neighbours find each other's halo.
// src/pattern/conv3d/tiling.rs derives grids and loads from the numbers below.
#include "common.cuh"

const u32 LANES_WIDE = 8;
const u32 LANES_HIGH = 4;
const u32 WARPS = 8;
const u32 ROWS = 2;
// Output channels that a thread of the direct kernel computes: a weight from shared
// memory then serves VECTOR x ROWS outputs, an input 8 channels.
const u32 CHANNELS = 8;
// Input channels whose weights are in shared memory at a time.
const u32 STAGED = 8;
// Planes that a thread of the depthwise kernel walks down: two more are read.
const u32 PLANES = 32;

// All below 2^31, and so is a plane: the pattern refuses others.
struct Shape {
    u32 batch, channels_in, channels_out, depth, height, width;
};

// A patch of one input plane with a halo of 1; zeros outside the volume.
template <u32 VECTOR> struct Patch {
    float v[ROWS + 2][VECTOR + 2];
};

// Where a thread stands in a plane, and which neighbours are inside. A thread that is
// not `live`, or beyond the plane, has no row to load or store.
struct Place {
    bool row[ROWS + 2];
    bool left, right;
    // Of the patch's first element in its plane.
    u32 offset;
    u32 width;
};

// VECTOR divides the width, so a vector is inside or outside as a whole.
template <u32 VECTOR> __device__ __forceinline__ Place place_of(u32 tile_x, u32 tile_y, const Shape &shape, bool live) {
    const u32 lane = threadIdx.x % 32;
    const u32 x = (tile_x * LANES_WIDE + lane % LANES_WIDE) * VECTOR;
    const u32 y = (tile_y * LANES_HIGH + lane / LANES_WIDE) * ROWS;
    const bool inside = live && x < shape.width && y < shape.height;
    Place place;
#pragma unroll
    for (u32 j = 0; j < ROWS + 2; j++) {
        // The row before the first wraps around and is none either.
        place.row[j] = inside && y + j - 1 < shape.height;
    }
    place.left = x > 0;
    place.right = x + VECTOR < shape.width;
    place.offset = y * shape.width + x;
    place.width = shape.width;
    return place;
}

// Zero where there is nothing to load. Predicated here, because the front end would make
// a branch of each, and no load moves across a branch.
__device__ __forceinline__ float load_if(bool inside, const float *in) {
    float v;
    asm("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %2, 0;\n\tmov.f32 %0, 0f00000000;\n\t@p ld.global.nc.f32 %0, [%1];\n\t}" : "=f"(v) : "l"(in), "r"((u32)inside));
    return v;
}

__device__ __forceinline__ float4 load4_if(bool inside, const float *in) {
    float4 v;
    asm("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %5, 0;\n\tmov.f32 %0, 0f00000000;\n\tmov.f32 %1, 0f00000000;\n\tmov.f32 %2, 0f00000000;\n\tmov.f32 %3, 0f00000000;\n\t"
        "@p ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];\n\t}"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "l"(in), "r"((u32)inside));
    return v;
}

template <u32 VECTOR> __device__ __forceinline__ void load(Patch<VECTOR> &patch, const float *plane, bool inside, const Place &place) {
#pragma unroll
    for (u32 j = 0; j < ROWS + 2; j++) {
        const bool row = inside && place.row[j];
        const float *in = plane + (s32)(place.offset + (j - 1) * place.width);
        float *v = patch.v[j];
        v[0] = load_if(row && place.left, in - 1);
        if (VECTOR == 4) {
            const float4 middle = load4_if(row, in);
            v[1] = middle.x;
            v[2] = middle.y;
            v[VECTOR > 2 ? 3 : 0] = middle.z;
            v[VECTOR > 3 ? 4 : 0] = middle.w;
        } else {
            v[1] = load_if(row, in);
        }
        v[VECTOR + 1] = load_if(row && place.right, in + VECTOR);
    }
}

template <u32 VECTOR> __device__ __forceinline__ void store(float *plane, const float (&v)[ROWS][VECTOR], const Place &place) {
#pragma unroll
    for (u32 j = 0; j < ROWS; j++) {
        if (place.row[j + 1]) {
            float *out = plane + (place.offset + j * place.width);
            if (VECTOR == 4) {
                *(float4 *)out = make_float4(v[j][0], v[j][1], v[j][VECTOR > 2 ? 2 : 0], v[j][VECTOR > 3 ? 3 : 0]);
            } else {
                *out = v[j][0];
            }
        }
    }
}

// A block has one group of output channels, and a tile of one plane a warp.
template <u32 VECTOR> __device__ __forceinline__ void direct(float *__restrict__ out, const float *__restrict__ in, const float *__restrict__ weights, const Shape shape) {
    __shared__ __align__(16) float staged[STAGED * 27 * CHANNELS];
    const u32 tiles_x = (shape.width - 1) / (LANES_WIDE * VECTOR) + 1, tiles_y = (shape.height - 1) / (LANES_HIGH * ROWS) + 1;
    const u32 groups = (shape.channels_out - 1) / CHANNELS + 1;
    const u32 plane = shape.height * shape.width;
    const u64 volume = (u64)plane * shape.depth;
    const u32 first_channel = blockIdx.x % groups * CHANNELS;
    u32 tile = blockIdx.x / groups * WARPS + threadIdx.x / 32;
    const u32 tile_x = tile % tiles_x;
    tile /= tiles_x;
    const u32 tile_y = tile % tiles_y;
    tile /= tiles_y;
    const u32 z = tile % shape.depth, batch = tile / shape.depth;
    // A warp with no tile stages weights with the others.
    const Place place = place_of<VECTOR>(tile_x, tile_y, shape, batch < shape.batch);
    const float *input = in + (u64)batch * shape.channels_in * volume + ((s64)z - 1) * plane;
    float sums[CHANNELS][ROWS][VECTOR] = {};
    for (u32 channel = 0; channel < shape.channels_in; channel++, input += volume) {
        if (channel % STAGED == 0) {
            const u32 count = min(STAGED, shape.channels_in - channel) * 27 * CHANNELS;
            __syncthreads();
            // [channel in][tap][channel out]: the weights that are used together lie together.
            for (u32 i = threadIdx.x; i < count; i += 32 * WARPS) {
                const u32 c = first_channel + i % CHANNELS;
                staged[i] = c < shape.channels_out ? weights[((u64)c * shape.channels_in + channel) * 27 + i / CHANNELS] : 0.0f;
            }
            __syncthreads();
        }
#pragma unroll 1
        for (u32 tz = 0; tz < 3; tz++) {
            Patch<VECTOR> patch;
            BODY_BEGIN;
            load(patch, input + (u64)tz * plane, z + tz - 1 < shape.depth, place);
            BODY_END;
            const float *w = staged + (channel % STAGED * 27 + tz * 9) * CHANNELS;
#pragma unroll
            for (u32 ty = 0; ty < 3; ty++) {
#pragma unroll
                for (u32 tx = 0; tx < 3; tx++, w += CHANNELS) {
#pragma unroll
                    for (u32 c = 0; c < CHANNELS; c++) {
#pragma unroll
                        for (u32 j = 0; j < ROWS; j++) {
#pragma unroll
                            for (u32 k = 0; k < VECTOR; k++) {
                                sums[c][j][k] = fmaf(patch.v[j + ty][k + tx], w[c], sums[c][j][k]);
                            }
                        }
                    }
                }
            }
        }
    }
#pragma unroll
    for (u32 c = 0; c < CHANNELS; c++) {
        if (first_channel + c < shape.channels_out) {
            store(out + ((u64)batch * shape.channels_out + first_channel + c) * volume + (u64)z * plane, sums[c], place);
        }
    }
}

// A warp walks down a column of planes of one channel. Plane z adds to the outputs of
// z - 1, z and z + 1, whose sums are in registers: each input is loaded once a column.
template <u32 VECTOR> __device__ __forceinline__ void depthwise(float *__restrict__ out, const float *__restrict__ in, const float *__restrict__ weights, const Shape shape) {
    const u32 tiles_x = (shape.width - 1) / (LANES_WIDE * VECTOR) + 1, tiles_y = (shape.height - 1) / (LANES_HIGH * ROWS) + 1;
    const u32 columns = (shape.depth - 1) / PLANES + 1;
    const u32 plane = shape.height * shape.width;
    const u64 volume = (u64)plane * shape.depth;
    u32 tile = blockIdx.x * WARPS + threadIdx.x / 32;
    const u32 tile_x = tile % tiles_x;
    tile /= tiles_x;
    const u32 tile_y = tile % tiles_y;
    tile /= tiles_y;
    const u32 begin = tile % columns * PLANES, channel = tile / columns;
    if (channel >= shape.batch * shape.channels_out) {
        return;
    }
    const u32 end = min(begin + PLANES, shape.depth);
    const Place place = place_of<VECTOR>(tile_x, tile_y, shape, true);
    float w[27];
#pragma unroll
    for (u32 tap = 0; tap < 27; tap++) {
        w[tap] = __ldg(weights + (u64)(channel % shape.channels_out) * 27 + tap);
    }
    float sums[3][ROWS][VECTOR] = {};
    const float *input = in + channel * volume + ((s64)begin - 1) * plane;
    float *output = out + channel * volume + ((s64)begin - 2) * plane;
    // `next` is the plane after the one whose products are added, and already on its way; the
    // sums of the plane before it are complete.
    Patch<VECTOR> ahead;
    load(ahead, input, begin > 0, place);
#pragma unroll 3
    for (u32 next = begin; next <= end + 1; next++, input += plane, output += plane) {
        const Patch<VECTOR> patch = ahead;
        BODY_BEGIN;
        load(ahead, input + plane, next < min(end + 1, shape.depth), place);
#pragma unroll
        for (u32 tz = 0; tz < 3; tz++) {
#pragma unroll
            for (u32 j = 0; j < ROWS; j++) {
#pragma unroll
                for (u32 k = 0; k < VECTOR; k++) {
#pragma unroll
                    for (u32 ty = 0; ty < 3; ty++) {
#pragma unroll
                        for (u32 tx = 0; tx < 3; tx++) {
                            sums[2 - tz][j][k] = fmaf(patch.v[j + ty][k + tx], w[tz * 9 + ty * 3 + tx], sums[2 - tz][j][k]);
                        }
                    }
                }
            }
        }
        if (next >= begin + 2) {
            store(output, sums[0], place);
        }
        BODY_END;
#pragma unroll
        for (u32 j = 0; j < ROWS; j++) {
#pragma unroll
            for (u32 k = 0; k < VECTOR; k++) {
                sums[0][j][k] = sums[1][j][k];
                sums[1][j][k] = sums[2][j][k];
                sums[2][j][k] = 0.0f;
            }
        }
    }
}

#define KERNELS(VECTOR)                                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, 2)                                                                                               \
        conv3d_direct_f32_v##VECTOR(float *__restrict__ out, const float *__restrict__ in, const float *__restrict__ weights, u64 batch, u64 channels_in,     \
                                    u64 channels_out, u64 depth, u64 height, u64 width) {                                                                     \
        direct<VECTOR>(out, in, weights, Shape{(u32)batch, (u32)channels_in, (u32)channels_out, (u32)depth, (u32)height, (u32)width});                        \
    }                                                                                                                                                         \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, 2)                                                                                               \
        conv3d_depthwise_f32_v##VECTOR(float *__restrict__ out, const float *__restrict__ in, const float *__restrict__ weights, u64 batch, u64 channels_in,  \
                                       u64 channels_out, u64 depth, u64 height, u64 width) {                                                                  \
        depthwise<VECTOR>(out, in, weights, Shape{(u32)batch, (u32)channels_in, (u32)channels_out, (u32)depth, (u32)height, (u32)width});                     \
    }

// Four columns a thread where the width allows vectors, else one.
KERNELS(4)
KERNELS(1)

// One output a thread in f64, from the sequences that filled the inputs; `groups` is 1 or
// the number of channels. `tolerance` is of the sum of the products' magnitudes. Each of
// `slices` launches compares its share of the outputs.
extern "C" __global__ void check_conv3d_f32(const float *out, u64 batch, u64 channels_in, u64 channels_out, u64 depth, u64 height, u64 width, u64 groups,
                                            u32 seed_input, u32 seed_weights, u32 data, float tolerance, u32 slice, u32 slices, Status *status) {
    const u64 outputs = batch * channels_out * depth * height * width;
    const u64 summed = channels_in / groups;
    u64 compared = 0;
    for (u64 i = slice * global_threads() + global_thread(); i < outputs; i += slices * global_threads()) {
        u64 rest = i;
        const u64 x = rest % width;
        rest /= width;
        const u64 y = rest % height;
        rest /= height;
        const u64 z = rest % depth;
        rest /= depth;
        const u64 channel = rest % channels_out, b = rest / channels_out;
        const u64 first = b * channels_in + channel / (channels_out / groups) * summed;
        double sum = 0.0, magnitude = 0.0;
        for (u64 c = 0; c < summed; c++) {
            for (u32 tap = 0; tap < 27; tap++) {
                const u64 iz = z + tap / 9 - 1, iy = y + tap / 3 % 3 - 1, ix = x + tap % 3 - 1;
                if (iz < depth && iy < height && ix < width) {
                    const double value = data_f32(data, seed_input, (((first + c) * depth + iz) * height + iy) * width + ix);
                    const double product = value * data_f32(data, seed_weights, (channel * summed + c) * 27 + tap);
                    sum += product;
                    magnitude += fabs(product);
                }
            }
        }
        // Written so that a NaN fails.
        report(status, &compared, !(fabs(out[i] - sum) <= tolerance * magnitude), i);
    }
    finish(status, compared);
}
