// drivers/opencl/platform/catalog.h: the devices of all platforms that this process uses.
#ifndef GRAFT_DRIVERS_OPENCL_PLATFORM_CATALOG_H_
#define GRAFT_DRIVERS_OPENCL_PLATFORM_CATALOG_H_

#include <string>
#include <vector>

#include "api.h"
#include "capabilities.h"

namespace graft::opencl {

struct Listed {
  cl_platform_id platform;
  cl_device_id device;
  Capabilities capabilities;
};

struct Catalog {
  // GPUs, then accelerators, then CPUs; or as GRAFT_OPENCL_DEVICES orders them.
  std::vector<Listed> devices;
  graft_status status = GRAFT_OK;
  std::string problem;  // why status is not OK, or why there is no device
};

// Made at the first call: loads OpenCL and asks every platform, which opens no device. Thread-safe.
const Catalog& catalog();

// True in a child that was forked after the catalog was made: the vendors' threads and handles are
// the parent's, so no call into OpenCL can work.
bool forked();

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_PLATFORM_CATALOG_H_
