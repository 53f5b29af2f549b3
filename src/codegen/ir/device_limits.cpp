// src/codegen/ir/device_limits.cpp: what a kernel takes, beside what a device has.
#include "codegen/ir/device_limits.h"

#include <fmt/format.h>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {

void check_limits(const ir::Kernel& kernel, const std::string& key,
                  const graft_device_properties& has, const std::string& label) {
  uint64_t local = 0;
  for (const ir::Instruction& it : kernel.body) {
    if (it.opcode == ir::Opcode::kLocalMemory) local += it.bits * ir::bytes_of(it.type);
  }
  if (local > has.local_memory_bytes) {
    throw Error(GRAFT_UNSUPPORTED,
                fmt::format("{} has {} of local memory for a group, but the kernel {} needs {}",
                            label, bytes_text(has.local_memory_bytes), key, bytes_text(local)));
  }
  const size_t arguments = kernel.parameters.size();
  if (has.max_arguments != 0 && arguments > has.max_arguments) {
    throw Error(GRAFT_UNSUPPORTED,
                fmt::format("{} takes at most {} arguments in a launch, but the kernel {} has {}",
                            label, has.max_arguments, key, arguments));
  }
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (has.dtypes == 0 || (has.dtypes >> parameter.dtype & 1) != 0 || !parameter.is_address) {
      continue;
    }
    throw Error(GRAFT_UNSUPPORTED, fmt::format("{} has no kernels for {} (the kernel {} needs it)",
                                               label, name_of(parameter.dtype), key));
  }
}

}  // namespace graft
