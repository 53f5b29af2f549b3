// src/torch/device/interrupts.cpp: lets Ctrl-C, and what other signals raise, end a wait for the
// device.
#include <pybind11/pybind11.h>

#include <exception>
#include <memory>
#include <utility>

#include "runtime/driver/bounded_wait.h"
#include "torch/device/attach.h"
#include "torch/version/python.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

unsigned long main_thread = 0;
py::error_already_set* postponed = nullptr;  // guarded by Python's lock

// Python runs the handlers of signals on its main thread alone.
void check_signals() {
  if (PyThread_get_thread_ident() != main_thread || Py_IsInitialized() == 0 ||
      Py_IsFinalizing() != 0) {
    return;
  }
  const py::gil_scoped_acquire lock;
  const py::error_scope outer;  // a destructor may wait while an exception is under way
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

int raise_postponed(void*) {
  const std::unique_ptr<py::error_already_set> raised(std::exchange(postponed, nullptr));
  if (raised == nullptr) return 0;
  raised->restore();
  return -1;
}

void postpone(std::exception_ptr interrupt) noexcept {
  try {
    std::rethrow_exception(std::move(interrupt));
  } catch (const py::error_already_set& error) {
    const py::gil_scoped_acquire lock;
    if (postponed != nullptr) return;
    postponed = new py::error_already_set(error);
    Py_AddPendingCall(&raise_postponed, nullptr);
  } catch (...) {
  }
}

}  // namespace

void attach_interrupts() {
  const py::gil_scoped_acquire lock;
  const py::object thread = py::module_::import("threading").attr("main_thread")();
  main_thread = py::cast<unsigned long>(thread.attr("ident"));
  set_interrupt_check(&check_signals, &postpone);
}

}  // namespace graft::binding
