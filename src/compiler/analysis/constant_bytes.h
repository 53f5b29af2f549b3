// src/compiler/analysis/constant_bytes.h: a constant's elements as they lie in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/graph/graph.h"

namespace graft::compiler {

// One number fills all bytes. REQUIRES: elements; count bytes are whole ones.
std::vector<uint8_t> constant_bytes(const GraphValue& value, uint64_t count);

}  // namespace graft::compiler
