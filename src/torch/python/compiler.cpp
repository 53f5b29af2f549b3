// src/torch/python/compiler.cpp: the graph compiler's text form, passes and drawing for Python.
#include <link.h>

#include <string>
#include <vector>

#include "compiler/analysis/drawing.h"
#include "compiler/analysis/verifier.h"
#include "compiler/graph/operators.h"
#include "compiler/graph/text.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/memory_plan.h"
#include "torch/dispatch/user_kernels.h"
#include "torch/python/python.h"

namespace graft::binding {
namespace {

using compiler::Graph;
using compiler::Pass;

constexpr uint64_t kArenaAlignment = 64;

Graph verified(const std::string& text) {
  Graph graph = compiler::parse(text);
  compiler::verify(graph);
  return graph;
}

std::vector<std::string> names_of(bool training) {
  std::vector<std::string> names;
  for (const Pass& pass : training ? compiler::training_passes() : compiler::inference_passes()) {
    names.emplace_back(pass.name);
  }
  return names;
}

Pass pass_named(const std::string& name) {
  std::string known;
  for (const auto& passes :
       {compiler::inference_passes(), compiler::training_passes(), compiler::layout_passes()}) {
    for (const Pass& pass : passes) {
      if (name == pass.name) return pass;
    }
  }
  for (const std::string& one : names_of(false)) known += (known.empty() ? "" : ", ") + one;
  for (const Pass& pass : compiler::layout_passes()) known += std::string(", ") + pass.name;
  throw Error(GRAFT_INVALID_ARGUMENT,
              "the compiler has no pass \"" + name + "\"; for inference there are " + known);
}

std::string optimize(const std::string& text, const std::vector<std::string>& names) {
  std::vector<Pass> passes;
  for (const std::string& name : names) passes.push_back(pass_named(name));
  Graph graph = compiler::parse(text);
  compiler::run_passes(graph, passes);
  return compiler::print(graph);
}

// How many shared libraries the process has opened so far.
uint64_t loaded_libraries() {
  uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

}  // namespace

void bind_compiler(pybind11::module& module) {
  define(module, "compiler_canonical",
         [](const std::string& text) { return compiler::print(verified(text)); });
  define(module, "compiler_is_view", [](const std::string& name) {
    return compiler::find_operator(name)->cls == compiler::OpClass::kView;
  });
  pybind11::class_<UserKernel>(module, "UserKernel", "A kernel that a user registered.")
      .def_readonly("place", &UserKernel::place)
      .def_readonly("slots", &UserKernel::slots);
  define(module, "user_kernels", &user_kernels);
  define(module, "all_user_kernels", &all_user_kernels);
  define(module, "user_autograd_kernels", &user_autograd_kernels);
  define(module, "loaded_libraries", &loaded_libraries);
  define(module, "compiler_passes", &names_of);
  define(module, "compiler_optimize", &optimize);
  define(module, "compiler_arena_bytes",
         [](const std::string& text) { return arena_bytes(verified(text), kArenaAlignment); });
  define(module, "compiler_draw",
         [](const std::string& text) { return compiler::draw(verified(text)); });
}

}  // namespace graft::binding
