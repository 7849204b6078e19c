// targets: compute_70
#include "stream.cuh"

FORMS(DOT_KERNEL, stream_dot_f32, F32, 512)
FORMS_NARROW(DOT_KERNEL, stream_dot_f32, F32)
