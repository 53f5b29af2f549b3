// drivers/opencl/platform/capabilities.h: what one device says of itself.
#ifndef GRAFT_DRIVERS_OPENCL_PLATFORM_CAPABILITIES_H_
#define GRAFT_DRIVERS_OPENCL_PLATFORM_CAPABILITIES_H_

#include <string>

#include "api.h"
#include "graft/driver.h"
#include "memory/kind.h"

namespace graft::opencl {

struct Capabilities {
  cl_device_type type = 0;
  std::string name, vendor, platform;
  std::string identity;     // platform, device and driver with their versions
  std::string extensions;   // words with blanks between them
  std::string options;      // of every build: language version, rounding, memory
  bool compiler = false;    // can build programs from source
  bool priorities = false;  // of queues
  MemoryKind memory = MemoryKind::kBuffer;
  graft_device_properties properties = {};
  graft_device_identity facts = {};  // struct_size is not set
  std::string problem;               // why the environment makes it unusable; "" otherwise
};

// A processor, and nothing that is a GPU, too.
inline bool is_processor(cl_device_type type) {
  return (type & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU)) == CL_DEVICE_TYPE_CPU;
}

// Asks the device; opens nothing.
Capabilities examine(cl_platform_id platform, cl_device_id device);

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_PLATFORM_CAPABILITIES_H_
