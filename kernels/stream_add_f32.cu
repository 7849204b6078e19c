// targets: compute_70
#include "stream.cuh"

FORMS(ADD_KERNEL, stream_add_f32, F32, 512)
FORMS_NARROW(ADD_KERNEL, stream_add_f32, F32)
