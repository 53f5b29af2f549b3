// drivers/opencl/settings.h: what the environment asks of the OpenCL driver, read once.
#ifndef GRAFT_DRIVERS_OPENCL_SETTINGS_H_
#define GRAFT_DRIVERS_OPENCL_SETTINGS_H_

#include <string>

namespace graft::opencl {

// One variable of the environment each; docs/use/settings.md describes them.
struct Settings {
  std::string devices;       // GRAFT_OPENCL_DEVICES; "": all
  std::string memory;        // GRAFT_OPENCL_MEMORY; "": the best that the device offers
  std::string device_class;  // GRAFT_OPENCL_CLASS; "": by the device's type
  std::string standard;      // GRAFT_OPENCL_STD; "": the newest that the device lists
  std::string library;       // GRAFT_OPENCL_LIBRARY
  bool profiling;            // GRAFT_OPENCL_PROFILING=0: queues keep no times
  bool thread;               // GRAFT_OPENCL_THREAD=0: each command goes to OpenCL at its call
};

// The settings of this process. Thread-safe.
const Settings& settings();

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_SETTINGS_H_
