// src/runtime/driver/open_device.cpp: a handle to an open device of a driver.
#include "runtime/driver/open_device.h"

#include <algorithm>

#include "runtime/driver/device_name.h"
#include "runtime/driver/device_properties.h"
#include "runtime/driver/fork.h"
#include "runtime/driver/op_tag.h"

namespace graft {
namespace {

const char* sensor_name(graft_sensor which) {
  static constexpr const char* kNames[] = {"temperature", "power", "clock", "utilization"};
  const auto number = static_cast<size_t>(which);
  return number < std::size(kNames) ? kNames[number] : "kind";
}

}  // namespace

OpenDevice::OpenDevice(Driver& driver, uint32_t ordinal, int index)
    : driver_(driver),
      ordinal_(ordinal),
      index_(index),
      name_(device_label(index)),
      properties_(read_properties(driver, ordinal)) {
  watch_forks();
  SlotGate::open();
  const graft_status status = Driver::call(driver.table().device_open, ordinal, &handle_);
  if (status != GRAFT_OK) driver.fail(status, "device_open", name_, {});
  if (handle_ == nullptr) {
    throw Error(GRAFT_INTERNAL, label() + ": device_open returned OK but no device");
  }
  operations_ = driver.extension<graft_ops_table>();
}

OpenDevice::~OpenDevice() {
  if (closed_ || forked_child()) return;
  close_owned();
  close_handle();
}

void OpenDevice::close_owned() noexcept {
  decltype(handles_) handles;
  {
    const std::lock_guard lock(owned_);
    handles.swap(handles_);
  }
  for (const auto& [handle, owned] : handles) owned.give_back(handle, owned.destroy);
  for (const graft_address address : addresses_) {
    Driver::call(driver_.table().memory_free, handle_, address);
  }
}

void OpenDevice::close_handle() noexcept {
  closed_ = true;
  Driver::call(driver_.table().device_close, handle_);
}

void OpenDevice::own(const void* handle, Owned owned) {
  const std::lock_guard lock(owned_);
  handles_.emplace(handle, owned);
}

bool OpenDevice::disown(const void* handle, AnySlot destroy) noexcept {
  const std::lock_guard lock(owned_);
  const auto [first, last] = handles_.equal_range(handle);
  const auto found =
      std::find_if(first, last, [&](const auto& one) { return one.second.destroy == destroy; });
  if (found == last) return false;
  handles_.erase(found);
  return true;
}

void OpenDevice::own(graft_address address) {
  const std::lock_guard lock(owned_);
  addresses_.push_back(address);
}

std::string OpenDevice::label() const { return name_ + " (driver '" + driver_.name() + "')"; }

MemoryInfo OpenDevice::memory_info(uint64_t held) {
  refuse_unusable();
  MemoryInfo info;
  if (driver_.table().memory_info != nullptr) {
    const graft_status status =
        Driver::call(driver_.table().memory_info, handle_, &info.free, &info.total);
    if (status != GRAFT_UNSUPPORTED) {
      check(status, "memory_info");
      return info;
    }
  }
  info.total = properties_.memory_bytes;
  info.free = info.total - std::min(info.total, held);
  return info;
}

int64_t OpenDevice::sensor(graft_sensor which) {
  refuse_unusable();
  int64_t value = 0;
  const auto slot = driver_.table().device_sensor;
  const graft_status status =
      slot == nullptr ? GRAFT_NOT_FOUND : Driver::call(slot, handle_, uint32_t{which}, &value);
  if (status == GRAFT_NOT_FOUND) {
    throw Error(GRAFT_UNSUPPORTED,
                label() + " gives no " + sensor_name(which) + ": its driver " +
                    (slot == nullptr ? "reads no sensors" : "has no such sensor") +
                    ". Use the vendor's own tools.");
  }
  check(status, "device_sensor");
  return value;
}

void* OpenDevice::host_view(graft_address address, uint64_t bytes) {
  refuse_unusable();
  if (driver_.table().memory_host_view == nullptr) return nullptr;
  void* pointer = nullptr;
  const graft_status status =
      Driver::call(driver_.table().memory_host_view, handle_, address, bytes, &pointer);
  if (status == GRAFT_UNSUPPORTED) return nullptr;
  check(status, "memory_host_view");
  return pointer;
}

std::string OpenDevice::remedy() const {
  const bool resets = driver_.table().device_reset != nullptr && index_ < kFirstCarriedIndex;
  return ". Its memory is gone and every later call fails: " +
         (resets ? "call torch." + device_type_name() + ".reset_device(" + std::to_string(index_) +
                       "), or "
                 : std::string()) +
         "restart the process.";
}

Error OpenDevice::unusable_error() const {
  if (lost()) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (replaced_.load(std::memory_order_acquire)) {
      return {GRAFT_DEVICE_LOST,
              loss_ +
                  ", and was reset since. Tensors, events and graphs made before are gone: make "
                  "them anew."};
    }
    return {GRAFT_DEVICE_LOST, loss_ + remedy()};
  }
  return {GRAFT_INVALID_ARGUMENT,
          label() + " takes no more commands: Graft was shut down because the process exits."};
}

void OpenDevice::refuse_unusable() const {
  refuse_forked_child();
  if (!usable()) throw unusable_error();
}

void OpenDevice::lose(const std::string& message, std::string_view op) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!loss_.empty()) return;
  loss_ = label() + " is lost" + (op.empty() ? "" : " (during " + std::string(op) + ")") + ": " +
          message;
  state_.store(State::kLost, std::memory_order_release);
}

void OpenDevice::fail(graft_status status, std::string_view what) {
  if (!usable()) throw unusable_error();
  const std::string op = op_name(current_tag());
  if (status == GRAFT_DEVICE_LOST) {
    lose(driver_.message(status), op.empty() ? what : std::string_view(op));
    throw unusable_error();
  }
  driver_.fail(status, what, name_, op);
}

bool OpenDevice::refuse_commands() noexcept {
  State open = State::kOpen;
  return state_.compare_exchange_strong(open, State::kShutDown);
}

}  // namespace graft
