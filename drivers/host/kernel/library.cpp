// drivers/host/kernel/library.cpp: loads the compute library and offers it as graft.blas and
// graft.dnn.
#include "library.h"

#include <dlfcn.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>

#include "collectives/reduction.h"
#include "graft/driver_slot.h"
#include "memory/arena.h"
#include "process_end.h"
#include "processor.h"
#include "settings.h"
#include "stream/stream.h"

namespace graft::host {

// What a plan computes.
struct Effort {
  uint64_t elements = 0, bytes = 0;  // of its tensors
  uint64_t products = 0;

  // In bytes of memory traffic that would take a core as long; it multiplies and adds some 50 times
  // while it moves a byte.
  uint64_t work() const { return elements * 4 + products / 50; }
};

}  // namespace graft::host

struct graft_plan_s {
  graft_device device;
  std::shared_ptr<graft::host::LibraryPlan> plan;  // held by what is queued, too
  graft::host::Effort effort;
};

namespace graft::host {
namespace {

struct Loaded {
  const LibraryTable* table = nullptr;
  std::string problem;

  Loaded() {
    if (!settings().library) {
      problem = "GRAFT_HOST_LIBRARY=0 switches the library off";
      return;
    }
    std::string path = driver_folder() + "graft_host_onednn.so";
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      problem = std::string(dlerror()) + ": run `pip install onednn-cpu-tbb intel-cmplr-lib-rt`";
      return;
    }
    auto entry = reinterpret_cast<const LibraryTable* (*)()>(dlsym(handle, kLibraryEntry));
    if (entry == nullptr) {
      problem = path + " does not belong to this driver: install Graft again";
      return;
    }
    table = entry();
    table->start(settings().threads, code_level().empty() ? "" : device_level().c_str());
  }
};

const Loaded& loaded() {
  static Loaded* instance = new Loaded;
  return *instance;
}

uint64_t count(const graft_tensor& tensor) {
  uint64_t result = 1;
  for (uint32_t i = 0; i < tensor.rank && i < GRAFT_MAX_RANK; ++i) {
    result *= uint64_t(tensor.sizes[i]);
  }
  return result;
}

Effort effort_of(std::initializer_list<const graft_tensor*> tensors, uint64_t products) {
  Effort effort;
  effort.products = products;
  for (const graft_tensor* tensor : tensors) {
    effort.elements += count(*tensor);
    effort.bytes += count(*tensor) * dtype_bytes(tensor->dtype);
  }
  return effort;
}

// oneDNN makes globals at its first plan and at its first execution of one.
void watch_end_once(std::once_flag& first) { std::call_once(first, watch_process_end); }

// Makes a plan with one of the library's functions.
template <class Descriptor>
graft_status make_plan(graft_device device, const Descriptor* descriptor, const Effort& effort,
                       graft_status (*make)(const Descriptor*, uint64_t*, LibraryPlan**, char*,
                                            size_t),
                       graft_plan_needs* out_needs, graft_plan* out_plan) {
  char message[512] = "";
  uint64_t workspace = 0;
  LibraryPlan* plan = nullptr;
  graft_status status = make(descriptor, &workspace, &plan, message, sizeof message);
  static std::once_flag first;
  watch_end_once(first);
  if (status != GRAFT_OK) return fail(status, message);
  out_needs->workspace_bytes = workspace;
  *out_plan = new graft_plan_s{device, {plan, compute_library()->destroy}, effort};
  return GRAFT_OK;
}

bool place(const Arena& arena, graft_address address, void** out) {
  *out = nullptr;
  return address == 0 || arena.translate(address, out);
}

struct Execute {
  std::shared_ptr<LibraryPlan> plan;
  LibraryExecution execution;

  Outcome operator()() const {
    graft_status status = compute_library()->execute(plan.get(), &execution);
    static std::once_flag first;
    watch_end_once(first);
    return {status, "oneDNN failed to execute a plan"};
  }
};

}  // namespace

graft_status LibrarySlots::matmul_plan(graft_device device, const graft_matmul* m,
                                       graft_plan_needs* out_needs, graft_plan* out_plan) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (m == nullptr || m->struct_size < sizeof *m || out_needs == nullptr || out_plan == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "matmul_plan: descriptor, needs or out pointer missing");
  }
  uint64_t depth = m->a.rank == 0 ? 0 : uint64_t(m->a.sizes[(m->a.rank - 1) % GRAFT_MAX_RANK]);
  const Effort effort = effort_of({&m->a, &m->b, &m->c}, count(m->c) * depth);
  return make_plan(device, m, effort, compute_library()->matmul_plan, out_needs, out_plan);
}

graft_status LibrarySlots::convolution_plan(graft_device device, const graft_convolution* c,
                                            graft_plan_needs* out_needs, graft_plan* out_plan) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (c == nullptr || c->struct_size < sizeof *c || out_needs == nullptr || out_plan == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "convolution_plan: descriptor, needs or out pointer missing");
  }
  const graft_tensor& image = c->transposed != 0 ? c->input : c->output;
  uint64_t channels = c->weight.sizes[0] > 0 ? uint64_t(c->weight.sizes[0]) : 1;
  const Effort effort =
      effort_of({&c->input, &c->weight, &c->output}, count(image) * count(c->weight) / channels);
  return make_plan(device, c, effort, compute_library()->convolution_plan, out_needs, out_plan);
}

graft_status LibrarySlots::plan_execute(graft_stream stream, graft_plan plan,
                                        const graft_execution* execution) {
  if (stream == nullptr || plan == nullptr || execution == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "plan_execute: stream, plan or execution missing");
  }
  Execute command = {plan->plan, {}};
  const Arena& arena = *stream->device->arena;
  bool placed = place(arena, execution->workspace, &command.execution.workspace);
  for (int i = 0; i < 3; ++i) {
    placed &= place(arena, execution->tensors[i], &command.execution.tensors[i]);
    placed &= execution->tensors[i] != 0;
  }
  for (int i = 0; i < GRAFT_MAX_EPILOGUES; ++i) {
    placed &= place(arena, execution->operands[i], &command.execution.operands[i]);
  }
  if (!placed)
    return fail(GRAFT_INVALID_ARGUMENT,
                "plan_execute: a tensor, operand or workspace is no address of a device");
  if (strikes(Fault::kLaunch)) {
    return fail(GRAFT_LAUNCH_FAILED, "library call failed: planted by GRAFT_HOST_FAULTS");
  }
  if (strikes(Fault::kHangLaunch)) return stream->hang(execution->tag);
  if (launches_are_dropped()) return stream->admit();
  const Effort& effort = plan->effort;
  if (simulated()) [[unlikely]] {
    return stream->submit_timed(execution->tag, std::max(effort.bytes, effort.work()),
                                simulation().library_ns(2 * effort.products, effort.bytes),
                                command);
  }
  return stream->submit(execution->tag, effort.work(), command);
}

graft_status LibrarySlots::plan_destroy(graft_plan plan) {
  if (plan == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "plan_destroy: no plan given");
  delete plan;
  return GRAFT_OK;
}

const LibraryTable* compute_library() { return loaded().table; }

const char* compute_library_problem() { return loaded().problem.c_str(); }

}  // namespace graft::host
