// src/compiler/analysis/constant_bytes.cpp: a constant's elements as they lie in memory.
#include "compiler/analysis/constant_bytes.h"

#include <cstring>

#include "kernels/tensor/view.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

std::vector<uint8_t> constant_bytes(const GraphValue& value, uint64_t count) {
  const graft_dtype dtype = value.type.dtype;
  const uint64_t size = size_of(dtype);
  std::vector<uint8_t> bytes(count);
  const size_t given = value.data.size() + value.whole.size();
  for (size_t i = 0; i * size < bytes.size(); ++i) {
    const size_t k = given == 1 ? 0 : i;
    const Scalar scalar = value.data.empty() ? Scalar::of_integer(dtype, value.whole[k])
                                             : Scalar::of(dtype, value.data[k]);
    std::memcpy(bytes.data() + i * size, scalar.bits, size);
  }
  return bytes;
}

}  // namespace graft::compiler
