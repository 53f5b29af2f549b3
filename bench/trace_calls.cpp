// bench/trace_calls.cpp: calls of a driver with and without the trace layer, for bench/tracing.py,
// which counts their instructions.
//
// trace_calls FOLDER SETTINGS KIND CALLS: FOLDER has graft_host.so and graft_trace.so; SETTINGS as
// GRAFT_DRIVER_TRACE, "" for no layer; KIND is query, fill or launch.
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "graft/driver_trace.h"

namespace {

const std::string kAdd =
    "#include <stdint.h>\ntypedef union { float* address; uint64_t bits; } argument;\n"
    "void add(const argument* a, uint64_t begin, uint64_t end) {\n"
    "  for (uint64_t i = begin; i < end; ++i)\n"
    "    a[2].address[i] = a[0].address[i] + a[1].address[i];\n}\n";

void* symbol(const std::string& library, const char* name) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW);
  return opened == nullptr ? nullptr : dlsym(opened, name);
}

graft_status load(const std::string& folder, const char* settings, graft_driver_table* table) {
  const auto query = reinterpret_cast<graft_driver_query_function>(
      symbol(folder + "/graft_host.so", "graft_driver_query"));
  table->abi_major = GRAFT_ABI_MAJOR;
  table->abi_minor = GRAFT_ABI_MINOR;
  table->slot_count = GRAFT_SLOT_COUNT;
  if (*settings == '\0') return query(table);
  const auto front = reinterpret_cast<graft_trace_front_function>(
      symbol(folder + "/graft_trace.so", "graft_trace_front"));
  return front(query, settings, table, nullptr, 0);
}

graft_kernel add_kernel(const graft_driver_table& t, graft_device device) {
  std::string blob;
  const graft_sink sink{&blob, [](void* context, const void* data, size_t bytes) {
                          static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                                     bytes);
                        }};
  graft_program program = nullptr;
  graft_kernel kernel = nullptr;
  t.program_compile(device, kAdd.data(), kAdd.size(), "", sink);
  t.program_load(device, blob.data(), blob.size(), &program);
  t.kernel_find(device, program, "add", &kernel);
  return kernel;
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  graft_driver_table t{};
  graft_device device = nullptr;
  graft_stream stream = nullptr;
  graft_event event = nullptr;
  graft_address memory = 0;
  if (load(words[1], words[2], &t) != GRAFT_OK || t.device_open(0, &device) != GRAFT_OK) return 1;
  t.stream_create(device, 0, &stream);
  t.event_create(device, 0, &event);
  t.memory_allocate(device, 4096, &memory);
  const std::string kind = words[3];
  const graft_kernel kernel = kind == "launch" ? add_kernel(t, device) : nullptr;
  graft_argument arguments[3] = {};
  for (int i = 0; i < 3; ++i) {
    arguments[i].access = i == 2 ? GRAFT_ACCESS_WRITE : GRAFT_ACCESS_READ;
    arguments[i].value = memory + 64u * i;
    arguments[i].bytes = 64;
  }
  const graft_launch launch{sizeof(graft_launch), 0, {16, 1, 1}, {1, 1, 1}, 3, arguments};
  const uint32_t zero = 0;
  t.fill(stream, memory, 4096, &zero, 4, 0);
  const bool queries = kind == "query", fills = kind == "fill";
  const long calls = std::atol(words[4]);
  for (long i = 0; i < calls; ++i) {
    if (queries) {
      t.event_query(event);
      continue;
    }
    if (fills) t.fill(stream, memory, 64, &zero, 4, 0);
    if (kernel != nullptr) t.kernel_launch(stream, kernel, &launch);
    if (i % 100 == 99) t.stream_synchronize(stream);
  }
  t.stream_synchronize(stream);
}
