// src/runtime/platform/device_numbers.h: which device has which index.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/driver/device_name.h"
#include "runtime/driver/device_order.h"
#include "runtime/driver/error.h"
#include "runtime/platform/device.h"

namespace graft {

// A device that has an index, open or not.
struct DeviceEntry {
  DeviceDescription description;
  std::unique_ptr<Device> device;
  std::unique_ptr<Error> failure;  // of opening it
  std::mutex opening;
};

// Counted devices have the indices from 0 on; those that only PyTorch's second slot carries, the
// indices from kFirstCarried on. A device has one index. Not thread-safe.
class DeviceNumbers {
 public:
  using Entry = std::shared_ptr<DeviceEntry>;

  static constexpr int kFirstCarried = kFirstCarriedIndex;

  // Give a device the next index, or the next number in the slot; nothing if it has one. False if
  // there is none left.
  bool count(const DeviceDescription& device);
  bool carry(const DeviceDescription& device);

  // Takes all indices back.
  void clear();

  const std::vector<Entry>& counted() const { return counted_; }
  const std::vector<Entry>& carried() const { return carried_; }  // by the number in the slot

  // A device's index; -1 if it has none.
  int index_of(const DeviceDescription& device) const;

  // The device of an index; null if it is no device's.
  const Entry* find(int index) const;

 private:
  std::vector<Entry> counted_, carried_;
};

}  // namespace graft
