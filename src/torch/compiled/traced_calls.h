// src/torch/compiled/traced_calls.h: the calls of a model that need no tracing again.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "torch/compiled/argument_list.h"
#include "torch/compiled/call_facts.h"
#include "torch/compiled/model_state.h"
#include "torch/version/python.h"

namespace graft::binding {

// What a call of a model comes down to while everything that a trace looked at is as it was: a
// function of tensors, given the model's and the call's own, whose results are put in place. Call
// all of it with Python's lock.
class TracedCalls {
 public:
  // most: entries; the least recently used ones make room. without_gradients: calls run, and are
  // looked up, as under torch.no_grad(). registrations: a set that grows or shrinks with the
  // kernels that torch.library registers; an entry holds while it has the size of the time of its
  // call. A set of equal size that registers other kernels is not noticed.
  TracedCalls(size_t most, bool without_gradients, pybind11::set registrations);

  // The result of the call, or NotImplemented where no entry is known to hold for it.
  pybind11::object call(pybind11::handle model, pybind11::handle arguments,
                        pybind11::handle keywords);

  // Adds what this call does. function takes a list, or with spread its members, and returns a list
  // or tuple. inputs: by argument of the function ("argument", place among the call's tensors) or
  // ("constant", object). result: the call's result from the function's: ("result", place),
  // ("argument", place), ("constant", object), ("tuple" or "list", members),
  // ("dict", keys, members) or ("made", function of a list, members).
  // Throws RuntimeError for arguments that are no tensors, plain values and containers of them.
  void add(pybind11::handle model, pybind11::handle arguments, pybind11::handle keywords,
           pybind11::object function, bool spread, pybind11::handle inputs,
           pybind11::handle result);

  void clear() { entries_.clear(); }
  size_t size() const { return entries_.size(); }
  uint64_t hits() const { return hits_; }

 private:
  struct Source {
    bool argument = false;
    size_t place = 0;
    pybind11::object constant;
    std::optional<TensorFact> fact;  // of constants that are tensors
  };
  struct Result {
    enum class Kind { kResult, kArgument, kConstant, kTuple, kList, kDictionary, kMade };
    Kind kind = Kind::kConstant;
    size_t place = 0;
    pybind11::object object;  // the constant, the keys, the function
    std::vector<Result> members;
  };
  struct Entry {
    Modes modes;
    Py_ssize_t registrations;
    CallArguments arguments;
    ModelState state;
    pybind11::object function;
    bool spread;
    std::vector<Source> inputs;
    Result result;
    ArgumentList list;
  };

  static bool hold(const std::vector<Source>& sources);
  static Result parsed(pybind11::handle text);
  static pybind11::object called(Entry& entry, const std::vector<PyObject*>& tensors);
  pybind11::object run(Entry& entry, const std::vector<PyObject*>& tensors) const;
  static pybind11::object built(const Result& result, PyObject* results,
                                const std::vector<PyObject*>& tensors);
  Modes modes() const;
  Py_ssize_t registrations() const { return PySet_GET_SIZE(registrations_.ptr()); }

  size_t most_;
  bool without_gradients_;
  pybind11::set registrations_;
  std::list<std::shared_ptr<Entry>> entries_;  // the last used first
  std::vector<PyObject*> tensors_;
  uint64_t hits_ = 0;
};

}  // namespace graft::binding
