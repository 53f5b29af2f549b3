// tests/emulated/veda/library/properties.cpp: VEDA's functions of errors, versions, devices and
// sensors.
#include <cmath>
#include <cstdio>

#include "tests/emulated/veda/library/devices.h"
#include "tests/emulated/veda/library/entry.h"

using emulated::entry;
using emulated::library;
using emulated::require;
using emulated::Settings;

namespace {

const char* result_name(VEDAresult result) {
  switch (result) {
#define EMULATED_VEDA_CASE(code, name) \
  case name:                           \
    return #name;
    GRAFT_VEDA_RESULTS(EMULATED_VEDA_CASE)
#undef EMULATED_VEDA_CASE
  }
  return nullptr;
}

VEDAresult give_name(const char* function, VEDAresult result, const char** name) {
  return entry(function, false, [&] {
    require(name != nullptr, VEDA_ERROR_INVALID_VALUE);
    *name = result_name(result);
    require(*name != nullptr, VEDA_ERROR_INVALID_VALUE);
  });
}

VEDAresult give_text(const char* function, const char* text, const char** version) {
  return entry(function, false, [&] {
    require(version != nullptr, VEDA_ERROR_INVALID_VALUE);
    *version = text;
  });
}

// A value of one device, through value(device).
template <class Value, class Source>
VEDAresult give(const char* function, Value* to, VEDAdevice device, Source&& value) {
  return entry(function, [&] {
    emulated::Device& own = library().device(device);
    require(to != nullptr, VEDA_ERROR_INVALID_VALUE);
    *to = value(own);
  });
}

// A sensor's value; NaN in the settings is no sensor.
float read_sensor(double value) {
  require(!std::isnan(value), VEDA_ERROR_NO_SENSOR_FILE);
  return static_cast<float>(value);
}

VEDAresult give_sensor(const char* function, float* to, VEDAdevice device,
                       double Settings::*sensor) {
  return give(function, to, device,
              [&](emulated::Device&) { return read_sensor(library().settings.*sensor); });
}

int model_number(const Settings& settings) { return settings.model[2] - '0'; }

int attribute_value(VEDAdevice_attribute attribute, const Settings& settings) {
  switch (attribute) {
    case VEDA_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return static_cast<int>(settings.clock);
    case VEDA_DEVICE_ATTRIBUTE_CLOCK_BASE:
      return 800;
    case VEDA_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(settings.cores);
    case VEDA_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 1600;
    case VEDA_DEVICE_ATTRIBUTE_L1D_CACHE_SIZE:
    case VEDA_DEVICE_ATTRIBUTE_L1I_CACHE_SIZE:
      return 32;
    case VEDA_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 256;
    case VEDA_DEVICE_ATTRIBUTE_LLC_CACHE_SIZE:
      return 16384;
    case VEDA_DEVICE_ATTRIBUTE_ABI_VERSION:
      return 1;
    case VEDA_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return 2;
    case VEDA_DEVICE_ATTRIBUTE_FIREWARE_VERSION:
      return 5399;
    case VEDA_DEVICE_ATTRIBUTE_MODEL:
      return model_number(settings);
  }
  throw emulated::Failure{VEDA_ERROR_UNKNOWN_ATTRIBUTE};
}

}  // namespace

VEDAresult vedaGetErrorName(VEDAresult result, const char** name) {
  return give_name("GetErrorName", result, name);
}
VEDAresult vedaGetErrorString(VEDAresult result, const char** text) {
  return give_name("GetErrorString", result, text);
}
VEDAresult vedaGetVersion(const char** version) {
  return give_text("GetVersion", "2.3.0", version);
}
VEDAresult vedaDriverGetVersion(const char** version) {
  return give_text("DriverGetVersion", "emulated", version);
}

VEDAresult vedaGetArchitecture(int* architecture) {
  return entry("GetArchitecture", [&] {
    require(architecture != nullptr, VEDA_ERROR_INVALID_VALUE);
    *architecture = library().settings.device_architecture();
  });
}

