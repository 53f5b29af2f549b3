// include/graft/driver_slot.h: what the slots of a driver written in C++ share; optional, all of it
// inline.
//
// A driver needs nothing of this: the ABI is graft/driver.h, in C. A driver in C++ would write the
// same lines again. A slot reports a failure as
//
//   return graft::fail(GRAFT_INVALID_ARGUMENT, "what was given, what was expected, what to do");
//
// and its table is filled with guarded slots, so that no exception crosses the boundary:
//
//   table.copy = &graft::Guarded<&copy>::call;
//   table.last_message = &graft::Guarded<&graft::last_message>::call;
//
// All of it is thread-safe: texts belong to the thread that failed.
#ifndef GRAFT_DRIVER_SLOT_H_
#define GRAFT_DRIVER_SLOT_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "graft/driver.h"

// Two drivers of one process must not share the text.
#pragma GCC visibility push(hidden)

namespace graft {

// The text of the calling thread's last failure, "" when the thread never failed. Valid until the
// thread fails again or ends.
inline std::string& last_text() {
  thread_local std::string text;
  return text;
}

// Keeps text for last_message and returns status. Throws nothing but std::bad_alloc, in the copy
// that the caller makes of its text.
inline graft_status fail(graft_status status, std::string text) {
  last_text() = std::move(text);
  return status;
}

// Copies text to a caller's buffer: truncated to capacity, always ended by a zero byte.
inline void copy_text(const std::string& text, char* out, size_t capacity) {
  if (out == nullptr || capacity == 0) return;
  size_t bytes = std::min(capacity - 1, text.size());
  std::memcpy(out, text.data(), bytes);
  out[bytes] = '\0';
}

// The slot last_message: fills in the calling thread's text.
inline graft_status last_message(char* out_text, size_t capacity) {
  copy_text(last_text(), out_text, capacity);
  return GRAFT_OK;
}

// Guarded<&slot>::call is what goes into a table: the slot's status, OUT_OF_MEMORY where it threw
// std::bad_alloc, INTERNAL with the exception's text where it threw another std::exception.
template <auto slot>
struct Guarded;

template <class... Arguments, graft_status (*slot)(Arguments...)>
struct Guarded<slot> {
  static graft_status call(Arguments... arguments) {
    try {
      return slot(arguments...);
    } catch (const std::bad_alloc&) {
      return fail(GRAFT_OUT_OF_MEMORY, "no host memory left");
    } catch (const std::exception& error) {
      return fail(GRAFT_INTERNAL, error.what());
    }
  }
};

}  // namespace graft

#pragma GCC visibility pop

#endif  // GRAFT_DRIVER_SLOT_H_
