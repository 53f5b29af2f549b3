// src/runtime/driver/op_tag.h: small numbers for op names, which travel with every command.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/driver/export.h"

namespace graft {

// The number of a name; the same name gives the same number for as long as the process lives.
// Never 0 but for the empty name. Thread-safe.
GRAFT_EXPORT uint32_t op_tag(std::string_view name);

// The name behind a number; empty for 0 and for a number that op_tag never gave. Thread-safe.
GRAFT_EXPORT std::string op_name(uint32_t tag);

// The tag of the innermost OpScope of the calling thread, 0 outside of any. About 2 ns.
GRAFT_EXPORT uint32_t current_tag() noexcept;

// Names the op that the calling thread works on until the scope ends; scopes nest, and late errors
// of the commands inside carry the name. REQUIRES: name has static storage, since it is turned
// into a tag at the first command only and remembered by its address.
class GRAFT_EXPORT OpScope {
 public:
  explicit OpScope(const char* name) noexcept;
  explicit OpScope(uint32_t tag) noexcept;
  ~OpScope() { *thread_ = outer_; }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  // What a thread's scopes leave to be read: a name, or a tag once it was asked for.
  struct Op {
    const char* name = nullptr;
    uint32_t tag = 0;
  };

 private:
  Op* const thread_;  // of the thread that made the scope
  const Op outer_;
};

}  // namespace graft
