// src/runtime/platform/early_drivers.h: drivers that are loaded before the devices are counted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/driver/device_order.h"
#include "runtime/driver/error.h"
#include "runtime/driver/library.h"

namespace graft {

// The path without symbolic links; path itself if nothing is there.
std::string real_path(const std::string& path);

// Loads each library once, whether its driver is asked for early or not. Not thread-safe.
class EarlyDrivers {
 public:
  // The devices that would count under GRAFT_DEVICES if there were no drivers but those in these
  // libraries, in their order. A driver of taken is not loaded again; one that is refused has none.
  std::vector<DeviceDescription> devices(const std::vector<std::string>& paths,
                                         const std::vector<std::unique_ptr<Driver>>& taken);

  // Gives the driver in a library to the caller, loaded unless devices() has. Throws Error: the
  // refusal, which may be that of devices().
  std::unique_ptr<Driver> take(const std::string& real_path);

 private:
  struct Entry {
    std::string path;
    std::unique_ptr<Driver> driver;
    std::unique_ptr<Error> refusal;
  };

  std::vector<Entry>::iterator find(const std::string& real_path);
  Driver* load(const std::string& real_path);  // null if it is refused

  std::vector<Entry> entries_;
};

}  // namespace graft
