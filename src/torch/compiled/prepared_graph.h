// src/torch/compiled/prepared_graph.h: a compiled graph whose weights are prepared once, not at
// each call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/stream/event.h"
#include "torch/compiled/argument_list.h"
#include "torch/compiled/tensor_watch.h"
#include "torch/version/python.h"

namespace graft::binding {

using Objects = std::vector<PyObject*>;  // borrowed

// Two functions of lists of tensors: the prologue makes of some inputs what the main function gets
// behind its own. The prologue runs again when one of its inputs is another tensor or may hold
// other values (TensorWatch), and at every call where nobody can know. Under the capture of a graph
// it becomes part of the graph. Call with Python's lock.
class PreparedGraph {
 public:
  // taken: which of the tensors among the inputs the prologue gets.
  PreparedGraph(pybind11::object prologue, pybind11::object main, std::vector<size_t> taken);

  // What main returns. Throws IndexError when there are fewer inputs than the prologue takes.
  pybind11::object call(const pybind11::list& inputs);

  uint64_t preparations() const { return preparations_; }

 private:
  struct Kept {
    TensorWatch watch;
    pybind11::list results;
    const Stream* stream;
    std::shared_ptr<Event> ready;
  };

  void take(const pybind11::list& inputs);
  bool fits(const Objects& given) const;
  pybind11::list prepare(const Objects& given);
  void share_with(Stream& stream) const;

  pybind11::object prologue_, main_;
  const std::vector<size_t> taken_;
  std::unique_ptr<Kept> kept_;
  Objects tensors_, given_;  // of the call, before anything else may run
  ArgumentList all_;
  uint64_t preparations_ = 0;
};

}  // namespace graft::binding
