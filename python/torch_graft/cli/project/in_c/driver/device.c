/* driver/device.c: how many chips there are, what each can do, opening and closing.
 *
 * For the real chip: count what your SDK finds, and read the properties from it. device_count and
 * device_properties open nothing: they run when a program asks for the number of devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

graft_status device_count(uint32_t* out_count) {
  *out_count = chip_count();
  return GRAFT_OK;
}

graft_status device_properties(uint32_t ordinal, graft_device_properties* properties) {
  if (ordinal >= chip_count()) return failed(GRAFT_NOT_FOUND, "there is no chip %u", ordinal);
  graft_device_properties mine = {0};
  mine.struct_size = properties->struct_size;
  mine.device_class = GRAFT_CPU_LIKE;
  mine.features = GRAFT_FEATURE_FLOAT64 | GRAFT_FEATURE_INT64_ATOMICS;
  mine.compute_units = 1;
  mine.max_group_size = 1;
  mine.sub_group_size = 4;
  mine.capability_major = 1;
  mine.memory_bytes = CHIP_MEMORY_BYTES;
  mine.allocation_alignment = CHIP_ALIGNMENT;
  snprintf(mine.name, sizeof mine.name, "Acme emulated chip");
  snprintf(mine.vendor, sizeof mine.vendor, "Acme");
  snprintf(mine.dialect, sizeof mine.dialect, "%s", driver_dialect);
  /* Graft may know a shorter struct. */
  memcpy(properties, &mine, mine.struct_size < sizeof mine ? mine.struct_size : sizeof mine);
  return GRAFT_OK;
}

graft_status device_open(uint32_t ordinal, graft_device* out_device) {
  if (ordinal >= chip_count()) return failed(GRAFT_NOT_FOUND, "there is no chip %u", ordinal);
  graft_device device = malloc(sizeof *device);
  if (device == NULL) return failed(GRAFT_OUT_OF_MEMORY, "device_open: no host memory is left");
  const graft_status status = status_of(chip_open(ordinal, &device->chip), "device_open");
  if (status != GRAFT_OK) {
    free(device);
    return status;
  }
  *out_device = device;
  return GRAFT_OK;
}

graft_status device_close(graft_device device) {
  chip_close(device->chip);
  free(device);
  return GRAFT_OK;
}
