// drivers/opencl/message.cpp: the text of the calling thread's last failure.
#include "message.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace graft::opencl {
namespace {
thread_local std::string kept;
}  // namespace

graft_status fail(graft_status status, std::string text) {
  kept = std::move(text);
  return status;
}

const std::string& last_text() { return kept; }

void copy_text(const std::string& text, char* out, size_t capacity) {
  if (out == nullptr || capacity == 0) return;
  size_t bytes = std::min(capacity - 1, text.size());
  std::memcpy(out, text.data(), bytes);
  out[bytes] = '\0';
}

}  // namespace graft::opencl
