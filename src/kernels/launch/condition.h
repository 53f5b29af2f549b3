// src/kernels/launch/condition.h: conditions that kernels ask of their data, reported as
// assertion.h says.
#pragma once

#include <string_view>

#include "codegen/ir/builder.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/error_record.h"
#include "runtime/driver/op_tag.h"

namespace graft {

// Appends the arguments that Condition declares. The message is kept as long as the process lives.
inline void append_condition(Arguments& arguments, Stream& stream, std::string_view message) {
  arguments.address(error_record(stream), sizeof(IndexError),
                    GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
  const auto code = static_cast<uint64_t>(IndexErrorCode::kAssertion);
  arguments.index(static_cast<int64_t>(static_cast<uint64_t>(current_tag()) << 32 | code));
  arguments.index(static_cast<int64_t>(op_tag(message)));
}

// The kernel's side.
class Condition {
 public:
  explicit Condition(ir::Builder& b)
      : b_(b), record_(b.update(GRAFT_INT64)), head_(b.index()), message_(b.index()) {}

  // Reports the message unless holds. Not inside vector loops.
  void require(ir::Value holds) const {
    b_.if_(!holds, [&] {
      record_.store(b_.i64(1), message_);
      record_.store(b_.i64(0), head_);
    });
  }

 private:
  ir::Builder& b_;
  ir::Address record_;
  ir::Value head_, message_;
};

}  // namespace graft
