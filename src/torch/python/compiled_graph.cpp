// src/torch/python/compiled_graph.cpp: compiled graphs for Python.

#include <utility>
#include <vector>

#include "compiler/run/vendor_choice.h"
#include "torch/compiled/graph.h"
#include "torch/python/python.h"
#include "torch/version/python.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

CallValue value_of(py::handle given) {
  if (THPVariable_Check(given.ptr())) return THPVariable_Unpack(given.ptr());
  if (THPGenerator_Check(given.ptr())) return given.cast<at::Generator>();
  if (given.is_none()) return {};
  if (PyLong_Check(given.ptr()) != 0) return given.cast<int64_t>();
  throw py::type_error("a compiled graph takes tensors, integers and generators, not " +
                       py::str(py::type::of(given)).cast<std::string>());
}

py::object object_of(const CallValue& value) {
  if (const auto* tensor = std::get_if<at::Tensor>(&value)) return py::cast(*tensor);
  if (const auto* integer = std::get_if<int64_t>(&value)) return py::int_(*integer);
  return py::none();
}

// The values of a call, in memory that the thread's next call uses again. A graph that runs within
// another's call finds none and takes its own.
class Values {
 public:
  Values() : inputs(std::exchange(spare().first, {})), results(std::exchange(spare().second, {})) {}
  ~Values() {
    inputs.clear();
    results.clear();
    spare() = {std::move(inputs), std::move(results)};
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

 private:
  using Lists = std::pair<std::vector<CallValue>, std::vector<CallValue>>;
  static Lists& spare() {
    thread_local Lists lists;
    return lists;
  }

 public:
  std::vector<CallValue> inputs, results;
};

py::list list_of(const std::vector<CallValue>& values) {
  py::list list(values.size());
  for (size_t i = 0; i < values.size(); ++i) list[i] = object_of(values[i]);
  return list;
}

py::list run(CompiledGraph& graph, const py::list& given) {
  Values values;
  for (py::handle one : given) values.inputs.push_back(value_of(one));
  {
    const py::gil_scoped_release unlocked;
    translate([&] { graph.run(values.inputs, &values.results); });
  }
  return list_of(values.results);
}

py::list run_and_give(CompiledGraph& graph, py::list& given) {
  Values values;
  for (py::handle one : given) values.inputs.push_back(value_of(one));
  given.attr("clear")();
  {
    const py::gil_scoped_release unlocked;
    translate([&] { graph.run_and_give(&values.inputs, &values.results); });
  }
  return list_of(values.results);
}

}  // namespace

void bind_compiled_graphs(py::module& module) {
  module.def(
      "check_vendor_kernels", [] { translate(&compiler::vendor_kernels_as_set); },
      "Raises RuntimeError where GRAFT_VENDOR_KERNELS has a value that it does not know.");
  py::class_<GraphCounts>(module, "GraphCounts", "How the nodes of a compiled graph run.")
      .def_readonly("nodes", &GraphCounts::nodes)
      .def_readonly("fused", &GraphCounts::fused, "Nodes in kernels that the compiler made.")
      .def_readonly("kernels", &GraphCounts::kernels, "Kernels that the compiler made.")
      .def_readonly("library", &GraphCounts::library, "Nodes that the kernel library computes.")
      .def_readonly("vendor", &GraphCounts::vendor, "Nodes in graphs of the driver's compiler.")
      .def_readonly("vendor_graphs", &GraphCounts::vendor_graphs, "The number of these graphs.")
      .def_readonly("eager", &GraphCounts::eager, "Nodes without a kernel, by operator.")
      .def_readonly("arena_bytes", &GraphCounts::arena_bytes);
  py::class_<CompiledGraph, std::shared_ptr<CompiledGraph>>(module, "CompiledGraph")
      .def("run", torch::wrap_pybind_function(&run))
      .def("run_and_give", torch::wrap_pybind_function(&run_and_give),
           "As run, but empties the list, so that the run frees each input after its last use.")
      .def("counts", torch::wrap_pybind_function_no_gil([](CompiledGraph& graph) {
             return translate([&] { return graph.counts(); });
           }));
}

}  // namespace graft::binding
