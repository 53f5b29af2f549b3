// drivers/veda/facts/sensor.cpp: the sensors that VEDA reads from the card.
#include <algorithm>
#include <cmath>
#include <string>

#include "device.h"
#include "graft/driver_slot.h"

namespace graft::veda {
namespace {

int64_t thousandths(float value) { return std::llround(double(value) * 1000); }

// The hottest core's: a device has no temperature of its own.
Called read_temperature(graft_device device, int64_t* out) {
  int cores = 1;
  Called called =
      GRAFT_VEDA_CALL(DeviceGetAttribute, &cores, VEDA_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                      device->listed.device);
  float hottest = -1000;
  for (int core = 0; called.ok() && core < std::max(cores, 1); ++core) {
    float celsius = 0;
    called = GRAFT_VEDA_CALL(DeviceGetTemp, &celsius, core, device->listed.device);
    hottest = std::max(hottest, celsius);
  }
  *out = thousandths(hottest);
  return called;
}

Called read_power(graft_device device, int64_t* out) {
  float watts = 0;
  const Called called = GRAFT_VEDA_CALL(DeviceGetPower, &watts, device->listed.device);
  *out = thousandths(watts);
  return called;
}

Called read_clock(graft_device device, int64_t* out) {
  int megahertz = 0;
  const Called called = GRAFT_VEDA_CALL(DeviceGetAttribute, &megahertz,
                                        VEDA_DEVICE_ATTRIBUTE_CLOCK_RATE, device->listed.device);
  *out = int64_t{megahertz} * 1'000'000;
  return called;
}

}  // namespace

graft_status SensorSlots::device_sensor(graft_device device, uint32_t sensor, int64_t* out_value) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out_value == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_sensor: no out pointer given");
  int64_t value = 0;
  Called called = {VEDA_ERROR_NO_SENSOR_FILE, "VEDA"};
  if (sensor == GRAFT_SENSOR_TEMPERATURE) called = read_temperature(device, &value);
  if (sensor == GRAFT_SENSOR_POWER) called = read_power(device, &value);
  if (sensor == GRAFT_SENSOR_CLOCK) called = read_clock(device, &value);
  if (called.ok()) {
    *out_value = value;
    return GRAFT_OK;
  }
  const std::string text = called.text() + ": reading sensor " + std::to_string(sensor);
  if (called.result == VEDA_ERROR_NO_SENSOR_FILE) return fail(GRAFT_NOT_FOUND, text);
  return fail(called.status(GRAFT_IO), text);
}

}  // namespace graft::veda
