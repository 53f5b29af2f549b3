// src/runtime/driver/device_properties.h: what a driver says of a device, read and checked.
#pragma once

#include <cstdint>

#include "graft/driver.h"
#include "runtime/driver/export.h"
#include "runtime/driver/library.h"

namespace graft {

// What a driver says of a device, without opening it. Error, with what the driver said and what the
// ABI asks for, when it fails, throws, writes past the struct, or says what cannot be or
// contradicts itself: no memory, a dialect that Graft does not know or that does not serve the
// device's class, a sub-group larger than a group, ... Bits of features and dtypes that this Graft
// does not know are a newer driver's and are no error; those of dtypes are cleared. Strings are
// UTF-8 and end in a zero byte whatever it wrote. Any thread.
GRAFT_EXPORT graft_device_properties read_properties(const Driver& driver, uint32_t ordinal);

// Every bit of graft_device_properties.dtypes that this Graft knows.
GRAFT_EXPORT uint32_t all_dtypes();

// The dtypes that the device's kernels can compute with, as bits: those that the driver states (all
// where it states none), without float64 and complex128 unless it has GRAFT_FEATURE_FLOAT64.
GRAFT_EXPORT uint32_t computed_dtypes(const graft_device_properties& properties);

}  // namespace graft
