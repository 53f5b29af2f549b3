// drivers/opencl/kernel/kernel.cpp: launches kernels.
#include "kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graft/driver_slot.h"
#include "memory/memory.h"
#include "platform/device.h"
#include "platform/status.h"
#include "stream/stream.h"

using graft::fail;
using graft::opencl::cl;
using graft::opencl::Memory;
using graft::opencl::Queue;

namespace {

// Work-items that share a group where the launch leaves every one alone: one, for most GPUs, is as
// slow as this many.
constexpr size_t kBundle = 64;

// What NVIDIA's runtime says of a kernel without local memory, in bytes.
constexpr cl_ulong kNoLocal = 1;

std::string triple(uint64_t x, uint64_t y, uint64_t z) {
  return "{" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + "}";
}

}  // namespace

// Sizes of 0 count as 1, but for the first.
struct graft_kernel_s::Range {
  cl_uint dimensions = 1;
  size_t global[3], local[3];

  explicit Range(const graft_launch& launch) {
    for (cl_uint i = 0; i < 3; ++i) {
      local[i] = std::max(1u, launch.group[i]);
      global[i] = std::max<uint64_t>(1, launch.grid[i]) * local[i];
      if (global[i] > 1) dimensions = i + 1;
    }
  }
};

graft_kernel_s::graft_kernel_s(graft_device device, std::string name, cl_kernel handle)
    : device(device), name(std::move(name)), handle(handle) {
  cl().GetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof slots, &slots, nullptr);
  cl().GetKernelWorkGroupInfo(handle, device->listed.device, CL_KERNEL_LOCAL_MEM_SIZE,
                              sizeof own_local, &own_local, nullptr);
  if (own_local == kNoLocal) own_local = 0;
  cl().GetKernelWorkGroupInfo(handle, device->listed.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most,
                              &most, nullptr);
  size_t wanted[3] = {};
  cl().GetKernelWorkGroupInfo(handle, device->listed.device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                              sizeof wanted, wanted, nullptr);
  alone = wanted[0] == 1;
}

graft_kernel_s::~graft_kernel_s() { cl().ReleaseKernel(handle); }

std::unique_ptr<graft_kernel_s> graft_kernel_s::again() const {
  cl_program program = nullptr;
  cl_int code =
      cl().GetKernelInfo(handle, CL_KERNEL_PROGRAM, sizeof(cl_program), &program, nullptr);
  if (code != CL_SUCCESS) return nullptr;
  const cl_kernel made = cl().CreateKernel(program, name.c_str(), &code);
  if (code != CL_SUCCESS) return nullptr;
  return std::make_unique<graft_kernel_s>(device, name, made);
}

graft_status graft_kernel_s::set_arguments(const graft_launch& launch) {
  Memory& memory = *device->memory;
  if (const uint64_t now = memory.generation(); now != generation) {
    if (const cl_int code = memory.announce(handle); code != CL_SUCCESS) {
      return device->failed(code, "naming the memory of " + name, GRAFT_LAUNCH_FAILED);
    }
    for (Argument& set : arguments) {
      if (set.kind == GRAFT_ARGUMENT_ADDRESS) set.kind = ~0u;
    }
    generation = now;
  }
  if (arguments.size() < launch.argument_count) arguments.resize(launch.argument_count);
  cl_uint index = 0;
  for (uint32_t i = 0; i < launch.argument_count; ++i) {
    const graft_argument& given = launch.arguments[i];
    Argument& set = arguments[i];
    const bool address = given.kind == GRAFT_ARGUMENT_ADDRESS;
    const cl_uint at = index;
    index += address ? memory.arguments_per_address() : 1;
    if (set.kind == given.kind && set.value == given.value &&
        (address || set.bytes == given.bytes)) {
      continue;
    }
    set.kind = ~0u;
    cl_int code = CL_INVALID_ARG_VALUE;
    if (address) {
      code = memory.set_argument(handle, at, given.value);
    } else if (given.kind == GRAFT_ARGUMENT_SCALAR) {
      code = cl().SetKernelArg(handle, at, given.bytes, &given.value);
    } else if (given.kind == GRAFT_ARGUMENT_LOCAL) {
      code = cl().SetKernelArg(handle, at, given.bytes, nullptr);
    }
    if (code != CL_SUCCESS) return device->failed(code, told(i, given), GRAFT_INVALID_ARGUMENT);
    set = {given.kind, given.value, given.bytes};
  }
  return GRAFT_OK;
}

std::string graft_kernel_s::told(uint32_t index, const graft_argument& given) const {
  return "kernel " + name + ": argument " + std::to_string(index) + " of kind " +
         std::to_string(given.kind) + " and " + std::to_string(given.bytes) + " bytes";
}

