// src/torch/python/distributed.cpp: the backend of torch.distributed for Python.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <chrono>
#include <utility>

#include "torch/device/backward_watch.h"
#include "torch/distributed/process_group.h"
#include "torch/python/python.h"
#include "torch/version/c10d.h"
#include "torch/version/python.h"

namespace graft::binding {
namespace {

namespace py = pybind11;
using Options = GroupOptions;

c10::intrusive_ptr<ProcessGroup> make(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                      int size, const c10::intrusive_ptr<c10d::Backend>& host,
                                      c10::intrusive_ptr<Options> options) {
  return c10::make_intrusive<ProcessGroup>(store, rank, size, host, std::move(options));
}

c10::intrusive_ptr<Options> make_options(std::string name, std::chrono::milliseconds timeout,
                                         std::vector<uint64_t> global_ranks, std::string group_name,
                                         std::string engine) {
  auto options = c10::make_intrusive<Options>(std::move(name), timeout, std::move(engine));
  options->global_ranks_in_group = std::move(global_ranks);
  options->group_name = std::move(group_name);
  return options;
}

// The group holds the backend, so the backend must not hold the group.
void tell_group(ProcessGroup& backend, const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  backend.on_bound([weak = c10::weak_intrusive_ptr<c10d::ProcessGroup>(group)](at::Device device) {
    if (const auto bound = weak.lock()) bound->setBoundDeviceId(device);
  });
}

// seen is kept for good: whether it is called or not, no thread without Python's lock frees it.
void watch(py::function seen) {
  watch_first_backward([kept = seen.release().ptr()] {
    const py::gil_scoped_acquire lock;
    try {
      py::reinterpret_borrow<py::function>(kept)();
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("a backward pass");
    }
  });
}

}  // namespace

void bind_distributed(py::module& module) {
  // A build of PyTorch may have no torch.distributed; then there is nothing to derive from.
  if (!py::hasattr(py::module::import("torch._C"), "_distributed_c10d")) return;
  module.def("watch_first_backward", &watch, py::arg("seen"),
             "Calls seen() once, before the first backward pass on a device.");
  module.def("unwatch_backward", &unwatch_backward);
  py::class_<Options, c10d::Backend::Options, c10::intrusive_ptr<Options>>(module, "GroupOptions")
      .def(py::init(&make_options), py::arg("backend"), py::arg("timeout"),
           py::arg("global_ranks") = std::vector<uint64_t>(), py::arg("group_name") = "",
           py::arg("engine") = "auto")
      .def_readwrite("engine", &Options::engine)
      .def("__copy__", [](const Options& options) { return c10::make_intrusive<Options>(options); })
      .def("__deepcopy__", [](const Options& options, const py::dict&) {
        return c10::make_intrusive<Options>(options);
      });
  py::class_<ProcessGroup, c10d::Backend, c10::intrusive_ptr<ProcessGroup>>(module, "ProcessGroup")
      .def(py::init(&make), py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("host"),
           py::arg("options"), py::call_guard<py::gil_scoped_release>())
      .def("tell_group", &tell_group, py::arg("group"))
      .def_property_readonly("options", &ProcessGroup::options)
      .def(
          "perform_nocolor_split", [](ProcessGroup&, const py::object&) {}, py::arg("device"),
          "Called by ranks outside of a new group; does nothing.");
}

}  // namespace graft::binding
