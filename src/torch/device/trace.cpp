// src/torch/device/trace.cpp: with GRAFT_TRACE=1, late errors bring the Python stack of their call.
#include <pybind11/pybind11.h>

#include <cstdlib>
#include <string_view>

#include "runtime/driver/op_trace.h"
#include "torch/device/attach.h"

namespace graft::binding {
namespace {

// Empty on a thread without Python frames, as those of autograd are.
std::string python_stack() {
  if (Py_IsInitialized() == 0) {
    return {};
  }
  const pybind11::gil_scoped_acquire lock;
  try {
    const pybind11::object lines = pybind11::module_::import("traceback").attr("format_stack")();
    return pybind11::cast<std::string>(pybind11::str("").attr("join")(lines));
  } catch (const pybind11::error_already_set&) {
    return {};
  }
}

}  // namespace

void attach_trace() {
  const char* wanted = std::getenv("GRAFT_TRACE");
  if (wanted != nullptr && std::string_view(wanted) == "1") trace_ops(&python_stack);
}

}  // namespace graft::binding
