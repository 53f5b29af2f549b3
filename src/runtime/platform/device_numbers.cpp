// src/runtime/platform/device_numbers.cpp: which device has which index.
#include "runtime/platform/device_numbers.h"

#include <algorithm>

namespace graft {
namespace {

using Entry = DeviceNumbers::Entry;

const Entry* find_same(const std::vector<Entry>& among, const DeviceDescription& device) {
  const auto found = std::find_if(among.begin(), among.end(), [&](const Entry& entry) {
    return entry->description.driver == device.driver &&
           entry->description.ordinal == device.ordinal;
  });
  return found == among.end() ? nullptr : &*found;
}

Entry entry_of(const DeviceDescription& device, int index) {
  auto entry = std::make_shared<DeviceEntry>();
  entry->description = device;
  entry->description.index = index;
  return entry;
}

}  // namespace

bool DeviceNumbers::count(const DeviceDescription& device) {
  if (find_same(counted_, device) != nullptr || find_same(carried_, device) != nullptr) return true;
  const auto index = static_cast<int>(counted_.size());
  if (index == kFirstCarried) return false;
  counted_.push_back(entry_of(device, index));
  return true;
}

bool DeviceNumbers::carry(const DeviceDescription& device) {
  if (find_same(carried_, device) != nullptr) return true;
  const int index = kFirstCarried + static_cast<int>(carried_.size());
  if (index == kMostDevices) return false;
  const Entry* const counted = find_same(counted_, device);
  carried_.push_back(counted != nullptr ? *counted : entry_of(device, index));
  return true;
}

void DeviceNumbers::clear() {
  counted_.clear();
  carried_.clear();
}

int DeviceNumbers::index_of(const DeviceDescription& device) const {
  const Entry* entry = find_same(counted_, device);
  if (entry == nullptr) entry = find_same(carried_, device);
  return entry == nullptr ? -1 : (*entry)->description.index;
}

const Entry* DeviceNumbers::find(int index) const {
  const bool beyond = index >= kFirstCarried;
  const auto& among = beyond ? carried_ : counted_;
  const auto position = static_cast<size_t>(beyond ? index - kFirstCarried : index);
  if (index < 0 || position >= among.size()) return nullptr;
  const Entry& entry = among[position];
  return entry->description.index == index ? &entry : nullptr;
}

}  // namespace graft
