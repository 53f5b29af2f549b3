// src/torch/compiled/call_facts.cpp: what has to be equal for a call to do what an earlier one did.
#include "torch/compiled/call_facts.h"

#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <string>

#include "torch/device/type.h"
#include "torch/version/autograd.h"
#include "torch/version/dispatch.h"
#include "torch/version/python.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

// A loop of its own: this comes twice for each tensor of each compiled call, of few dimensions.
bool alike(at::IntArrayRef given, at::IntArrayRef kept) {
  const size_t count = kept.size();
  if (given.size() != count) return false;
  const int64_t *const a = given.data(), *const b = kept.data();
  for (size_t i = 0; i < count; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

bool is_plain(PyObject* value) {
  return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
         PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) || THPDtype_Check(value) ||
         THPDevice_Check(value);
}

bool equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  const int found = PyObject_RichCompareBool(a, b, Py_EQ);
  if (found < 0) throw py::error_already_set();
  return found != 0;
}

size_t first_place(const std::vector<PyObject*>& all, PyObject* one) {
  return static_cast<size_t>(std::ranges::find(all, one) - all.begin());
}

}  // namespace

Modes Modes::now() {
  Modes now;
  now.gradients = c10::GradMode::is_enabled();
  now.inference = c10::InferenceMode::is_enabled();
  now.autocast = at::autocast::is_autocast_enabled(kDeviceType);
  if (now.autocast) now.autocast_dtype = at::autocast::get_autocast_dtype(kDeviceType);
  now.deterministic = at::globalContext().deterministicAlgorithms();
  now.default_dtype = c10::get_default_dtype_as_scalartype();
  return now;
}

bool Modes::observed() {
  return c10::impl::TorchDispatchModeTLS::any_modes_set() ||
         at::impl::torch_function_mode_enabled() || torch::jit::tracer::isTracing() ||
         c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

TensorFact::TensorFact(const at::Tensor& tensor)
    : dtype_(tensor.scalar_type()),
      device_(tensor.device()),
      keys_(tensor.key_set()),
      gradient_(tensor.requires_grad()),
      sizes_(tensor.sizes().begin(), tensor.sizes().end()),
      strides_(tensor.strides().begin(), tensor.strides().end()) {}

bool TensorFact::holds(const at::Tensor& tensor) const {
  return tensor.scalar_type() == dtype_ && tensor.device() == device_ &&
         tensor.key_set() == keys_ && tensor.requires_grad() == gradient_ &&
         alike(tensor.sizes(), sizes_) && alike(tensor.strides(), strides_);
}

bool is_plain_tensor(PyObject* value) {
  return THPVariable_CheckExact(value) ||
         reinterpret_cast<PyObject*>(Py_TYPE(value)) == ParameterClass;
}

std::optional<CallArguments> CallArguments::of(PyObject* arguments, PyObject* keywords,
                                               std::string* out_unknown) {
  CallArguments made;
  const bool known = made.add(arguments, made.arguments_, out_unknown) &&
                     made.add(keywords, made.keywords_, out_unknown);
  if (!known) return std::nullopt;
  return made;
}

bool CallArguments::add(PyObject* value, Value& out, std::string* out_unknown) {
  if (is_plain_tensor(value)) {
    out.kind = Kind::kTensor;
    out.tensor = tensors_.size();
    facts_.push_back({TensorFact(THPVariable_Unpack(value)), first_place(tensors_, value)});
    tensors_.push_back(value);
    return true;
  }
  if (is_plain(value)) {
    out.constant = py::reinterpret_borrow<py::object>(value);
    return true;
  }
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
    out.kind = PyTuple_CheckExact(value) ? Kind::kTuple : Kind::kList;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const member = PySequence_Fast_GET_ITEM(value, i);
      if (!add(member, out.members.emplace_back(), out_unknown)) return false;
    }
    return true;
  }
  if (PyDict_CheckExact(value)) {
    out.kind = Kind::kDictionary;
    out.constant = py::tuple(py::reinterpret_borrow<py::dict>(value));
    PyObject *key = nullptr, *member = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &member);) {
      if (!add(member, out.members.emplace_back(), out_unknown)) return false;
    }
    return true;
  }
  if (out_unknown != nullptr) *out_unknown = Py_TYPE(value)->tp_name;
  return false;
}

bool CallArguments::match(const Tensor& tensor, PyObject* other,
                          const std::vector<PyObject*>& before) const {
  return is_plain_tensor(other) && tensor.fact.holds(THPVariable_Unpack(other)) &&
         first_place(before, other) == tensor.same;
}

bool CallArguments::match(const Value& value, PyObject* other, std::vector<PyObject*>& out) const {
  switch (value.kind) {
    case Kind::kTensor:
      if (!match(facts_[value.tensor], other, out)) return false;
      out.push_back(other);
      return true;
    case Kind::kConstant:
      return equal(value.constant.ptr(), other);
    case Kind::kTuple:
    case Kind::kList: {
      const bool tuple = value.kind == Kind::kTuple;
      if (tuple ? !PyTuple_CheckExact(other) : !PyList_CheckExact(other)) return false;
      const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(other));
      if (count != value.members.size()) return false;
      for (size_t i = 0; i < count; ++i) {
        PyObject* const member = PySequence_Fast_GET_ITEM(other, static_cast<Py_ssize_t>(i));
        if (!match(value.members[i], member, out)) return false;
      }
      return true;
    }
    case Kind::kDictionary: {
      if (!PyDict_CheckExact(other)) return false;
      if (static_cast<size_t>(PyDict_GET_SIZE(other)) != value.members.size()) return false;
      PyObject *key = nullptr, *member = nullptr;
      size_t i = 0;
      for (Py_ssize_t at = 0; PyDict_Next(other, &at, &key, &member); ++i) {
        const auto place = static_cast<Py_ssize_t>(i);
        if (!equal(PyTuple_GET_ITEM(value.constant.ptr(), place), key)) return false;
        if (!match(value.members[i], member, out)) return false;
      }
      return true;
    }
  }
  return false;
}

bool CallArguments::match(PyObject* arguments, PyObject* keywords,
                          std::vector<PyObject*>& out_tensors) const {
  out_tensors.clear();
  return match(arguments_, arguments, out_tensors) && match(keywords_, keywords, out_tensors);
}

}  // namespace graft::binding
