// src/runtime/platform/early_drivers.cpp: drivers that are loaded before the devices are counted.
#include "runtime/platform/early_drivers.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/platform/driver_devices.h"

namespace graft {
namespace {

void append_devices(Driver& driver, std::vector<DeviceDescription>& devices) {
  try {
    std::vector<std::string> refused;
    const std::vector<DeviceDescription> its = list_devices(driver, refused);
    devices.insert(devices.end(), its.begin(), its.end());
  } catch (const Error&) {  // it is refused again when the devices are counted
  }
}

}  // namespace

std::string real_path(const std::string& path) {
  std::error_code failed;
  const std::string real = std::filesystem::canonical(path, failed).string();
  return failed ? path : real;
}

std::vector<EarlyDrivers::Entry>::iterator EarlyDrivers::find(const std::string& real_path) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.path == real_path; });
}

Driver* EarlyDrivers::load(const std::string& real_path) {
  if (const auto known = find(real_path); known != entries_.end()) return known->driver.get();
  Entry entry{real_path, nullptr, nullptr};
  try {
    entry.driver = Driver::load(real_path);
  } catch (const Error& error) {
    entry.refusal = std::make_unique<Error>(error);
  }
  entries_.push_back(std::move(entry));
  return entries_.back().driver.get();
}

std::vector<DeviceDescription> EarlyDrivers::devices(
    const std::vector<std::string>& paths, const std::vector<std::unique_ptr<Driver>>& taken) {
  const char* const list = std::getenv("GRAFT_DEVICES");
  std::vector<const Driver*> asked;
  std::vector<DeviceDescription> found;
  for (const std::string& path : paths) {
    const std::string real = real_path(path);
    const auto same = [&](const auto& driver) { return driver->path() == real; };
    const auto known = std::find_if(taken.begin(), taken.end(), same);
    Driver* const driver = known == taken.end() ? load(real) : known->get();
    if (driver == nullptr || !may_count(driver->name(), list)) continue;
    if (std::find(asked.begin(), asked.end(), driver) != asked.end()) continue;
    asked.push_back(driver);
    append_devices(*driver, found);
  }
  std::vector<Refusal> problems;
  std::vector<DeviceDescription> counting;
  for (const size_t position : order_devices(found, "GRAFT_DEVICES", list, problems)) {
    counting.push_back(found[position]);
  }
  return counting;
}

std::unique_ptr<Driver> EarlyDrivers::take(const std::string& real_path) {
  const auto known = find(real_path);
  if (known == entries_.end()) return Driver::load(real_path);
  Entry entry = std::move(*known);
  entries_.erase(known);
  if (entry.refusal != nullptr) throw Error(*entry.refusal);
  return std::move(entry.driver);
}

}  // namespace graft
