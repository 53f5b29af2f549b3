// drivers/opencl/platform/device.cpp: the devices, their memory and pinned memory.
#include "device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graft/driver_slot.h"
#include "settings.h"
#include "status.h"

graft_device_s::~graft_device_s() {
  using graft::opencl::cl;
  if (memory != nullptr) memory->close();
  memory.reset();
  if (queue != nullptr) cl().ReleaseCommandQueue(queue);
  for (const cl_context one : {saving, context}) {
    if (one != nullptr) cl().ReleaseContext(one);
  }
}

graft_status graft_device_s::failed(cl_int code, const std::string& what, graft_status otherwise) {
  using graft::opencl::cl;
  graft_status status = graft::opencl::status_of(code, otherwise);
  const bool dubious =
      code == CL_OUT_OF_RESOURCES || code == CL_INVALID_COMMAND_QUEUE || code == CL_INVALID_CONTEXT;
  if (dubious && queue != nullptr) {
    cl_int probe = cl().EnqueueMarkerWithWaitList(queue, 0, nullptr, nullptr);
    if (probe == CL_SUCCESS) probe = cl().Finish(queue);
    if (probe != CL_SUCCESS) status = GRAFT_DEVICE_LOST;
  }
  if (status == GRAFT_DEVICE_LOST) lost.store(true);
  return graft::fail(status, what + ": " + graft::opencl::code_name(code));
}

namespace graft::opencl {
namespace {

graft_status check_ordinal(uint32_t ordinal) {
  const size_t count = catalog().devices.size();
  if (ordinal >= count) {
    return fail(GRAFT_NOT_FOUND, "OpenCL device " + std::to_string(ordinal) + " of " +
                                     std::to_string(count) +
                                     " does not exist: see GRAFT_OPENCL_DEVICES");
  }
  const Capabilities& known = catalog().devices[ordinal].capabilities;
  if (known.problem.empty()) return GRAFT_OK;
  return fail(GRAFT_INVALID_ARGUMENT, known.name + ": " + known.problem);
}

graft_status check_forked() {
  if (!forked()) return GRAFT_OK;
  return fail(GRAFT_DEVICE_LOST,
              "this process was forked after OpenCL was loaded: use the start method 'spawn'");
}

// The caller's struct may be of an older minor, and shorter.
template <class Facts>
graft_status give(Facts mine, Facts* out) {
  mine.struct_size = out->struct_size;
  std::memcpy(out, &mine, std::min<size_t>(out->struct_size, sizeof mine));
  return GRAFT_OK;
}

}  // namespace

graft_status check_device(graft_device device) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "no device given");
  if (graft_status status = check_forked(); status != GRAFT_OK) return status;
  if (!device->lost.load(std::memory_order_relaxed)) return GRAFT_OK;
  return fail(GRAFT_DEVICE_LOST,
              "the device " + device->listed.capabilities.name + " is lost: restart the process");
}

graft_status DeviceSlots::device_count(uint32_t* out_count) {
  if (out_count == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_count: no out pointer given");
  const Catalog& known = catalog();
  if (known.status != GRAFT_OK) return fail(known.status, known.problem);
  *out_count = uint32_t(known.devices.size());
  return known.devices.empty() ? fail(GRAFT_OK, known.problem) : GRAFT_OK;
}

graft_status DeviceSlots::device_properties(uint32_t ordinal, graft_device_properties* properties) {
  if (properties == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_properties: no out pointer given");
  if (graft_status status = check_ordinal(ordinal); status != GRAFT_OK) return status;
  return give(catalog().devices[ordinal].capabilities.properties, properties);
}

graft_status DeviceSlots::device_identity(uint32_t ordinal, graft_device_identity* identity) {
  if (identity == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_identity: no out pointer given");
  if (graft_status status = check_ordinal(ordinal); status != GRAFT_OK) return status;
  return give(catalog().devices[ordinal].capabilities.facts, identity);
}

cl_context create_context(const Listed& listed, cl_int* code) {
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(listed.platform), 0};
  return cl().CreateContext(properties, 1, &listed.device, nullptr, nullptr, code);
}

graft_status DeviceSlots::device_open(uint32_t ordinal, graft_device* out_device) {
  if (out_device == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_open: no out pointer given");
  if (graft_status status = check_forked(); status != GRAFT_OK) return status;
  if (graft_status status = check_ordinal(ordinal); status != GRAFT_OK) return status;
  auto device = std::make_unique<graft_device_s>(catalog().devices[ordinal]);
  const Listed& listed = device->listed;
  const std::string& name = listed.capabilities.name;
  cl_int code = CL_SUCCESS;
  device->context = create_context(listed, &code);
  if (code != CL_SUCCESS) {
    device->context = nullptr;
    return fail(status_of(code, GRAFT_INTERNAL), "opening " + name + ": " + code_name(code));
  }
  const cl_command_queue_properties timed =
      settings().profiling ? cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE} : 0;
  device->queue = cl().CreateCommandQueue(device->context, listed.device, timed, &code);
  if (code != CL_SUCCESS) {
    device->queue = nullptr;
    return fail(status_of(code, GRAFT_INTERNAL),
                "a command queue of " + name + ": " + code_name(code));
  }
  device->memory = Memory::make({listed, device->context, device->queue});
  *out_device = device.release();
  return GRAFT_OK;
}

graft_status DeviceSlots::device_close(graft_device device) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "device_close: no device given");
  if (!forked()) delete device;
  return GRAFT_OK;
}

