// drivers/opencl/memory/kind.h: the ways in which OpenCL devices offer memory.
#ifndef GRAFT_DRIVERS_OPENCL_MEMORY_KIND_H_
#define GRAFT_DRIVERS_OPENCL_MEMORY_KIND_H_

#include <string>
#include <vector>

#include "platform/api.h"

namespace graft::opencl {

enum class MemoryKind {
  kFine,     // shared virtual memory that the host may touch at any time
  kCoarse,   // shared virtual memory that the host reaches by copies only
  kUnified,  // device memory of cl_intel_unified_shared_memory
  kAddress,  // buffers with an address, of cl_ext_buffer_device_address
  kBuffer,   // buffers; addresses are the driver's own, kernels get a buffer and an offset
};

// What the device offers, the best first; kBuffer is always there and last. A kind counts when the
// device says so, its functions are there, and its version has them: no version says so alone.
std::vector<MemoryKind> offered_kinds(cl_platform_id platform, cl_device_id device,
                                      const std::string& extensions, int version_major);

// The first of offered that wish (of GRAFT_OPENCL_MEMORY) allows; false, and why, for none.
bool choose_kind(const std::vector<MemoryKind>& offered, const std::string& wish, MemoryKind* kind,
                 std::string* problem);

// The word of GRAFT_OPENCL_MEMORY for it.
const char* name_of(MemoryKind kind);

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_MEMORY_KIND_H_
