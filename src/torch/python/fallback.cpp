// src/torch/python/fallback.cpp: the fallback's counters and policy for Python.
#include "torch/device/fallback_count.h"
#include "torch/python/python.h"

namespace graft::binding {

void bind_fallback(pybind11::module& module) {
  pybind11::class_<FallbackCount>(module, "FallbackCount",
                                  "An operator's work on the CPU since the last reset.")
      .def_readonly("calls", &FallbackCount::calls)
      .def_readonly("bytes", &FallbackCount::bytes,
                    "Bytes copied between device and host, both ways.")
      .def_readonly("seconds", &FallbackCount::seconds)
      .def_readonly("reason", &FallbackCount::reason,
                    "Why the device could not run its kernel; empty if Graft has no kernel.")
      .def("__repr__", [](const FallbackCount& count) {
        return "FallbackCount(calls=" + std::to_string(count.calls) +
               ", bytes=" + std::to_string(count.bytes) +
               ", seconds=" + std::to_string(count.seconds) + ")";
      });
  define(module, "fallback_counts", &fallback_counts);
  define(module, "reset_fallback_counts", &reset_fallback_counts);
  define(module, "fallback_policy", [] { return policy_name(fallback_policy()); });
  define(module, "set_fallback_policy",
         [](const std::string& name) { set_fallback_policy(policy_named(name)); });
}

}  // namespace graft::binding
