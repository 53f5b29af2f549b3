// src/runtime/platform/platform.cpp: the drivers and devices of this process.
#include "runtime/platform/platform.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "runtime/driver/bounded_wait.h"
#include "runtime/driver/device_name.h"
#include "runtime/driver/error.h"
#include "runtime/driver/fork.h"
#include "runtime/driver/slot_gate.h"
#include "runtime/memory/shared_memory.h"
#include "runtime/platform/device_reset.h"
#include "runtime/platform/driver_devices.h"

namespace graft {
namespace {

constexpr const char* kCarriedVariable = "GRAFT_VE_DEVICES";
constexpr const char* kCarriedDefault = "veda";

// How long the end of a process waits for threads that are inside a driver.
constexpr std::chrono::seconds kGateLimit(1);

}  // namespace

Platform& platform() {
  static Platform* const the_platform = new Platform();  // tensors may be freed after main
  static const int registered =
      pthread_atfork([] { the_platform->before_fork(); }, [] { the_platform->after_fork(); },
                     [] { the_platform->after_fork(); });
  if (registered != 0) throw Error(GRAFT_INTERNAL, "pthread_atfork failed: out of memory");
  return *the_platform;
}

void Platform::before_fork() {
  if (mutex_.mine()) return;  // a driver forks while it is asked for its devices
  mutex_.lock();
  locked_to_fork_ = true;
}

void Platform::after_fork() {
  if (std::exchange(locked_to_fork_, false)) mutex_.unlock();
}

void Platform::refuse(const std::string& path, const std::string& reason) {
  const auto same = [&](const Refusal& one) { return one.path == path && one.reason == reason; };
  if (std::none_of(refusals_.begin(), refusals_.end(), same)) refusals_.push_back({path, reason});
}

void Platform::describe(Driver& driver) {
  if (std::find(described_.begin(), described_.end(), &driver) != described_.end()) return;
  std::vector<std::string> refused;
  const std::vector<DeviceDescription> devices = list_devices(driver, refused);
  for (const std::string& reason : refused) refuse(driver.path(), reason);
  if (devices.empty() && refused.empty()) absences_.push_back({&driver, driver.last_words()});
  found_.insert(found_.end(), devices.begin(), devices.end());
  described_.push_back(&driver);
}

Driver* Platform::add_driver(const std::string& path, const char* list) {
  const bool absolute = !path.empty() && path[0] == '/';
  const std::string real = absolute ? real_path(path) : path;
  for (const auto& driver : drivers_) {
    if (driver->path() == real) return driver.get();
  }
  std::unique_ptr<Driver> driver = early_.take(real);
  for (const auto& other : drivers_) {
    if (other->name() == driver->name()) {
      throw Error(GRAFT_INVALID_ARGUMENT, "The driver '" + real +
                                              "' cannot be used: a driver named '" +
                                              driver->name() + "' is loaded already, from '" +
                                              other->path() + "'. Name one of the two only.");
    }
  }
  if (may_count(driver->name(), list)) describe(*driver);
  drivers_.push_back(std::move(driver));
  return drivers_.back().get();
}

void Platform::discover() {
  std::vector<std::string> paths;
  if (!discovered_) {
    const char* listed = std::getenv("GRAFT_DRIVER_PATH");
    std::string_view rest = listed == nullptr ? "" : listed;
    while (!rest.empty()) {
      const size_t colon = std::min(rest.find(':'), rest.size());
      if (colon > 0) paths.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  paths.insert(paths.end(), paths_.begin(), paths_.end());
  paths_.clear();
  if (discovered_ && paths.empty()) return;
  discovered_ = true;
  for (const std::string& path : paths) {
    try {
      add_driver(path, std::getenv("GRAFT_DEVICES"));
    } catch (const Error& error) {
      refuse(path, error.what());
    }
  }
  number_devices();
}

void Platform::number_devices() {
  std::vector<Refusal> problems;
  const auto order = order_devices(found_, "GRAFT_DEVICES", std::getenv("GRAFT_DEVICES"), problems);
  for (const Refusal& problem : problems) refuse(problem.path, problem.reason);
  if (!opening_) numbers_.clear();
  for (const size_t position : order) {
    if (numbers_.count(found_[position])) continue;
    refuse(found_[position].driver->path(), "there are more than " + std::to_string(kFirstCarried) +
                                                " devices: choose some with GRAFT_DEVICES");
    break;
  }
  if (carries_) number_carried();
}

void Platform::number_carried() {
  carries_ = true;
  const char* const given = std::getenv(kCarriedVariable);
  const bool chosen = given != nullptr && *given != '\0';
  const char* const list = chosen ? given : kCarriedDefault;
  for (const auto& driver : drivers_) {
    if (!may_count(driver->name(), list)) continue;
    try {
      describe(*driver);
    } catch (const Error& error) {
      refuse(driver->path(), error.what());
    }
  }
  std::vector<Refusal> problems;
  const auto order = order_devices(found_, kCarriedVariable, list, problems);
  for (const Refusal& problem : problems) {
    if (chosen) refuse(problem.path, problem.reason);
  }
  for (const size_t position : order) {
    if (numbers_.carry(found_[position])) continue;
    refuse(found_[position].driver->path(), "there are more than " +
                                                std::to_string(kMostDevices - kFirstCarried) +
                                                " devices: choose some with GRAFT_VE_DEVICES");
    break;
  }
}

void Platform::refuse_frozen(const std::string& path) const {
  if (!frozen_) return;
  for (const auto& driver : drivers_) {
    if (driver->path() == real_path(path)) return;
  }
  throw Error(
      GRAFT_INVALID_ARGUMENT,
      "The driver '" + path +
          "' comes too late: autograd counted the devices at the first backward. Name it in "
          "GRAFT_DRIVER_PATH, or load it before any backward.");
}

void Platform::add_driver_path(std::string absolute_path) {
  std::lock_guard lock(mutex_);
  refuse_frozen(absolute_path);
  paths_.push_back(std::move(absolute_path));
}

Driver& Platform::load_driver(const std::string& absolute_path) {
  refuse_forked_child();
  std::lock_guard lock(mutex_);
  refuse_frozen(absolute_path);
  discover();
  Driver& driver = *add_driver(absolute_path, nullptr);
  number_devices();
  return driver;
}

void Platform::freeze() {
  std::lock_guard lock(mutex_);
  discover();
  frozen_ = true;
}

std::vector<DeviceDescription> Platform::early_devices(const std::vector<std::string>& paths) {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceDescription> devices = early_.devices(paths, drivers_);
  if (!order_needs_all(devices, std::getenv("GRAFT_DEVICES"))) return devices;
  discover();
  std::erase_if(devices, [&](const DeviceDescription& device) { return !counted(device); });
  return devices;
}

bool Platform::counted(const DeviceDescription& device) const {
  const auto& all = numbers_.counted();
  return std::any_of(all.begin(), all.end(), [&](const DeviceNumbers::Entry& entry) {
    const DeviceDescription& one = entry->description;
    return one.driver->name() == device.driver->name() && one.ordinal == device.ordinal;
  });
}

int Platform::device_count() {
  std::lock_guard lock(mutex_);
  discover();
  return static_cast<int>(numbers_.counted().size());
}

int Platform::carried_count() {
  std::lock_guard lock(mutex_);
  discover();
  if (!carries_) number_carried();
  return static_cast<int>(numbers_.carried().size());
}

int Platform::carried_index(int number) {
  const int count = carried_count();
  std::lock_guard lock(mutex_);
  if (number < 0 || static_cast<size_t>(number) >= numbers_.carried().size()) {
    throw Error(GRAFT_INVALID_ARGUMENT, device_label(kFirstCarried + number) +
                                            " does not exist: the slot carries " +
                                            std::to_string(count) +
                                            " devices. Name drivers in GRAFT_VE_DEVICES "
                                            "(python -m torch_graft doctor tells more).");
  }
  return numbers_.carried()[static_cast<size_t>(number)]->description.index;
}

Device& Platform::device(int index) {
  refuse_forked_child();
  if (index >= 0 && index < kMostDevices) {
    if (Device* open = open_[index].load(std::memory_order_acquire)) return *open;
  }
  DeviceNumbers::Entry entry;
  {
    std::lock_guard lock(mutex_);
    if (ended_) {
      throw Error(GRAFT_INVALID_ARGUMENT, device_label(index) +
                                              " cannot be opened: Graft was shut down because the "
                                              "process exits.");
    }
    discover();
    const DeviceNumbers::Entry* const found = numbers_.find(index);
    if (found == nullptr) refuse_index(index);
    entry = *found;
    watch_forks();  // under the lock that a fork waits for: a child of now on is a forked child
    opening_ = true;
  }
  std::lock_guard<std::mutex> lock(entry->opening);
  if (entry->failure != nullptr) throw Error(*entry->failure);
  if (entry->device == nullptr) {
    try {
      const DeviceDescription& what = entry->description;
      entry->device = std::make_unique<Device>(*what.driver, what.ordinal, index);
      open_[index].store(entry->device.get(), std::memory_order_release);
    } catch (const Error& error) {
      entry->failure = std::make_unique<Error>(error);
      std::lock_guard all(mutex_);
      refuse(entry->description.driver->path(), error.what());
      throw;
    }
  }
  return *entry->device;
}

void Platform::refuse_index(int index) const {
  std::string text = device_label(index) + " does not exist: there ";
  text += numbers_.counted().size() == 1
              ? "is 1 device"
              : "are " + std::to_string(numbers_.counted().size()) + " devices";
  if (numbers_.counted().empty()) {
    text += ". Name a driver in GRAFT_DRIVER_PATH (python -m torch_graft doctor tells more)";
    if (!refusals_.empty()) text += ". Refused: " + refusals_.front().reason;
  } else {
    text += ", with indices from 0 to " + std::to_string(numbers_.counted().size() - 1);
  }
  throw Error(GRAFT_INVALID_ARGUMENT, text + ".");
}

std::vector<const Driver*> Platform::drivers() {
  std::lock_guard lock(mutex_);
  discover();
  std::vector<const Driver*> loaded;
  for (const auto& driver : drivers_) loaded.push_back(driver.get());
  return loaded;
}

std::vector<Refusal> Platform::refusals() {
  std::lock_guard lock(mutex_);
  discover();
  return refusals_;
}

std::vector<Absence> Platform::absences() {
  std::lock_guard lock(mutex_);
  discover();
  return absences_;
}

std::vector<DeviceDescription> Platform::descriptions() {
  std::lock_guard lock(mutex_);
  discover();
  std::vector<DeviceDescription> devices;
  for (const auto& entry : numbers_.counted()) devices.push_back(entry->description);
  return devices;
}

DeviceDescription Platform::description(int index) {
  std::lock_guard lock(mutex_);
  discover();
  const DeviceNumbers::Entry* const entry = numbers_.find(index);
  if (entry == nullptr) refuse_index(index);
  return (*entry)->description;
}

std::vector<DeviceDescription> Platform::found() {
  std::lock_guard lock(mutex_);
  discover();
  std::vector<DeviceDescription> devices = found_;
  for (DeviceDescription& device : devices) device.index = numbers_.index_of(device);
  return devices;
}

Device* Platform::open_device(int index) const {
  if (index < 0 || index >= kMostDevices) return nullptr;
  return open_[index].load(std::memory_order_acquire);
}

std::vector<Device*> Platform::open_devices() const {
  std::vector<Device*> found;
  for (const auto& device : open_) {
    if (Device* const open = device.load(std::memory_order_acquire)) found.push_back(open);
  }
  return found;
}

bool Platform::any_device_open() const {
  return std::any_of(std::begin(open_), std::end(open_), [](const std::atomic<Device*>& device) {
    return device.load(std::memory_order_acquire) != nullptr;
  });
}

void Platform::before_shutdown(void (*finish)() noexcept) {
  std::lock_guard lock(mutex_);
  if (std::find(finishes_.begin(), finishes_.end(), finish) == finishes_.end()) {
    finishes_.push_back(finish);
  }
}

void Platform::shutdown() noexcept {
  if (forked_child()) return;
  std::vector<void (*)() noexcept> finishes;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    finishes = finishes_;
  }
  for (const auto finish : finishes) finish();
  const std::chrono::nanoseconds limit = wait_limit();
  Patience patience({}, limit.count() == 0
                            ? Device::kExitLimit
                            : std::min<std::chrono::nanoseconds>(limit, Device::kExitLimit));
  std::vector<Device*> done;
  for (Device* const device : open_devices()) {
    if (device->finish(patience)) done.push_back(device);
  }
  if (done.empty() || !SlotGate::shut(std::chrono::steady_clock::now() + kGateLimit)) return;
  for (Device* const device : done) {
    if (shared_memory().close(*device)) device->close();
  }
}

Device& Platform::reset(int index) {
  refuse_forked_child();
  DeviceNumbers::Entry entry;
  {
    std::lock_guard lock(mutex_);
    const DeviceNumbers::Entry* const found = numbers_.find(index);
    if (found == nullptr) refuse_index(index);
    entry = *found;
  }
  std::lock_guard<std::mutex> lock(entry->opening);
  if (entry->device == nullptr || !entry->device->lost()) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                device_label(index) + " is not lost: only a lost device can be reset.");
  }
  std::unique_ptr<Device> fresh = reopened(*entry->device);
  open_[index].store(fresh.get(), std::memory_order_release);
  entry->device->replace();
  std::swap(entry->device, fresh);
  std::lock_guard all(mutex_);
  replaced_.push_back(std::move(fresh));
  return *entry->device;
}

}  // namespace graft
