// src/torch/python/module.cpp: the extension module torch_graft._C.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "codegen/ops/op_table.h"
#include "runtime/driver/bounded_wait.h"
#include "runtime/driver/device_name.h"
#include "runtime/driver/fork.h"
#include "runtime/driver/version.h"
#include "runtime/platform/platform.h"
#include "runtime/stream/op_runs.h"
#include "torch/device/attach.h"
#include "torch/device/fallback_count.h"
#include "torch/device/type.h"
#include "torch/python/python.h"
#include "torch/version/autograd.h"

namespace graft::binding {
namespace {

constexpr std::chrono::seconds kPatience(1);  // threads made by those of autograd bear their name

// Whether a thread that runs backward passes is left. PyTorch names them; after stop() it counts
// them no longer, though they still have Python objects to drop.
bool autograd_runs() {
  std::error_code gone;  // a thread may end between its name and this
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name.starts_with("pt_autograd_")) return true;
  }
  return false;
}

void end_autograd() {
  torch::autograd::Engine::get_default_engine().stop();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (autograd_runs() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void attach_and_check() {
  set_device_type_name(device_name());
  attach();
  fallback_policy();  // reads GRAFT_FALLBACK now, so that a wrong one is told of at once
  check_wait_limit();
}

// Autograd's threads still drop Python objects: once the interpreter is gone that aborts.
void end_threads_and_work() {
  if (graft::forked_child()) return;
  if (graft::platform().any_device_open()) end_autograd();
  graft::platform().shutdown();
}

}  // namespace
}  // namespace graft::binding

PYBIND11_MODULE(_C, module) {
  using namespace graft::binding;
  module.doc() = "Attaches Graft to PyTorch; the device's module and torch_graft are its faces.";
  define(module, "attach", &attach_and_check);
  define(module, "shutdown", [] { end_threads_and_work(); });
  define(module, "version", []() -> std::string { return graft::version(); });
  define(module, "op_table_json", &graft::op_table_json);
  define(module, "count_runs", &graft::count_runs);
  define(module, "runs_json", &graft::runs_json);
  bind_devices(module);
  bind_memory(module);
  bind_sharing(module);
  bind_fallback(module);
  bind_graphs(module);
  bind_distributed(module);
  bind_compiler(module);
  bind_optimize(module);
  bind_deploy(module);
  bind_offload(module);
  bind_compiled_graphs(module);
  bind_ve(module);
  bind_first_compile(module);
}
