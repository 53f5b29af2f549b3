// src/torch/compiled/argument_list.h: a Python list for arguments, used again by the next call.
#pragma once

#include <utility>

#include "torch/version/python.h"

namespace graft::binding {

// Between calls it holds None alone, so no argument lives longer. A call within the call, and one
// whose function kept the list or changed its size, finds none and makes its own. Call with
// Python's lock.
class ArgumentList {
 public:
  // A list of size members, all to be set with PyList_SetItem.
  pybind11::list take(size_t size) {
    pybind11::object spare = std::exchange(spare_, {});
    if (spare && PyList_GET_SIZE(spare.ptr()) == static_cast<Py_ssize_t>(size)) {
      return pybind11::reinterpret_steal<pybind11::list>(spare.release());
    }
    return pybind11::list(size);
  }

  void give_back(pybind11::list list) {
    if (list.ref_count() != 1) return;
    const Py_ssize_t size = PyList_GET_SIZE(list.ptr());
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyList_SetItem(list.ptr(), i, pybind11::none().release().ptr());
    }
    spare_ = std::move(list);
  }

 private:
  pybind11::object spare_;
};

}  // namespace graft::binding