graft_status graft_kernel_s::check(const graft_launch& launch) const {
  const cl_uint per_address = device->memory->arguments_per_address();
  const uint64_t room = device->listed.capabilities.properties.local_memory_bytes;
  cl_uint count = 0;
  uint64_t local = own_local;
  for (uint32_t i = 0; i < launch.argument_count; ++i) {
    const graft_argument& given = launch.arguments[i];
    count += given.kind == GRAFT_ARGUMENT_ADDRESS ? per_address : 1;
    if (given.kind == GRAFT_ARGUMENT_LOCAL) {
      local += std::min(given.bytes, room + 1);
    } else if (given.kind == GRAFT_ARGUMENT_SCALAR ? given.bytes > sizeof given.value
                                                   : given.kind != GRAFT_ARGUMENT_ADDRESS) {
      return fail(GRAFT_INVALID_ARGUMENT, told(i, given));
    }
  }
  if (count != slots) {
    return fail(GRAFT_INVALID_ARGUMENT, "kernel " + name + " takes " + std::to_string(slots) +
                                            " OpenCL arguments, but the launch gives " +
                                            std::to_string(count));
  }
  // OpenCL is not asked, since there are implementations that abort.
  if (local > room) {
    return fail(GRAFT_LAUNCH_FAILED, "kernel " + name + " needs " + std::to_string(local) +
                                         " bytes of local memory, but the device has " +
                                         std::to_string(room));
  }
  const Range range(launch);
  const size_t group = range.local[0] * range.local[1] * range.local[2];
  return most == 0 || group <= most ? GRAFT_OK : refuse(CL_INVALID_WORK_GROUP_SIZE, launch);
}

graft_status graft_kernel_s::refuse(cl_int code, const graft_launch& launch) const {
  std::string what = "kernel " + name + " on a grid of " +
                     triple(launch.grid[0], launch.grid[1], launch.grid[2]) + " groups of " +
                     triple(launch.group[0], launch.group[1], launch.group[2]);
  if (most != 0) what += " (groups up to " + std::to_string(most) + " fit)";
  return device->failed(code, what, GRAFT_LAUNCH_FAILED);
}

size_t graft_kernel_s::bundle(const graft_launch& launch, const Range& range) const {
  const graft_device_properties& has = device->listed.capabilities.properties;
  if (has.device_class != GRAFT_GPU_LIKE || range.dimensions != 1) return 1;
  if (own_local != 0 || alone) return 1;
  const auto shared = [](const graft_argument& a) { return a.kind == GRAFT_ARGUMENT_LOCAL; };
  if (std::any_of(launch.arguments, launch.arguments + launch.argument_count, shared)) return 1;
  const size_t room = std::min<size_t>(has.max_group_size, most == 0 ? 1 : most);
  return range.local[0] == 1 && room >= kBundle && range.global[0] >= kBundle ? kBundle : 1;
}

graft_status graft_kernel_s::launch(Queue& queue, const graft_launch& launch) {
  Range range(launch);
  const size_t bundled = bundle(launch, range), all = range.global[0];
  const size_t whole = all / bundled * bundled, rest = bundled == 1 ? 0 : all - whole;
  cl_event event = nullptr, last = nullptr;
  {
    std::lock_guard lock(mutex);
    if (graft_status status = set_arguments(launch); status != GRAFT_OK) return status;
    const auto enqueue = [&](size_t first, size_t items, size_t group, cl_event* out) {
      range.global[0] = items;
      range.local[0] = group;
      return cl().EnqueueNDRangeKernel(queue.handle, handle, range.dimensions,
                                       first == 0 ? nullptr : &first, range.global, range.local, 0,
                                       nullptr, out);
    };
    cl_int code = enqueue(0, whole, bundled == 1 ? range.local[0] : bundled, &event);
    if (code != CL_SUCCESS) return refuse(code, launch);
    if (rest != 0) code = enqueue(whole, rest, 1, &last);
    if (code != CL_SUCCESS) {
      queue.note(event, launch.tag, true);
      return refuse(code, launch);
    }
  }
  queue.note(event, launch.tag, true);
  if (last != nullptr) queue.note(last, launch.tag, false);
  return GRAFT_OK;
}

namespace graft::opencl {
namespace {

struct Launch {
  graft_kernel kernel;
  graft_launch launch;
};

graft_status run_launch(Queue& queue, uint32_t&, const void* head, const void* tail) {
  Launch task;
  std::memcpy(&task, head, sizeof task);
  task.launch.arguments = static_cast<const graft_argument*>(tail);
  return task.kernel->launch(queue, task.launch);
}

}  // namespace

graft_status KernelSlots::kernel_launch(graft_stream stream, graft_kernel kernel,
                                        const graft_launch* launch) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (kernel == nullptr || launch == nullptr ||
      (launch->argument_count != 0 && launch->arguments == nullptr)) {
    return fail(GRAFT_INVALID_ARGUMENT, "kernel_launch: kernel, launch or arguments missing");
  }
  if (launch->grid[0] == 0) return GRAFT_OK;
  if (graft_status status = kernel->check(*launch); status != GRAFT_OK) return status;
  const Launch task = {kernel, *launch};
  const size_t tail = launch->argument_count * sizeof(graft_argument);
  return stream->queue->backlog.enter(
      {run_launch, nullptr, launch->tag, 0, sizeof task, uint32_t(tail), &task, launch->arguments});
}

}  // namespace graft::opencl
