// src/torch/python/first_compile.cpp: calls Python before PyTorch first compiles a function.
#include <c10/util/Logging.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "torch/python/python.h"

namespace graft::binding {
namespace {

struct Subscription {
  std::vector<std::string> events;
  pybind11::function action;
  std::atomic<bool> done{false};
  bool to_stderr;  // as PyTorch's own logger, whose place this one takes
};

void on_event(Subscription& self, const std::string& event) {
  if (self.to_stderr) std::cerr << "PYTORCH_API_USAGE " << event << '\n';
  if (std::ranges::find(self.events, event) == self.events.end()) return;
  if (self.done.exchange(true)) return;
  const pybind11::gil_scoped_acquire gil;
  try {
    self.action();
  } catch (pybind11::error_already_set& error) {
    error.discard_as_unraisable("a setting that Graft makes before the first compilation");
  }
}

// PyTorch calls the logger once for each event, at any time until the process ends.
void before_first(std::vector<std::string> events, pybind11::function action) {
  const bool to_stderr = std::getenv("PYTORCH_API_USAGE_STDERR") != nullptr;
  auto* const kept = new Subscription{std::move(events), std::move(action), {}, to_stderr};
  c10::SetAPIUsageLogger([kept](const std::string& event) { on_event(*kept, event); });
}

}  // namespace

void bind_first_compile(pybind11::module& module) { module.def("before_first", &before_first); }

}  // namespace graft::binding
