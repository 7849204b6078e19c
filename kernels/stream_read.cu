// targets: compute_70
// Read of words, whatever their type.
#include "stream.cuh"

FORMS(READ_KERNEL, stream_read, F32, 1024)
FORMS_NARROW(READ_KERNEL, stream_read, F32)
READ_KERNEL(stream_read_v16_u16, F32, 16, 16, false, 512)
