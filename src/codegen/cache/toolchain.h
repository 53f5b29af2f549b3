// src/codegen/cache/toolchain.h: what blobs of a device depend on, and how they are named.
#pragma once

#include <string>
#include <string_view>

#include "graft/driver.h"
#include "runtime/driver/open_device.h"

namespace graft {

// Everything that a blob of the device depends on besides its source; empty when blobs must not be
// kept.
std::string toolchain_of(OpenDevice& device);

// XXH3 of 128 bits, as 32 digits: a blob's name in the store, and what finds damage in a file.
std::string hash_text(std::string_view text);

// Appends to text, which outlives its use.
graft_sink sink_into(std::string* text);

// The first lines of a compiler's log, which may hold the whole source. more: where to find it.
std::string first_lines(const std::string& text, const char* more);

}  // namespace graft