VEDAresult vedaDeviceGetCount(int* count) {
  return entry("DeviceGetCount", [&] {
    require(count != nullptr, VEDA_ERROR_INVALID_VALUE);
    *count = static_cast<int>(library().devices.size());
  });
}

VEDAresult vedaDeviceGet(VEDAdevice* device, int ordinal) {
  return give("DeviceGet", device, ordinal, [&](emulated::Device&) { return ordinal; });
}

VEDAresult vedaDeviceGetName(char* name, int length, VEDAdevice device) {
  return entry("DeviceGetName", [&] {
    library().device(device);
    require(name != nullptr && length > 0, VEDA_ERROR_INVALID_VALUE);
    const int model = model_number(library().settings);
    std::snprintf(name, static_cast<size_t>(length), "NEC SX-Aurora Tsubasa VE%d0%c", model,
                  model == 3 ? 'A' : 'B');
  });
}

VEDAresult vedaDeviceTotalMem(size_t* bytes, VEDAdevice device) {
  return give("DeviceTotalMem", bytes, device,
              [](emulated::Device&) { return static_cast<size_t>(library().settings.memory); });
}

VEDAresult vedaDeviceGetAttribute(int* value, VEDAdevice_attribute attribute, VEDAdevice device) {
  return give("DeviceGetAttribute", value, device,
              [&](emulated::Device&) { return attribute_value(attribute, library().settings); });
}

VEDAresult vedaDeviceGetPhysicalId(int* id, VEDAdevice device) {
  return give("DeviceGetPhysicalId", id, device,
              [](emulated::Device& own) { return own.physical; });
}
VEDAresult vedaDeviceGetAVEOId(int* id, VEDAdevice device) {
  return give("DeviceGetAVEOId", id, device, [](emulated::Device& own) { return own.physical; });
}
VEDAresult vedaDeviceGetNUMAId(int* id, VEDAdevice device) {
  return give("DeviceGetNUMAId", id, device, [](emulated::Device& own) { return own.numa; });
}

VEDAresult vedaDeviceDistance(float* distance, VEDAdevice first, VEDAdevice second) {
  return give("DeviceDistance", distance, first, [&](emulated::Device& own) {
    const emulated::Device& other = library().device(second);
    return first == second ? 0.0F : own.physical == other.physical ? 0.5F : 1.0F;
  });
}

VEDAresult vedaDeviceGetCurrent(float* current, VEDAdevice device) {
  return give_sensor("DeviceGetCurrent", current, device, &Settings::current);
}
VEDAresult vedaDeviceGetCurrentEdge(float* current, VEDAdevice device) {
  return give_sensor("DeviceGetCurrentEdge", current, device, &Settings::current_edge);
}
VEDAresult vedaDeviceGetVoltage(float* volts, VEDAdevice device) {
  return give_sensor("DeviceGetVoltage", volts, device, &Settings::voltage);
}
VEDAresult vedaDeviceGetVoltageEdge(float* volts, VEDAdevice device) {
  return give_sensor("DeviceGetVoltageEdge", volts, device, &Settings::voltage_edge);
}

// The two supplies, and 5 W that no sensor sees.
VEDAresult vedaDeviceGetPower(float* watts, VEDAdevice device) {
  return give("DeviceGetPower", watts, device, [](emulated::Device&) {
    const Settings& settings = library().settings;
    return read_sensor(settings.voltage * settings.current +
                       settings.voltage_edge * settings.current_edge + 5.0);
  });
}

VEDAresult vedaDeviceGetTemp(float* celsius, const int core, VEDAdevice device) {
  return give("DeviceGetTemp", celsius, device, [&](emulated::Device&) {
    const Settings& settings = library().settings;
    require(core >= 0 && core < settings.cores, VEDA_ERROR_INVALID_COREIDX);
    return read_sensor(settings.temperature + 0.5 * core);
  });
}
