// targets: compute_70
#include "stream.cuh"

FORMS(TRIAD_KERNEL, stream_triad_f32, F32, 512)
FORMS_NARROW(TRIAD_KERNEL, stream_triad_f32, F32)
