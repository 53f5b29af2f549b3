// drivers/opencl/platform/device.h: one opened device.
#ifndef GRAFT_DRIVERS_OPENCL_PLATFORM_DEVICE_H_
#define GRAFT_DRIVERS_OPENCL_PLATFORM_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "api.h"
#include "catalog.h"
#include "graft/driver.h"
#include "memory/memory.h"
#include "stream/trace.h"

struct graft_device_s {
  explicit graft_device_s(const graft::opencl::Listed& listed) : listed(listed) {}
  ~graft_device_s();

  // The status of a call that OpenCL refused, with a text that says what was done. Finds out
  // whether the device is lost, and keeps it so. otherwise: for codes that say nothing more exact.
  graft_status failed(cl_int code, const std::string& what, graft_status otherwise);

  const graft::opencl::Listed& listed;
  cl_context context = nullptr;
  cl_context saving = nullptr;  // in which program_save works; null until then. Guarded by mutex
  cl_command_queue queue = nullptr;  // for what is done at once, and for asking whether all is well
  std::unique_ptr<graft::opencl::Memory> memory;
  std::atomic<bool> lost{false};
  graft::opencl::Trace trace;
  std::mutex mutex;
  std::unordered_map<void*, cl_mem> pinned;  // by where they are mapped; guarded by mutex
};

namespace graft::opencl {

// OK, or why no call on the device can work: it is lost, or this is a forked child.
graft_status check_device(graft_device device);

// A context of the device alone, which the caller releases; null with the code that says why.
cl_context create_context(const Listed& listed, cl_int* code);

// Slots of the table, see driver.h.
struct DeviceSlots {
  static graft_status device_count(uint32_t* out_count);
  static graft_status device_properties(uint32_t ordinal, graft_device_properties* properties);
  static graft_status device_identity(uint32_t ordinal, graft_device_identity* identity);
  static graft_status device_open(uint32_t ordinal, graft_device* out_device);
  static graft_status device_close(graft_device device);
  static graft_status memory_allocate(graft_device device, uint64_t bytes, graft_address* out);
  static graft_status memory_free(graft_device device, graft_address address);
  static graft_status memory_info(graft_device device, uint64_t* out_free, uint64_t* out_total);
  static graft_status memory_host_view(graft_device device, graft_address address, uint64_t bytes,
                                       void** out_pointer);
  static graft_status host_allocate(graft_device device, uint64_t bytes, void** out_pointer);
  static graft_status host_free(graft_device device, void* pointer);
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_PLATFORM_DEVICE_H_
