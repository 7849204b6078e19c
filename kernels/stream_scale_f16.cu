// targets: compute_70
#include "stream.cuh"

FORMS(SCALE_KERNEL, stream_scale_f16, F16, 1024)
FORMS_NARROW(SCALE_KERNEL, stream_scale_f16, F16)
