// src/torch/compiled/call_facts.h: what has to be equal for a call to do what an earlier one did.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "torch/version/python.h"

namespace graft::binding {

// PyTorch's modes of the calling thread that change what a model computes.
struct Modes {
  bool gradients = false, inference = false, autocast = false, deterministic = false;
  at::ScalarType autocast_dtype = at::kFloat, default_dtype = at::kFloat;

  static Modes now();
  bool operator==(const Modes&) const = default;

  // Whether somebody looks at every operator (tracing, fake tensors, functorch, dispatch modes):
  // then a model has to run as it is written.
  static bool observed();
};

// What kernels and gradients depend on, of a tensor of Python: all but its values.
class TensorFact {
 public:
  explicit TensorFact(const at::Tensor& tensor);
  // Whether a tensor is one like it. About 10 ns.
  bool holds(const at::Tensor& tensor) const;

 private:
  at::ScalarType dtype_;
  c10::Device device_;
  c10::DispatchKeySet keys_;
  bool gradient_;
  c10::SmallVector<int64_t, 5> sizes_, strides_;
};

// Whether the object is a torch.Tensor or Parameter, and of no subclass.
bool is_plain_tensor(PyObject* value);

// The arguments of a call: tuples, lists and dictionaries of tensors and of numbers, strings,
// booleans and None. Tensors are told apart by dtype, device, sizes, strides, requires_grad and
// which of them are one object, all else by value.
class CallArguments {
 public:
  // Empty when a value is none of these; out_unknown is then its type's name.
  static std::optional<CallArguments> of(PyObject* arguments, PyObject* keywords,
                                         std::string* out_unknown = nullptr);

  // Whether other arguments are like these; then their tensors, in order, are in out_tensors.
  bool match(PyObject* arguments, PyObject* keywords, std::vector<PyObject*>& out_tensors) const;

  // The tensors of the arguments that this was made of; borrowed.
  const std::vector<PyObject*>& tensors() const { return tensors_; }

 private:
  enum class Kind { kTensor, kConstant, kTuple, kList, kDictionary };
  struct Value {
    Kind kind = Kind::kConstant;
    pybind11::object constant;  // also the tuple of a dictionary's keys
    size_t tensor = 0;          // its place among the tensors
    std::vector<Value> members;
  };
  struct Tensor {
    TensorFact fact;
    size_t same;  // the first place of the same object
  };

  bool add(PyObject* value, Value& out, std::string* out_unknown);
  bool match(const Value& value, PyObject* other, std::vector<PyObject*>& out) const;
  bool match(const Tensor& tensor, PyObject* other, const std::vector<PyObject*>& before) const;

  Value arguments_, keywords_;
  std::vector<Tensor> facts_;
  std::vector<PyObject*> tensors_;
};

}  // namespace graft::binding
