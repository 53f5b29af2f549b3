// src/runtime/platform/platform.h: the drivers and devices of this process.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/driver/device_order.h"
#include "runtime/driver/error.h"
#include "runtime/driver/export.h"
#include "runtime/driver/fork.h"
#include "runtime/driver/library.h"
#include "runtime/platform/device.h"
#include "runtime/platform/device_numbers.h"
#include "runtime/platform/early_drivers.h"

namespace graft {

// One per process: platform(). Thread-safe. Drivers come from GRAFT_DRIVER_PATH (absolute paths,
// ':' between them), then from add_driver_path, and are loaded at the first question; a driver that
// cannot be used is a refusal, never an exception, and the rest work. Devices are numbered in the
// order of GRAFT_DEVICES ("cuda,opencl:1,host": a driver's name, or one of its devices); unset, in
// the order of the drivers, simulated devices only when there is no other, and those that want to
// be named not at all. A driver of GRAFT_DRIVER_PATH or add_driver_path of which GRAFT_DEVICES
// names nothing is loaded, but not asked for its devices.
class GRAFT_EXPORT Platform {
 public:
  Platform() = default;
  Platform(const Platform&) = delete;
  Platform& operator=(const Platform&) = delete;

  // Indices below the first are counted devices, those from it on the carried ones that are not
  // counted; no index is above what torch can hold.
  static constexpr int kFirstCarried = DeviceNumbers::kFirstCarried;

  // Names a driver to load at the next question. Once a device
  // was opened, the devices of later drivers follow the others. Throws Error after freeze, naming
  // GRAFT_DRIVER_PATH.
  void add_driver_path(std::string absolute_path);

  // Loads a driver now. Throws Error with the refusal, or as add_driver_path does. A driver that
  // is loaded already is returned as it is.
  Driver& load_driver(const std::string& absolute_path);

  // Autograd has counted the devices: the list is final.
  void freeze();

  // The devices of the drivers in these libraries that count, in the order of their numbers; the
  // indices are -1. Loads no other driver, unless all of the devices are simulated.
  std::vector<DeviceDescription> early_devices(const std::vector<std::string>& paths);

  // Number of devices. Loads libraries but opens no device.
  int device_count();

  // Devices of PyTorch's second slot, torch.device("ve"), as GRAFT_VE_DEVICES lists them ("veda"
  // unless it is set; the form is GRAFT_DEVICES'). The first call asks their drivers; none opens.
  int carried_count();

  // The index that device() has for number of the slot: a counted device keeps its index, any other
  // has kFirstCarried + number. Throws Error: INVALID_ARGUMENT that names the count.
  int carried_index(int number);

  // The device, opened at first use. Throws Error: INVALID_ARGUMENT that names the count for an
  // index out of range, the driver's refusal (again each time) when it cannot be opened, or the
  // error of a forked child.
  Device& device(int index);

  // Puts a new device in the place of one that is lost: gives what the driver had of the lost one
  // back, calls device_reset and opens it again. Streams of the same ids and priorities are there;
  // memory, events, graphs and the lost streams stay lost (Stream::device, OpenDevice::replace).
  // Throws Error: INVALID_ARGUMENT unless the device is lost, UNSUPPORTED without device_reset,
  // BUSY while a thread stays inside a driver, or what the driver says; the device then stays lost.
  // REQUIRES: the calling thread holds no lock under which others call slots.
  Device& reset(int index);

  // The device of a stream.
  Device& device(const Stream& stream) { return device(stream.device().index()); }

  // Valid for as long as the process lives.
  std::vector<const Driver*> drivers();
  std::vector<Refusal> refusals();
  std::vector<Absence> absences();  // of the drivers that were asked
  std::vector<DeviceDescription> descriptions();

  // That of one device, counted or carried. Throws Error as device() does, and opens nothing.
  DeviceDescription description(int index);

  // Every device of the drivers that were asked; the index is -1 if it is neither counted nor
  // carried.
  std::vector<DeviceDescription> found();

  // The device if it is open, else null. Opens and loads nothing.
  Device* open_device(int index) const;
  bool any_device_open() const;
  std::vector<Device*> open_devices() const;

  // Has shutdown call finish first, which must not throw. Any thread; a finish is registered once.
  void before_shutdown(void (*finish)() noexcept);

  // For process exit: open devices take no more commands and finish those they have, for at most
  // Device::kExitLimit (and wait_limit()) together; an interrupt ends that at once. Then those that
  // are done are closed. Not closed are devices with commands left, which a line on standard error
  // names, devices whose memory other processes use, and all of them while another thread is inside
  // a driver. Later calls throw Error, freeing memory stays harmless. Does nothing in a forked
  // child.
  void shutdown() noexcept;

 private:
  friend Platform& platform();
  // A fork waits for the lock, or its child could inherit it locked by a thread that it lacks.
  void before_fork();
  void after_fork();

  // REQUIRES for all below: mutex_ is held.
  void discover();
  // Asks the driver for its devices where the list, as GRAFT_DEVICES has it, may count one.
  Driver* add_driver(const std::string& path, const char* list);
  void describe(Driver& driver);
  bool counted(const DeviceDescription& device) const;  // by the driver's name
  void number_devices();
  void number_carried();
  void refuse(const std::string& path, const std::string& reason);
  void refuse_frozen(const std::string& path) const;
  [[noreturn]] void refuse_index(int index) const;

  mutable OwnedMutex mutex_;
  bool locked_to_fork_ = false;
  bool discovered_ = false;
  bool frozen_ = false;
  bool ended_ = false;              // no more device is opened
  std::vector<std::string> paths_;  // not loaded yet
  EarlyDrivers early_;
  std::vector<std::unique_ptr<Driver>> drivers_;
  std::vector<Refusal> refusals_;
  std::vector<DeviceDescription> found_;  // every device of every driver
  std::vector<Driver*> described_;        // those that were asked
  std::vector<Absence> absences_;
  DeviceNumbers numbers_;
  bool carries_ = false;                           // somebody asked for the slot's devices
  bool opening_ = false;                           // a device was asked for: numbers stay
  std::vector<void (*)() noexcept> finishes_;      // before shutdown
  std::vector<std::unique_ptr<Device>> replaced_;  // kept: tensors, streams and events name them
  std::atomic<Device*> open_[kMostDevices] = {};
};

// The process's platform; never destroyed.
GRAFT_EXPORT Platform& platform();

}  // namespace graft
