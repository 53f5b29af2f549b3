// src/torch/python/offload.cpp: models whose weights stay in host memory, for Python.
#include <memory>
#include <string>
#include <vector>

#include "torch/compiled/write_count.h"
#include "torch/offload/copy_watch.h"
#include "torch/offload/device_copies.h"
#include "torch/offload/gradient_order.h"
#include "torch/offload/shipment.h"
#include "torch/offload/transfer.h"
#include "torch/python/python.h"

namespace graft::binding {

namespace py = pybind11;

namespace {

// A method that is called without Python's lock and whose errors become Python's.
template <class Object, class Result, class... Arguments>
auto unlocked(Result (Object::*method)(Arguments...)) {
  return torch::wrap_pybind_function_no_gil([method](Object& object, Arguments... arguments) {
    return translate([&]() -> Result { return (object.*method)(arguments...); });
  });
}

std::unique_ptr<DeviceCopies> copies_of(const std::string& uncounted, bool gradients) {
  return std::make_unique<DeviceCopies>(uncounted_writes(uncounted), gradients);
}

std::unique_ptr<Shipment> ship(const std::vector<at::Tensor>& hosts, c10::Device device) {
  return translate([&] { return std::make_unique<Shipment>(hosts, device); });
}

}  // namespace

void bind_offload(py::module& module) {
  define(module, "check_host", &check_host);
  define(module, "pinned_copy", &pinned_copy);
  define(module, "resize_memory", &resize_memory);
  define(module, "share_count", &share_count);
  define(module, "count_apart", &count_apart);
  define(module, "hurry_gradient", &hurry_gradient);
  py::class_<CopyWatch>(module, "CopyWatch")
      .def(py::init<const at::Tensor&, bool>(), py::arg("copy"), py::arg("buffer"))
      .def("look", unlocked(&CopyWatch::look))
      .def("written", &CopyWatch::written);
  py::class_<DeviceCopies>(module, "DeviceCopies")
      .def(py::init(torch::wrap_pybind_function(&copies_of)), py::arg("uncounted_writes"),
           py::arg("gradients"))
      .def("add", unlocked(&DeviceCopies::add))
      .def("refresh", unlocked(&DeviceCopies::refresh))
      .def("write_back", unlocked(&DeviceCopies::write_back))
      .def("keep", unlocked(&DeviceCopies::keep))
      .def("__len__", &DeviceCopies::size)
      .def_property_readonly("refreshed", &DeviceCopies::refreshed);
  py::class_<Shipment>(module, "Shipment")
      .def(py::init(torch::wrap_pybind_function_no_gil(&ship)))
      .def_property_readonly("copies", &Shipment::copies)
      .def("write_back", unlocked(&Shipment::write_back));
}

}  // namespace graft::binding
