// src/torch/python_compiled_graph.cpp: compiled graphs for Python.
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "torch/compiled_graph.h"
#include "torch/python.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

GraphValue value_of(py::handle given) {
  if (THPVariable_Check(given.ptr())) return THPVariable_Unpack(given.ptr());
  if (given.is_none()) return {};
  if (PyLong_Check(given.ptr()) != 0) return given.cast<int64_t>();
  throw py::type_error("a compiled graph takes tensors and integers, not " +
                       py::str(py::type::of(given)).cast<std::string>());
}

py::object object_of(const GraphValue& value) {
  if (const auto* tensor = std::get_if<at::Tensor>(&value)) return py::cast(*tensor);
  if (const auto* integer = std::get_if<int64_t>(&value)) return py::int_(*integer);
  return py::none();
}

py::list run(CompiledGraph& graph, const py::list& given) {
  std::vector<GraphValue> inputs;
  inputs.reserve(given.size());
  for (py::handle one : given) inputs.push_back(value_of(one));
  std::vector<GraphValue> results;
  {
    const py::gil_scoped_release unlocked;
    results = translate([&] { return graph.run(inputs); });
  }
  py::list list;
  for (const GraphValue& one : results) list.append(object_of(one));
  return list;
}

}  // namespace

void bind_compiled_graphs(py::module& module) {
  py::class_<GraphCounts>(module, "GraphCounts", "How the nodes of a compiled graph run.")
      .def_readonly("nodes", &GraphCounts::nodes)
      .def_readonly("fused", &GraphCounts::fused, "Nodes in kernels that the compiler made.")
      .def_readonly("kernels", &GraphCounts::kernels, "Kernels that the compiler made.")
      .def_readonly("library", &GraphCounts::library, "Nodes that the kernel library computes.")
      .def_readonly("eager", &GraphCounts::eager, "Nodes without a kernel, by operator.")
      .def_readonly("arena_bytes", &GraphCounts::arena_bytes);
  using Externals = std::map<std::string, at::Tensor>;
  py::class_<CompiledGraph, std::shared_ptr<CompiledGraph>>(module, "CompiledGraph")
      .def(py::init([](const std::string& text, int64_t device, const Externals& externals) {
             const py::gil_scoped_release unlocked;
             return translate([&] {
               return std::make_shared<CompiledGraph>(text, static_cast<c10::DeviceIndex>(device),
                                                      externals);
             });
           }),
           py::arg("text"), py::arg("device"), py::arg("externals"))
      .def("run", torch::wrap_pybind_function(&run))
      .def("counts", torch::wrap_pybind_function_no_gil([](CompiledGraph& graph) {
             return translate([&] { return graph.counts(); });
           }));
}

}  // namespace graft::binding
