// src/kernels/matmul/row_exchange.h: numbers that the work-items of a tile's row share.
#pragma once

#include "kernels/matmul/tile_product.h"

namespace graft {

// In local memory of rows x items across. One barrier lies between share() and gather(), another
// one between gather() and the next use of that memory.
class RowExchange {
 public:
  // REQUIRES: all three outlive the exchange.
  RowExchange(ir::Builder& builder, const TileProduct& product, const TileShape& shape,
              const ir::LocalArray& local)
      : b_(builder), product_(product), across_(shape.across()), local_(local) {}

  // This item's number for its i-th row.
  void share(int64_t i, ir::Value value) const {
    local_.store(product_.row_of(i) * across_ + product_.place(), value);
  }
  // combine(first, the number of each item of the row), the same in all of them.
  template <class Combine>
  ir::Value gather(int64_t i, ir::Value first, Combine combine) const {
    const ir::Variable all(first);
    const ir::Value from = product_.row_of(i) * across_;
    b_.loop(b_.constant(ir::Type::kI32, 0), b_.constant(ir::Type::kI32, across_),
            [&](ir::Value k) { all = combine(all.get(), local_.load(from + k)); });
    return all.get();
  }

 private:
  ir::Builder& b_;
  const TileProduct& product_;
  const int64_t across_;
  const ir::LocalArray& local_;
};

}  // namespace graft
