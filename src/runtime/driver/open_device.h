// src/runtime/driver/open_device.h: a handle to an open device of a driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graft/driver.h"
#include "runtime/driver/error.h"
#include "runtime/driver/export.h"
#include "runtime/driver/library.h"

namespace graft {

// Free and total bytes of a device's memory.
struct MemoryInfo {
  uint64_t free = 0;
  uint64_t total = 0;
};

// Opens its device in the constructor and closes it in the destructor. Device (platform/device.h)
// adds the streams and the memory. Thread-safe. A device of which any slot said DEVICE_LOST is lost
// for good: every later call throws one and the same Error. Another takes its place where the
// driver has device_reset (Platform::reset).
class GRAFT_EXPORT OpenDevice {
 public:
  // index: its number in this process. Throws Error when the driver cannot open it.
  OpenDevice(Driver& driver, uint32_t ordinal, int index);
  ~OpenDevice();
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  int index() const { return index_; }
  const std::string& name() const { return name_; }  // "graft:0"
  std::string label() const;                         // "graft:0 (driver 'host')"
  Driver& driver() const { return driver_; }
  uint32_t ordinal() const { return ordinal_; }  // its number in its driver
  graft_device handle() const { return handle_; }
  const graft_device_properties& properties() const { return properties_; }

  // The vendor's own kernels for operators (graft.ops); null where the driver has none.
  const graft_ops_table* operations() const { return operations_; }

  // The driver's figures; by default the total less held, the bytes that Graft holds.
  MemoryInfo memory_info(uint64_t held);

  // What a sensor of the device reads now, in the unit of GRAFT_SENSORS. Throws Error, UNSUPPORTED
  // where the driver or the device has no such sensor.
  int64_t sensor(graft_sensor which);

  // A host pointer to device memory, null when the driver gives none.
  void* host_view(graft_address address, uint64_t bytes);

  // Throws Error unless status is OK, as Driver::check does, with the device's name. what: a slot.
  void check(graft_status status, std::string_view what) {
    if (__builtin_expect(status != GRAFT_OK, 0)) fail(status, what);
  }

  bool lost() const { return state_.load(std::memory_order_relaxed) == State::kLost; }

  // Whether commands are taken: not lost and not shut down.
  bool usable() const { return state_.load(std::memory_order_relaxed) == State::kOpen; }

  // Throws the Error of a device that is not usable, or of a forked child.
  void refuse_unusable() const;
  Error unusable_error() const;

  // Marks the device lost; message is the driver's. The first one stays.
  void lose(const std::string& message, std::string_view op);

  // Says in the errors of a lost device that another has its place now.
  void replace() noexcept { replaced_.store(true, std::memory_order_release); }

  // From now on usable() is false. Whether it was true.
  bool refuse_commands() noexcept;

  // Handles and memory that are given back with the device, a handle by destroy, a slot of its
  // driver. Handles of several kinds may be equal, and a driver may give one several times.
  template <class Handle>
  void own(Handle handle, graft_status (*destroy)(Handle)) {
    const auto give_back = [](const void* given, AnySlot slot) {
      Driver::call(reinterpret_cast<graft_status (*)(Handle)>(slot),
                   static_cast<Handle>(const_cast<void*>(given)));
    };
    own(handle, Owned{reinterpret_cast<AnySlot>(destroy), give_back});
  }
  // Whether the handle was not yet given back; the caller then does it.
  template <class Handle>
  bool disown(Handle handle, graft_status (*destroy)(Handle)) noexcept {
    return disown(static_cast<const void*>(handle), reinterpret_cast<AnySlot>(destroy));
  }
  void own(graft_address address);

  bool closed() const { return closed_; }

 protected:
  // Give back what own named, and the device itself, before the destructor does.
  void close_owned() noexcept;
  void close_handle() noexcept;

 private:
  enum class State : uint8_t { kOpen, kLost, kShutDown };

  using AnySlot = void (*)();
  struct Owned {
    AnySlot destroy;
    void (*give_back)(const void* handle, AnySlot destroy);
  };

  [[noreturn]] void fail(graft_status status, std::string_view what);
  void own(const void* handle, Owned owned);
  bool disown(const void* handle, AnySlot destroy) noexcept;
  std::string remedy() const;  // of a loss

  Driver& driver_;
  const uint32_t ordinal_;
  const int index_;
  const std::string name_;
  graft_device_properties properties_{};
  graft_device handle_ = nullptr;
  const graft_ops_table* operations_ = nullptr;
  std::atomic<State> state_{State::kOpen};
  std::atomic<bool> replaced_{false};
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;  // guards the text of the loss
  std::string loss_;
  std::mutex owned_;  // guards what follows
  std::unordered_multimap<const void*, Owned> handles_;
  std::vector<graft_address> addresses_;
};

}  // namespace graft
