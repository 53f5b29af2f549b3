// src/kernels/launch/checked_index.h: reads indices in kernels, clamps them and reports bad ones.
#pragma once

#include <string>

#include "codegen/ir/builder.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/error_record.h"
#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"

namespace graft {

// Appends the arguments that IndexChecker declares.
inline void append_checker(Arguments& arguments, Stream& stream) {
  arguments.address(error_record(stream), sizeof(IndexError),
                    GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
  const auto code = static_cast<uint64_t>(IndexErrorCode::kOutOfRange);
  arguments.index(static_cast<int64_t>(static_cast<uint64_t>(current_tag()) << 32 | code));
}

// Before a launch that has any index: in a dimension without elements there is no place to clamp
// one to. Throws Error.
inline void require_elements(int64_t size, int dim) {
  if (size != 0) return;
  throw Error(GRAFT_INVALID_ARGUMENT,
              "index is out of bounds for dimension " + std::to_string(dim) + " with size 0");
}

// The kernel's side. The record is seen as two int64: {code, tag} and index.
class IndexChecker {
 public:
  explicit IndexChecker(ir::Builder& b) : b_(b), record_(b.update(GRAFT_INT64)), head_(b.index()) {}

  // given (any integer type) as a position within [0, size): negative ones count from the end when
  // wraps is set. Reports the others. Not inside vector loops.
  ir::Value check(ir::Value given, ir::Value size, bool wraps) const {
    const ir::Value index = cast(ir::Type::kI64, given);
    const ir::Value at = wraps ? select(index < 0, index + size, index) : index;
    const ir::Variable place(at);
    b_.if_(beyond(at, size), [&] {
      record_.store(b_.i64(1), index);
      record_.store(b_.i64(0), head_);
      place = ir::maximum(ir::minimum(at, size - 1), b_.i64(0));
    });
    return place.get();
  }

  // body(i, position) for i in [begin, end) with position = load(i) within [0, size).
  template <class Load, class Body>
  void each(ir::Value begin, ir::Value end, ir::Value size, Load load, Body body) const {
    each(begin, end, size, load, body, [&](ir::Value i) { body(i, check(load(i), size, false)); });
  }

  // The same with checked(i) for elements that are, or may be, outside. Eight are looked at
  // together: checks one by one would stand between the loads of a gather.
  template <class Load, class Body, class Checked>
  void each(ir::Value begin, ir::Value end, ir::Value size, Load load, Body body,
            Checked checked) const {
    constexpr int64_t kBlock = 8;
    const ir::Value tail = begin + (end - begin) / kBlock * kBlock;
    b_.loop(
        begin, tail,
        [&](ir::Value i) {
          ir::Value positions[kBlock], outside;
          for (int64_t k = 0; k < kBlock; ++k) {
            positions[k] = cast(ir::Type::kI64, load(i + k));
            const ir::Value bad = beyond(positions[k], size);
            outside = k == 0 ? bad : outside | bad;
          }
          b_.if_(
              outside,
              [&] {
                for (int64_t k = 0; k < kBlock; ++k) checked(i + k);
              },
              [&] {
                for (int64_t k = 0; k < kBlock; ++k) body(i + k, positions[k]);
              });
        },
        b_.i64(kBlock));
    b_.loop(tail, end, checked);
  }

 private:
  // Below zero, too: that is large without a sign.
  static ir::Value beyond(ir::Value at, ir::Value size) {
    return bitcast(ir::Type::kU64, at) >= bitcast(ir::Type::kU64, size);
  }

  ir::Builder& b_;
  ir::Address record_;
  ir::Value head_;
};

}  // namespace graft
