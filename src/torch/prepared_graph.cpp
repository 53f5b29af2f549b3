// src/torch/prepared_graph.cpp: a compiled graph whose weights are prepared once, not at each call.
#include "torch/prepared_graph.h"

#include <torch/csrc/autograd/python_variable.h>

#include <utility>

#include "runtime/device.h"
#include "torch/current.h"
#include "torch/errors.h"
#include "torch/memory.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

const at::Tensor& tensor_at(const py::list& list, size_t place) {
  if (place >= list.size()) throw py::index_error("the graph takes more inputs than it was given");
  PyObject* const one = PyList_GET_ITEM(list.ptr(), static_cast<Py_ssize_t>(place));
  TORCH_CHECK_TYPE(THPVariable_Check(one), "input ", place, " of the graph is no tensor");
  return THPVariable_Unpack(one);
}

}  // namespace

PreparedGraph::PreparedGraph(py::object prologue, py::object main, std::vector<size_t> taken)
    : prologue_(std::move(prologue)), main_(std::move(main)), taken_(std::move(taken)) {
  TORCH_CHECK_VALUE(!taken_.empty(), "a prologue without inputs computes constants");
}

bool PreparedGraph::fits(const py::list& inputs) const {
  if (kept_ == nullptr) return false;
  const std::vector<at::Tensor>& known = kept_->watch.tensors();
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!known[i].is_same(tensor_at(inputs, taken_[i]))) return false;
  }
  return kept_->watch.unchanged();
}

py::list PreparedGraph::prepare(const py::list& inputs) {
  std::vector<at::Tensor> tensors;
  py::list given;
  for (const size_t place : taken_) {
    tensors.push_back(tensor_at(inputs, place));
    given.append(inputs[place]);
  }
  Stream& stream = current_stream(tensors.front().device().index());
  ++preparations_;
  if (stream.memory_pool() != 0) return py::list(prologue_(given));  // its replays see new weights
  TensorWatch watch(std::move(tensors));
  watch.look();
  watch.wait_for_writers();
  py::list results(prologue_(given));
  kept_.reset();
  if (watch.trusted()) {
    auto ready = std::make_shared<Event>(stream.device(), false);
    ready->record(stream);
    kept_ = std::make_unique<Kept>(Kept{std::move(watch), results, &stream, std::move(ready)});
  }
  return results;
}

void PreparedGraph::share_with(Stream& stream) const {
  stream.wait(*kept_->ready);
  for (size_t i = 0; i < kept_->results.size(); ++i) {
    record_stream(tensor_at(kept_->results, i).storage().data_ptr(), stream);
  }
}

py::object PreparedGraph::call(const py::list& inputs) {
  py::list all;
  translate([&] {
    Stream& stream = current_stream(tensor_at(inputs, taken_.front()).device().index());
    const bool known = stream.memory_pool() == 0 && fits(inputs);
    if (known && kept_->stream != &stream) share_with(stream);
    const py::list prepared = known ? kept_->results : prepare(inputs);
    all = py::reinterpret_steal<py::list>(PySequence_Concat(inputs.ptr(), prepared.ptr()));
  });
  return main_(all);
}

}  // namespace graft::binding
