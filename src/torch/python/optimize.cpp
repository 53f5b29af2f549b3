// src/torch/python/optimize.cpp: watches of tensors and the calls of optimized models for Python.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/graph/text.h"
#include "compiler/passes/lowering.h"
#include "torch/compiled/graph.h"
#include "torch/compiled/prepared_graph.h"
#include "torch/compiled/tensor_watch.h"
#include "torch/compiled/traced_calls.h"
#include "torch/device/current.h"
#include "torch/python/python.h"

namespace graft::binding {

namespace py = pybind11;

namespace {

// The tensors of a call in the order of TracedCalls, or None where it holds other things than
// tensors, plain values and containers of them.
py::object argument_tensors(py::handle arguments, py::handle keywords) {
  const auto found = CallArguments::of(arguments.ptr(), keywords.ptr());
  if (!found.has_value()) return py::none();
  py::list tensors;
  for (PyObject* one : found->tensors()) tensors.append(py::reinterpret_borrow<py::object>(one));
  return tensors;
}

using Strides = std::optional<std::vector<int64_t>>;

// By output; none where they are no numbers, and for what is no tensor.
std::vector<Strides> output_strides(const compiler::Graph& graph) {
  std::vector<Strides> all;
  for (const compiler::Output& output : graph.outputs) {
    Strides& strides = all.emplace_back();
    if (output.value == compiler::kNone) continue;
    strides.emplace();
    for (const compiler::Size& stride : graph.values[output.value].type.strides) {
      if (strides && !stride.is_constant()) strides.reset();
      if (strides) strides->push_back(stride.constant_part());
    }
  }
  return all;
}

using Externals = std::map<std::string, at::Tensor>;
using Compiled = std::shared_ptr<CompiledGraph>;

// The graph's prologue, null where it has none, and what remains, after all passes; which of the
// graph's inputs the prologue takes, and the strides of its outputs. may_lay_out: as for
// compiler::lower_for(). externals: as CompiledGraph takes them.
std::tuple<Compiled, Compiled, std::vector<size_t>, std::vector<Strides>> compile(
    const std::string& text, bool training, int64_t device, bool may_lay_out,
    const Externals& externals) {
  const auto on = static_cast<c10::DeviceIndex>(device);
  const compiler::Mode mode = training ? compiler::Mode::kTraining : compiler::Mode::kInference;
  compiler::DeviceGraphs made_for =
      compiler::lower_for(current_stream(on).device(), compiler::parse(text), mode, may_lay_out);
  for (const std::string& problem : made_for.vendor.problems) TORCH_WARN(problem);
  compiler::Lowered& lowered = made_for.lowered;
  std::vector<Strides> strides = output_strides(lowered.main);
  const auto made = [&](compiler::Graph& graph) {
    return std::make_shared<CompiledGraph>(std::move(graph), on, externals);
  };
  const Compiled main = made(lowered.main);
  return {lowered.prologue ? made(*lowered.prologue) : nullptr, main, std::move(lowered.taken),
          std::move(strides)};
}

}  // namespace

void bind_optimize(py::module& module) {
  py::class_<TensorWatch>(module, "TensorWatch")
      .def(py::init<std::vector<at::Tensor>>())
      .def("look", [](TensorWatch& watch) { translate([&] { watch.look(); }); })
      .def("unchanged", &TensorWatch::unchanged)
      .def("trusted", &TensorWatch::trusted)
      .def("wait_for_writers",
           [](const TensorWatch& watch) { translate([&] { watch.wait_for_writers(); }); });
  py::class_<TracedCalls>(module, "TracedCalls")
      .def(py::init<size_t, bool, py::set>(), py::arg("most"), py::arg("without_gradients"),
           py::arg("registrations"))
      .def("call", torch::wrap_pybind_function(&TracedCalls::call))
      .def("add", torch::wrap_pybind_function(&TracedCalls::add))
      .def("clear", &TracedCalls::clear)
      .def("__len__", &TracedCalls::size)
      .def_property_readonly("hits", &TracedCalls::hits);
  py::class_<PreparedGraph>(module, "PreparedGraph")
      .def(py::init<py::object, py::object, std::vector<size_t>>())
      .def("__call__", torch::wrap_pybind_function(&PreparedGraph::call))
      .def_property_readonly("preparations", &PreparedGraph::preparations);
  define(module, "compile_graph", &compile);
  module.def("argument_tensors", torch::wrap_pybind_function(&argument_tensors));
  module.def("calls_are_observed", &Modes::observed);
  py::class_<ModelState>(module, "ModelState")
      .def(py::init([](py::handle root) { return ModelState(root.ptr()); }))
      .def("holds", [](ModelState& state, py::handle root) { return state.holds(root.ptr()); });
}

}  // namespace graft::binding
