// src/runtime/driver/device_order.cpp: decides which devices of the loaded drivers count, and in
// what order.
#include "runtime/driver/device_order.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace graft {
namespace {

struct Item {
  std::string_view driver;
  bool whole = true;  // every device of the driver
  uint32_t ordinal = 0;
  bool valid = true;
};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Item parse(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {text};
  Item item{text.substr(0, colon), false};
  const std::string_view number = text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), item.ordinal);
  item.valid = error == std::errc() && end == number.data() + number.size();
  return item;
}

std::string names_of(const std::vector<DeviceDescription>& found) {
  std::string names;
  for (const DeviceDescription& device : found) {
    const std::string name = device.driver->name() + ":" + std::to_string(device.ordinal);
    names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "none" : names;
}

bool has(const DeviceDescription& device, uint32_t feature) {
  return (device.properties.features & feature) != 0;
}

std::vector<size_t> default_order(const std::vector<DeviceDescription>& found) {
  std::vector<size_t> hardware, simulated;
  for (size_t i = 0; i < found.size(); ++i) {
    if (has(found[i], GRAFT_FEATURE_ONLY_NAMED)) continue;
    (has(found[i], GRAFT_FEATURE_SIMULATED) ? simulated : hardware).push_back(i);
  }
  return hardware.empty() ? simulated : hardware;
}

}  // namespace

bool may_count(const std::string& driver, const char* list) {
  std::string_view rest = list == nullptr ? "" : list;
  if (trimmed(rest).empty()) return true;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (parse(trimmed(rest.substr(0, comma))).driver == driver) return true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return false;
}

std::vector<size_t> order_devices(const std::vector<DeviceDescription>& found,
                                  const std::string& variable, const char* list,
                                  std::vector<Refusal>& problems) {
  std::string_view rest = list == nullptr ? "" : list;
  if (trimmed(rest).empty()) return default_order(found);
  std::vector<size_t> order;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view text = trimmed(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (text.empty()) continue;
    const Item item = parse(text);
    bool matched = false;
    for (size_t i = 0; item.valid && i < found.size(); ++i) {
      if (found[i].driver->name() != item.driver) continue;
      if (!item.whole && found[i].ordinal != item.ordinal) continue;
      matched = true;
      if (std::find(order.begin(), order.end(), i) == order.end()) order.push_back(i);
    }
    if (!matched) {
      problems.push_back({variable, "'" + std::string(text) +
                                        "' names no device; found: " + names_of(found) +
                                        ". Write driver or driver:number, separated by commas."});
    }
  }
  return order;
}

bool order_needs_all(const std::vector<DeviceDescription>& counting, const char* list) {
  if (!trimmed(list == nullptr ? "" : list).empty()) return false;
  return std::any_of(counting.begin(), counting.end(), [](const DeviceDescription& device) {
    return has(device, GRAFT_FEATURE_SIMULATED);
  });
}

}  // namespace graft
