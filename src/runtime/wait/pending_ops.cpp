// src/runtime/wait/pending_ops.cpp: which operators a stream may still be working on.
#include "runtime/wait/pending_ops.h"

#include <algorithm>

#include "runtime/driver/op_tag.h"

namespace graft {

// The number of the oldest command that is known and not done; count where there is none.
uint64_t PendingOps::first(uint64_t count) const {
  return std::min(count, std::max(done(), added_ - std::min(added_, kKept)));
}

uint32_t PendingOps::oldest(uint64_t count) const {
  const uint64_t number = first(count);
  return number == count ? 0 : tags_[number % kKept];
}

std::string PendingOps::text(uint64_t count) const {
  const std::string name = op_name(oldest(count));
  const uint64_t number = first(count);
  const uint64_t later = count - std::min(count, number + 1);
  std::string text = name.empty() ? "A command" : name;
  if (number > done()) text += ", a command before it";
  if (later > 0) {
    text += " or one of the " + std::to_string(later) + (later == 1 ? " command" : " commands") +
            " after it";
  }
  return text;
}

}  // namespace graft
