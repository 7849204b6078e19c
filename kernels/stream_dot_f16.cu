// targets: compute_70
#include "stream.cuh"

FORMS(DOT_KERNEL, stream_dot_f16, F16, 512)
FORMS_NARROW(DOT_KERNEL, stream_dot_f16, F16)