graft_status DeviceSlots::memory_allocate(graft_device device, uint64_t bytes, graft_address* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (bytes == 0 || out == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_allocate: 0 bytes or no out pointer given");
  }
  const graft_status status = device->memory->allocate(bytes, out);
  if (status == GRAFT_DEVICE_LOST) device->lost.store(true);
  return status;
}

graft_status DeviceSlots::memory_free(graft_device device, graft_address address) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "memory_free: no device given");
  return forked() ? GRAFT_OK : device->memory->free(address);
}

graft_status DeviceSlots::memory_info(graft_device device, uint64_t* out_free,
                                      uint64_t* out_total) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out_free == nullptr || out_total == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_info: no out pointer given");
  }
  *out_total = device->listed.capabilities.properties.memory_bytes;
  *out_free = *out_total - std::min(*out_total, device->memory->held());
  return GRAFT_OK;
}

graft_status DeviceSlots::memory_host_view(graft_device device, graft_address address,
                                           uint64_t bytes, void** out_pointer) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out_pointer == nullptr || !device->memory->find(address, bytes)) {
    return fail(
        GRAFT_INVALID_ARGUMENT,
        "memory_host_view: no out pointer given, or the range is not inside one allocation");
  }
  void* view = device->memory->host_view(address);
  if (view == nullptr) {
    return fail(GRAFT_UNSUPPORTED, std::string("the host does not see memory of the kind ") +
                                       name_of(device->listed.capabilities.memory));
  }
  *out_pointer = view;
  return GRAFT_OK;
}

graft_status DeviceSlots::host_allocate(graft_device device, uint64_t bytes, void** out_pointer) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (bytes == 0 || out_pointer == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "host_allocate: 0 bytes or no out pointer given");
  }
  const std::string what = "pinning " + std::to_string(bytes) + " bytes of host memory";
  cl_int code = CL_SUCCESS;
  const cl_mem buffer = cl().CreateBuffer(
      device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &code);
  if (code != CL_SUCCESS) return device->failed(code, what, GRAFT_OUT_OF_MEMORY);
  void* pointer = cl().EnqueueMapBuffer(device->queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                        0, bytes, 0, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) {
    cl().ReleaseMemObject(buffer);
    return device->failed(code, what, GRAFT_OUT_OF_MEMORY);
  }
  std::lock_guard lock(device->mutex);
  device->pinned[pointer] = buffer;
  *out_pointer = pointer;
  return GRAFT_OK;
}

graft_status DeviceSlots::host_free(graft_device device, void* pointer) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "host_free: no device given");
  if (forked()) return GRAFT_OK;
  cl_mem buffer = nullptr;
  {
    std::lock_guard lock(device->mutex);
    auto found = device->pinned.find(pointer);
    if (found == device->pinned.end()) {
      return fail(GRAFT_INVALID_ARGUMENT, "host_free: the pointer is not from host_allocate");
    }
    buffer = std::exchange(found->second, nullptr);
    device->pinned.erase(found);
  }
  cl().EnqueueUnmapMemObject(device->queue, buffer, pointer, 0, nullptr, nullptr);
  cl().Finish(device->queue);
  cl().ReleaseMemObject(buffer);
  return GRAFT_OK;
}

}  // namespace graft::opencl
