// src/kernels/sort/key.h: elements as unsigned keys that sort as PyTorch sorts the elements.
#pragma once

#include "codegen/ir/builder.h"
#include "kernels/tensor/view.h"

namespace graft {

// Elements are loaded as raw_dtype(dtype) (bool as itself) and become unsigned integers of the same
// order: -0 and 0 are one key, all NaN are one key, above everything. A key that is inverted sorts
// from large to small, NaN first. Keys of stored types up to 4 bytes are u32, others u64; only
// their key_bits() low bits are used.

// Radix sort and select look at digits of 8 bits; a line too long for one work-item is cut into
// chunks of at least so many elements, one work-item each.
inline constexpr int64_t kDigits = 256;
inline constexpr int64_t kChunkElements = 32768;
inline constexpr int64_t kMostChunks = 256;

// The dtype that a kernel declares to load elements for their keys.
graft_dtype key_storage(graft_dtype dtype);
ir::Type key_type(graft_dtype dtype);
uint32_t key_bits(graft_dtype dtype);

// The key of a loaded element.
ir::Value sort_key(ir::Value element, graft_dtype dtype, bool descending);

// Throws Error UNSUPPORTED for complex numbers, which have no order. what: the operator.
void require_order(graft_dtype dtype, const char* what);

// Pairs of (key, position) in scratch memory: one u64 where key and position have 32 bits, else two
// neighbours.
class SortEntries {
 public:
  // Declares the memory: the next parameter.
  SortEntries(ir::Builder& b, graft_dtype dtype, bool wide);

  struct Entry {
    ir::Value key, position;  // the key's type; i64
  };
  Entry load(ir::Value at) const;
  void store(ir::Value at, const Entry& entry) const;

  // Whether entries for that many elements need two words.
  static bool is_wide(graft_dtype dtype, int64_t count);
  static uint64_t bytes(bool wide, int64_t entries) {
    return static_cast<uint64_t>(entries) * (wide ? 16 : 8);
  }

 private:
  ir::Address words_;
  ir::Type type_;
  bool wide_;
};

}  // namespace graft
