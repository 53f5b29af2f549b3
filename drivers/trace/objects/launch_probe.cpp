// drivers/trace/objects/launch_probe.cpp: a kernel that counts the work-items of a launch.
#include "objects/launch_probe.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "objects/readback.h"

namespace graft::trace {
namespace {

constexpr uint64_t kMostItems = 1 << 20;
constexpr uint64_t kMargin = 16;  // items that must not run

constexpr const char* kC =
    "typedef union { void* address; unsigned long long bits; } argument;\n"
    "void graft_trace_count(const argument* a, unsigned long long begin,\n"
    "                       unsigned long long end) {\n"
    "  int* count = (int*)a[0].address;\n"
    "  for (unsigned long long i = begin; i < end; ++i) count[i] += 1;\n"
    "}\n";
constexpr const char* kOpencl =
    "#ifdef GRAFT_MEMORY_OFFSETS\n"
    "__kernel void graft_trace_count(__global char* base, ulong offset) {\n"
    "  __global int* count = (__global int*)(base + offset);\n"
    "#else\n"
    "__kernel void graft_trace_count(__global int* count) {\n"
    "#endif\n"
    "  count[get_global_id(0)] += 1;\n"
    "}\n";

const char* source_for(const graft_device_properties& properties) {
  const std::string_view dialect = properties.dialect;
  if (dialect == "c") return kC;
  return dialect == "opencl-c" ? kOpencl : nullptr;
}

void append(void* context, const void* data, size_t bytes) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(data), bytes);
}

// Null if the driver does not make one; what is wrong then is not the launch.
graft_kernel make_kernel(TraceCall& call, const char* source, graft_program* out_program) {
  const graft_driver_table& driver = call.layer.driver();
  if (driver.program_compile == nullptr || driver.program_load == nullptr ||
      driver.kernel_find == nullptr) {
    return nullptr;
  }
  std::string blob;
  graft_kernel kernel = nullptr;
  const std::string text = source;
  const bool made =
      driver.program_compile(call.device, text.c_str(), text.size(), "", {&blob, append}) ==
          GRAFT_OK &&
      driver.program_load(call.device, blob.data(), blob.size(), out_program) == GRAFT_OK &&
      driver.kernel_find(call.device, *out_program, "graft_trace_count", &kernel) == GRAFT_OK;
  if (!made) call.layer.forget_failure();
  return made ? kernel : nullptr;
}

// How often each item ran; empty if the driver failed.
std::vector<int32_t> count_items(TraceCall& call, graft_launch launch, graft_kernel kernel,
                                 graft_address counts, uint64_t items) {
  const graft_driver_table& driver = call.layer.driver();
  const int32_t zero = 0;
  const uint64_t bytes = (items + kMargin) * sizeof zero;
  graft_argument argument{};
  argument.kind = GRAFT_ARGUMENT_ADDRESS;
  argument.access = GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE;
  argument.value = counts;
  argument.bytes = bytes;
  launch.argument_count = 1;
  launch.arguments = &argument;
  std::vector<int32_t> got(items + kMargin);
  if (driver.fill(call.stream_handle, counts, bytes, &zero, sizeof zero, 0) != GRAFT_OK ||
      driver.kernel_launch(call.stream_handle, kernel, &launch) != GRAFT_OK ||
      !read_back(call, got.data(), counts, bytes)) {
    call.layer.forget_failure();
    return {};
  }
  return got;
}

}  // namespace

graft_kernel probe_kernel(TraceCall& call) {
  const char* source = nullptr;
  {
    const std::lock_guard lock(call.layer.mutex);
    const auto device = call.layer.ledger.devices.find(call.device);
    if (device == call.layer.ledger.devices.end()) return nullptr;
    if (std::exchange(device->second.tried_count_kernel, true)) {
      return device->second.count_kernel;
    }
    source = source_for(device->second.properties);
  }
  graft_program program = nullptr;
  const graft_kernel made = source == nullptr ? nullptr : make_kernel(call, source, &program);
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(call.device);
  if (device == call.layer.ledger.devices.end()) return made;
  device->second.count_program = program;
  device->second.count_kernel = made;
  return made;
}

void probe_launch(TraceCall& call, const graft_launch& launch) {
  const uint64_t items = launch.grid[0] * launch.group[0];
  const bool line = launch.grid[1] == 1 && launch.grid[2] == 1 && launch.group[1] == 1 &&
                    launch.group[2] == 1 && launch.struct_size == sizeof launch;
  if (!line || items > kMostItems || !is_quiet(call)) return;
  const graft_kernel kernel = probe_kernel(call);
  if (kernel == nullptr) return;
  const graft_driver_table& driver = call.layer.driver();
  graft_address counts = 0;
  if (driver.memory_allocate(call.device, (items + kMargin) * sizeof(int32_t), &counts) !=
      GRAFT_OK) {
    call.layer.forget_failure();
    return;
  }
  const std::vector<int32_t> got = count_items(call, launch, kernel, counts, items);
  driver.memory_free(call.device, counts);
  for (uint64_t i = 0; i < got.size(); ++i) {
    const int32_t due = i < items ? 1 : 0;
    if (got[i] == due) continue;
    call.driver_broke("lost-item",
                      "in a launch of this shape work-item " + std::to_string(i) + " of " +
                          std::to_string(items) + " ran " + std::to_string(got[i]) + " times",
                      "Run each work-item of the grid once.");
    return;
  }
}

void unload_probe(TraceLayer& layer, graft_device handle) {
  graft_program program = nullptr;
  {
    const std::lock_guard lock(layer.mutex);
    const auto device = layer.ledger.devices.find(handle);
    if (device != layer.ledger.devices.end()) {
      device->second.count_kernel = nullptr;
      program = std::exchange(device->second.count_program, nullptr);
    }
  }
  const auto unload = layer.driver().program_unload;
  if (program != nullptr && unload != nullptr) unload(program);
}

}  // namespace graft::trace
