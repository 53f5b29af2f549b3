// src/kernels/matmul/vendor_tiles.h: the tiles of products before anything is measured, by vendor.
#pragma once

#include <cstdint>
#include <vector>

#include "graft/driver.h"
#include "kernels/matmul/tile_shape.h"

namespace graft {

// The shape of the table for the device's vendor ("default" for one that is not in it).
const TileShape& vendor_tile(const graft_device_properties& properties);

// What the tuner tries, the vendor's first; each fits the device and stands once.
std::vector<TileShape> candidate_tiles(const graft_device_properties& properties,
                                       uint32_t element_bytes);

}  // namespace graft
