// drivers/host/collectives/reduction.h: makes one list of numbers of several.
#ifndef GRAFT_DRIVERS_HOST_COLLECTIVES_REDUCTION_H_
#define GRAFT_DRIVERS_HOST_COLLECTIVES_REDUCTION_H_

#include <cstdint>

#include "graft/extensions.h"

namespace graft::host {

// Bytes of an element; 0 for what is no graft_dtype.
uint64_t dtype_bytes(uint32_t dtype);

// Names for messages; "?" for a number that the headers do not know.
const char* dtype_name(uint32_t dtype);
const char* reduction_name(uint32_t reduction);

// Whether extensions.h gives the reduction a meaning for the dtype.
bool can_reduce(uint32_t dtype, uint32_t reduction);

// to[i] = sources[0][i] with sources[1][i], ..., from left to right, for i < count. float16 and
// bfloat16 are rounded once, at the end. to may be one of the sources.
// REQUIRES: can_reduce, and source_count above 0.
void reduce(uint32_t dtype, uint32_t reduction, void* to, const void* const* sources,
            uint32_t source_count, uint64_t count);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_COLLECTIVES_REDUCTION_H_
