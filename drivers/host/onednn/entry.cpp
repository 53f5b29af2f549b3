// drivers/host/onednn/entry.cpp: the table of graft_host_onednn.so.
#include <cstdio>
#include <exception>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

#include "convolution.h"
#include "kernel/library.h"
#include "matmul.h"
#include "threads.h"

namespace graft::host {
namespace {

// Makes a plan where it will run, and turns what was thrown into a status and a message.
template <auto make, class Descriptor>
graft_status plan(const Descriptor* descriptor, uint64_t* out_workspace, LibraryPlan** out_plan,
                  char* message, size_t capacity) {
  try {
    std::unique_ptr<LibraryPlan> made = arena().execute([&] { return make(*descriptor); });
    *out_workspace = made->workspace_bytes();
    *out_plan = made.release();
    return GRAFT_OK;
  } catch (const Unsupported& error) {
    std::snprintf(message, capacity, "oneDNN driver: %s", error.what);
    return GRAFT_UNSUPPORTED;
  } catch (const dnnl::error& error) {
    std::snprintf(message, capacity, "oneDNN: %s", error.what());
    return error.status == dnnl_out_of_memory ? GRAFT_OUT_OF_MEMORY : GRAFT_UNSUPPORTED;
  } catch (const std::exception& error) {
    std::snprintf(message, capacity, "oneDNN driver: %s", error.what());
    return GRAFT_INTERNAL;
  }
}

graft_status execute(LibraryPlan* plan, const LibraryExecution* execution) {
  try {
    arena().execute([&] { plan->execute(*execution); });
    return GRAFT_OK;
  } catch (const std::exception&) {
    return GRAFT_LAUNCH_FAILED;
  }
}

void destroy(LibraryPlan* plan) { delete plan; }

void keep_to(std::string_view level) {
  if (level.empty()) return;
  dnnl::set_max_cpu_isa(level == "v4"   ? dnnl::cpu_isa::avx512_core
                        : level == "v3" ? dnnl::cpu_isa::avx2
                                        : dnnl::cpu_isa::sse41);
}

void start(uint32_t threads, const char* level) {
  keep_to(level);
  start_threads(threads);
}

const LibraryTable kTable = {
    start,   parallel, plan<plan_matmul, graft_matmul>, plan<plan_convolution, graft_convolution>,
    execute, destroy};

}  // namespace
}  // namespace graft::host

extern "C" GRAFT_DRIVER_EXPORT const graft::host::LibraryTable* graft_host_library() {
  return &graft::host::kTable;
}
