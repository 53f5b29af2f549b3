// tests/drivers/check/sensor_cases.cpp: sensors read what can be.
#include <string>

#include "check/cases.h"

namespace {

struct Range {
  graft_sensor sensor;
  const char* name;
  int64_t least, most;
};

// In the units of GRAFT_SENSORS: what no device in use is below or above.
constexpr Range kRanges[] = {{GRAFT_SENSOR_TEMPERATURE, "temperature", -100'000, 300'000},
                             {GRAFT_SENSOR_POWER, "power", 0, 100'000'000},
                             {GRAFT_SENSOR_CLOCK, "clock", 1'000'000, 100'000'000'000},
                             {GRAFT_SENSOR_UTILIZATION, "utilization", 0, 100}};

}  // namespace

DRIVER_CASE(sensors, "sensors: values are in their units, and none is made up", "device_sensor",
            kOpen) {
  for (const Range& range : kRanges) {
    int64_t value = -1;
    const graft_status status =
        session.table.device_sensor(session.device, uint32_t(range.sensor), &value);
    if (status == GRAFT_NOT_FOUND) {
      session.require(value == -1, std::string(range.name) + ": NOT_FOUND wrote a value");
      continue;
    }
    session.expect(status, GRAFT_OK, "device_sensor");
    session.require(range.least <= value && value <= range.most,
                    std::string(range.name) + " reads " + std::to_string(value) +
                        ", which no device has in the unit of GRAFT_SENSORS");
  }
  int64_t value = -1;
  session.expect(session.table.device_sensor(session.device, 9999, &value), GRAFT_NOT_FOUND,
                 "device_sensor of a sensor that does not exist");
}
