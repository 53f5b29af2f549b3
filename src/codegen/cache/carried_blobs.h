// src/codegen/cache/carried_blobs.h: compiled programs that a file brings along, beside those on
// disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/driver/export.h"

namespace graft {

// A program as the driver saved it. hash: of the driver's name and the source alone, so that a
// process without that compiler finds it; the driver refuses to load it for another device.
struct CarriedBlob {
  std::string hash, bytes;
};

// Kernels are looked for among these blobs, too, before the disk; they stay as long as the process.
// Any thread.
GRAFT_EXPORT void carry_blobs(std::vector<CarriedBlob> blobs);

// The bytes under a hash; nothing where nobody brought them. Any thread.
std::optional<std::string> carried_blob(const std::string& hash);

// From the first call on, the process keeps the blob of each kernel that is loaded or compiled.
// Any thread.
GRAFT_EXPORT void begin_noting_blobs();
void note_blob(const std::string& hash, const std::string& bytes);

// What was noted so far, by hash.
GRAFT_EXPORT std::vector<CarriedBlob> noted_blobs();

}  // namespace graft
