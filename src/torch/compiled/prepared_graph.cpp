// src/torch/compiled/prepared_graph.cpp: a compiled graph whose weights are prepared once, not at
// each call.
#include "torch/compiled/prepared_graph.h"

#include <string>
#include <utility>

#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/tensor/memory.h"
#include "torch/ve/slot.h"
#include "torch/version/python.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

// Sets members of the list from place begin on.
void set(const py::list& list, Py_ssize_t begin, const py::list& members) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(members.ptr()); ++i) {
    PyObject* const one = PyList_GET_ITEM(members.ptr(), i);
    Py_INCREF(one);
    PyList_SetItem(list.ptr(), begin + i, one);
  }
}

}  // namespace

PreparedGraph::PreparedGraph(py::object prologue, py::object main, std::vector<size_t> taken)
    : prologue_(std::move(prologue)), main_(std::move(main)), taken_(std::move(taken)) {
  TORCH_CHECK_VALUE(!taken_.empty(), "a prologue needs inputs; compute constants before");
}

// Into given_: the tensors among the inputs at taken_, which count the tensors alone.
void PreparedGraph::take(const py::list& inputs) {
  tensors_.clear();
  given_.clear();
  for (const py::handle one : inputs) {
    if (THPVariable_Check(one.ptr())) tensors_.push_back(one.ptr());
  }
  for (const size_t place : taken_) {
    if (place >= tensors_.size()) {
      throw py::index_error("the graph takes more tensors than the " +
                            std::to_string(tensors_.size()) + " given");
    }
    given_.push_back(tensors_[place]);
  }
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
  Stream& stream = current_stream(ve::carrier_index(tensors.front().device()));
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
    take(inputs);
    const c10::Device device = THPVariable_Unpack(given_.front()).device();
    Stream& stream = current_stream(ve::carrier_index(device));
    const bool known = stream.memory_pool() == 0 && fits(given_);
    if (known && kept_->stream != &stream) share_with(stream);
    const py::list prepared = known ? kept_->results : prepare(Objects(given_));
    all = all_.take(inputs.size() + prepared.size());
    set(all, 0, inputs);
    set(all, static_cast<Py_ssize_t>(inputs.size()), prepared);
  });
  py::object results = main_(all);
  all_.give_back(std::move(all));
  return results;
}

}  // namespace graft::binding
