// src/codegen/cache/carried_blobs.h: compiled programs that a file brings along, beside those on
// disk.
#pragma once

#include <string>
#include <vector>

#include "runtime/driver/export.h"

namespace graft {

// A program as the driver saved it. hash: of the driver's name and the source alone, so that a
// process without that compiler finds it; the driver refuses to load it for another device.
struct CarriedBlob {
  std::string hash, bytes;
  std::string processor = {};  // a level, such as "x86-64-v3"; "": of the device that compiled it
};

// Kernels are looked for among these blobs, too, before the disk; they stay as long as the process.
// Any thread.
GRAFT_EXPORT void carry_blobs(std::vector<CarriedBlob> blobs);

// Those of a hash in the order to try: a device's own, then those of levels, the highest name
// first. A process that notes blobs gets those for its processor alone. Any thread.
std::vector<CarriedBlob> carried_blobs(const std::string& hash);

// A blob of each level of processors that was brought, the lowest name first. Any thread.
std::vector<CarriedBlob> carried_levels();

// From the first call on, the process keeps the blob of each kernel that is loaded or compiled.
// processor: as in CarriedBlob. Any thread.
GRAFT_EXPORT void begin_noting_blobs(const std::string& processor);
void note_blob(const std::string& hash, const std::string& bytes);

// What was noted so far, by hash.
GRAFT_EXPORT std::vector<CarriedBlob> noted_blobs();

}  // namespace graft
