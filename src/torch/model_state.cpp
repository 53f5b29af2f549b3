// src/torch/model_state.cpp: whether a model's Python objects still are what a trace has seen.
#include "torch/model_state.h"

#include <algorithm>
#include <string_view>

namespace graft::binding {
namespace {

namespace py = pybind11;

uint64_t version_of([[maybe_unused]] PyObject* dict) {
#if PY_VERSION_HEX < 0x030C0000
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  return 0;
#endif
}

constexpr bool kVersions = PY_VERSION_HEX < 0x030C0000;

bool plain(PyObject* value) {
  return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
         PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value);
}

bool container(PyObject* value) {
  return PyList_CheckExact(value) || PyTuple_CheckExact(value) || PySet_CheckExact(value);
}

// The members in an order that is the same while they are.
std::vector<py::object> members_of(PyObject* value) {
  std::vector<py::object> members;
  for (const py::handle one : py::reinterpret_borrow<py::iterable>(value)) {
    members.push_back(py::reinterpret_borrow<py::object>(one));
  }
  return members;
}

bool ignored(PyObject* key) {
  if (!PyUnicode_CheckExact(key)) return false;
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(key, &size);
  if (text == nullptr) throw py::error_already_set();
  const std::string_view name(text, static_cast<size_t>(size));
  return name.starts_with("_graft") || name.starts_with("_state_dict_") ||
         name.starts_with("_load_state_dict_") || name == "_non_persistent_buffers_set";
}

PyObject* module_type() {
  static PyObject* const type =
      py::object(py::module_::import("torch.nn").attr("Module")).release().ptr();
  return type;
}

py::object dict_of(PyObject* module) {
  return py::reinterpret_steal<py::object>(PyObject_GenericGetDict(module, nullptr));
}

}  // namespace

ValueFact::ValueFact(PyObject* value) {
  if (container(value)) {
    kind_ = Kind::kMembers;
    seen_ = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(Py_TYPE(value)));
    for (const py::object& one : members_of(value)) members_.emplace_back(one.ptr());
    return;
  }
  if (plain(value)) {
    kind_ = Kind::kEqual;
  } else if (!PyDict_Check(value)) {
    weak_ = PyType_SUPPORTS_WEAKREFS(Py_TYPE(value));
  }
  seen_ = weak_ ? py::reinterpret_steal<py::object>(PyWeakref_NewRef(value, nullptr))
                : py::reinterpret_borrow<py::object>(PyDict_Check(value) ? Py_None : value);
  if (!seen_) throw py::error_already_set();
}

bool ValueFact::holds(PyObject* value) const {
  if (kind_ == Kind::kIdentity) {
    return weak_ ? PyWeakref_GetObject(seen_.ptr()) == value : seen_.ptr() == value;
  }
  if (kind_ == Kind::kEqual) {
    if (seen_.ptr() == value) return true;
    if (Py_TYPE(seen_.ptr()) != Py_TYPE(value)) return false;
    const int equal = PyObject_RichCompareBool(seen_.ptr(), value, Py_EQ);
    if (equal < 0) throw py::error_already_set();
    return equal != 0;
  }
  if (reinterpret_cast<PyObject*>(Py_TYPE(value)) != seen_.ptr()) return false;
  if (static_cast<size_t>(PyObject_Size(value)) != members_.size()) return false;
  const std::vector<py::object> now = members_of(value);
  for (size_t i = 0; i < now.size(); ++i) {
    if (!members_[i].holds(now[i].ptr())) return false;
  }
  return true;
}

ModelState::ModelState(PyObject* root) {
  add_module(root);
  modules_.clear();
}

void ModelState::add_module(PyObject* module) {
  if (std::ranges::find(modules_, module) != modules_.end()) return;
  modules_.push_back(module);
  const py::object dict = dict_of(module);
  if (!dict) throw py::error_already_set();
  add(module, dict.ptr());
}

size_t ModelState::add(PyObject* owner, PyObject* dict) {
  const size_t place = dictionaries_.size();
  dictionaries_.push_back({owner, dict, version_of(dict), {}, false});
  std::vector<Item> items;
  std::vector<PyObject*> below;
  bool mutates = false;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
    if (ignored(key)) continue;
    items.push_back({py::reinterpret_borrow<py::object>(key), ValueFact(value), -1});
    mutates |= items.back().value.mutates();
    if (PyDict_Check(value)) items.back().nested = static_cast<ptrdiff_t>(add(nullptr, value));
    const int module = PyObject_IsInstance(value, module_type());
    if (module < 0) throw py::error_already_set();
    if (module != 0) below.push_back(value);
  }
  dictionaries_[place].items = std::move(items);
  dictionaries_[place].mutates = mutates;
  for (PyObject* one : below) add_module(one);
  return place;
}

bool ModelState::holds(Dictionary& facts) const {
  if (facts.owner != nullptr && dict_of(facts.owner).ptr() != facts.dict) return false;
  const uint64_t version = version_of(facts.dict);
  const bool bound = kVersions && version == facts.version;
  if (bound && !facts.mutates) return true;
  size_t known = 0;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(facts.dict, &at, &key, &value);) known += !ignored(key);
  if (known != facts.items.size()) return false;
  for (const Item& item : facts.items) {
    value = PyDict_GetItemWithError(facts.dict, item.key.ptr());
    if (value == nullptr) {
      PyErr_Clear();
      return false;
    }
    const bool same = item.nested >= 0
                          ? dictionaries_[static_cast<size_t>(item.nested)].dict == value
                          : item.value.holds(value);
    if (!same) return false;
  }
  facts.version = version;
  return true;
}

bool ModelState::holds(PyObject* root) {
  if (dictionaries_.front().owner != root) return false;
  return std::ranges::all_of(dictionaries_, [this](Dictionary& facts) { return holds(facts); });
}

}  // namespace graft::binding
