// src/torch/compiled/model_state.cpp: whether a model's Python objects still are what a trace has
// seen.
#include "torch/compiled/model_state.h"

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
         name.starts_with("_load_state_dict_") || name == "_non_persistent_buffers_set" ||
         name == "_forward_hooks_with_kwargs" || name == "_forward_hooks_always_called" ||
         name == "_forward_pre_hooks_with_kwargs";  // these change with the hooks themselves
}

PyObject* module_type() {
  static PyObject* const type =
      py::object(py::module_::import("torch.nn").attr("Module")).release().ptr();
  return type;
}

py::object dict_of(PyObject* module) {
  return py::reinterpret_steal<py::object>(PyObject_GenericGetDict(module, nullptr));
}

bool has_dict(PyObject* module, PyObject* dict) {
#if PY_VERSION_HEX < 0x030C0000
  PyObject** const place = _PyObject_GetDictPtr(module);
  return place != nullptr && *place == dict;
#else
  return dict_of(module).ptr() == dict;
#endif
}

}  // namespace

ValueFact::ValueFact(PyObject* value) {
  if (container(value)) {
    kind_ = Kind::kMembers;
    seen_ = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(Py_TYPE(value)));
    mutates_ = !PyTuple_CheckExact(value);
    for (const py::object& one : members_of(value)) {
      members_.emplace_back(one.ptr());
      mutates_ |= members_.back().mutates_;
    }
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
    if (!weak_) return seen_.ptr() == value;
    PyObject* alive = nullptr;
    if (PyWeakref_GetRef(seen_.ptr(), &alive) < 0) throw py::error_already_set();
    Py_XDECREF(alive);  // value is held by the caller
    return alive == value;
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
  if (!PySet_CheckExact(value)) {
    PyObject** const now = PySequence_Fast_ITEMS(value);
    for (size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i].holds(now[i])) return false;
    }
    return true;
  }
  size_t next = 0;
  for (const py::handle one : py::reinterpret_borrow<py::iterable>(value)) {
    if (next == members_.size() || !members_[next++].holds(one.ptr())) return false;
  }
  return next == members_.size();
}

ModelState::ModelState(PyObject* root) { add_module(root); }

void ModelState::add_module(PyObject* module) {
  const auto known = [&](const Owner& owner) { return owner.module == module; };
  if (std::ranges::any_of(owners_, known)) return;
  const py::object dict = dict_of(module);
  if (!dict) throw py::error_already_set();
  owners_.push_back({module, dictionaries_.size()});
  add(dict.ptr());
}

size_t ModelState::add(PyObject* dict) {
  const size_t place = dictionaries_.size();
  dictionaries_.push_back({py::reinterpret_borrow<py::object>(dict), {}});
  versions_.push_back({dict, version_of(dict)});
  std::vector<Item> items;
  std::vector<PyObject*> below;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
    if (ignored(key)) continue;
    items.push_back({py::reinterpret_borrow<py::object>(key), ValueFact(value), -1});
    if (items.back().value.mutates()) mutables_.push_back({place, items.size() - 1, value});
    if (PyDict_Check(value)) items.back().nested = static_cast<ptrdiff_t>(add(value));
    const int module = PyObject_IsInstance(value, module_type());
    if (module < 0) throw py::error_already_set();
    if (module != 0) below.push_back(value);
  }
  dictionaries_[place].items = std::move(items);
  for (PyObject* one : below) add_module(one);
  return place;
}

bool ModelState::same_items(size_t dictionary) {
  PyObject* const dict = versions_[dictionary].dict;
  const std::vector<Item>& items = dictionaries_[dictionary].items;
  const uint64_t version = version_of(dict);
  size_t known = 0;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) known += !ignored(key);
  if (known != items.size()) return false;
  for (const Item& item : items) {
    value = PyDict_GetItemWithError(dict, item.key.ptr());
    if (value == nullptr) {
      PyErr_Clear();
      return false;
    }
    const bool same = item.nested >= 0 ? versions_[static_cast<size_t>(item.nested)].dict == value
                                       : item.value.holds(value);
    if (!same) return false;
  }
  for (Mutable& one : mutables_) {
    if (one.dictionary == dictionary) {
      one.value = PyDict_GetItemWithError(dict, items[one.item].key.ptr());
    }
  }
  versions_[dictionary].version = version;
  return true;
}

bool ModelState::holds(PyObject* root) {
  if (owners_.front().module != root) return false;
  for (size_t i = 0; i < versions_.size(); ++i) {
    const bool bound = kVersions && version_of(versions_[i].dict) == versions_[i].version;
    if (!bound && !same_items(i)) return false;
  }
  const auto held = [this](const Owner& owner) {
    return has_dict(owner.module, versions_[owner.dictionary].dict);
  };
  return std::ranges::all_of(owners_, held) &&
         std::ranges::all_of(mutables_, [this](const Mutable& one) {
           return dictionaries_[one.dictionary].items[one.item].value.holds(one.value);
         });
}

}  // namespace graft::binding
