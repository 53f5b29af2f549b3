// src/torch/python/python.h: the parts of the extension module torch_graft._C.
#pragma once

#include <utility>

#include "torch/device/errors.h"
#include "torch/version/python.h"

namespace graft::binding {

// Each adds its functions and types to the module.
void bind_devices(pybind11::module& module);
void bind_memory(pybind11::module& module);
void bind_sharing(pybind11::module& module);
void bind_fallback(pybind11::module& module);
void bind_graphs(pybind11::module& module);
void bind_distributed(pybind11::module& module);
void bind_compiler(pybind11::module& module);
void bind_optimize(pybind11::module& module);
void bind_deploy(pybind11::module& module);
void bind_offload(pybind11::module& module);
void bind_compiled_graphs(pybind11::module& module);
void bind_ve(pybind11::module& module);
void bind_first_compile(pybind11::module& module);

// Defines module.name as f, a function or a lambda without captures: called without Python's lock,
// its errors and warnings become Python's.
template <class Function>
void define(pybind11::module& module, const char* name, Function f) {
  const auto bind = [&]<class Result, class... Arguments>(Result (*called)(Arguments...)) {
    const auto translated = [called](Arguments... arguments) -> Result {
      return translate([&]() -> Result { return called(std::forward<Arguments>(arguments)...); });
    };
    module.def(name, torch::wrap_pybind_function_no_gil(translated));
  };
  bind(+f);
}

}  // namespace graft::binding
