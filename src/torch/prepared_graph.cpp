// src/torch/prepared_graph.cpp: a compiled graph whose weights are prepared once, not at each call.
#include "torch/prepared_graph.h"

#include <torch/csrc/autograd/python_variable.h>

#include <string>
#include <utility>

#include "runtime/device.h"
#include "torch/current.h"
#include "torch/errors.h"
#include "torch/memory.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

// The tensors of a list at places that count its tensors alone; borrowed.
Objects taken_from(const py::list& list, const std::vector<size_t>& places) {
  Objects tensors;
  for (const py::handle one : list) {
    if (THPVariable_Check(one.ptr())) tensors.push_back(one.ptr());
  }
  Objects taken;
  for (const size_t place : places) {
    if (place >= tensors.size()) {
      throw py::index_error("the graph takes more tensors than the " +
                            std::to_string(tensors.size()) + " that it was given");
    }
    taken.push_back(tensors[place]);
  }
  return taken;
}

}  // namespace

PreparedGraph::PreparedGraph(py::object prologue, py::object main, std::vector<size_t> taken)
    : prologue_(std::move(prologue)), main_(std::move(main)), taken_(std::move(taken)) {
  TORCH_CHECK_VALUE(!taken_.empty(), "a prologue without inputs computes constants");
}

bool PreparedGraph::fits(const Objects& given) const {
  if (kept_ == nullptr) return false;
  const std::vector<at::Tensor>& known = kept_->watch.tensors();
  for (size_t i = 0; i < given.size(); ++i) {
    if (!known[i].is_same(THPVariable_Unpack(given[i]))) return false;
  }
  return kept_->watch.unchanged();
}

py::list PreparedGraph::prepare(const Objects& inputs) {
  std::vector<at::Tensor> tensors;
  py::list given;
  for (PyObject* one : inputs) {
    tensors.push_back(THPVariable_Unpack(one));
    given.append(py::reinterpret_borrow<py::object>(one));
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
  for (const py::handle one : kept_->results) {
    record_stream(THPVariable_Unpack(one.ptr()).storage().data_ptr(), stream);
  }
}

py::object PreparedGraph::call(const py::list& inputs) {
  py::list all;
  translate([&] {
    const Objects given = taken_from(inputs, taken_);
    Stream& stream = current_stream(THPVariable_Unpack(given.front()).device().index());
    const bool known = stream.memory_pool() == 0 && fits(given);
    if (known && kept_->stream != &stream) share_with(stream);
    const py::list prepared = known ? kept_->results : prepare(given);
    all = py::reinterpret_steal<py::list>(PySequence_Concat(inputs.ptr(), prepared.ptr()));
  });
  return main_(all);
}

}  // namespace graft::binding
