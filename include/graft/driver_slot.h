// include/graft/driver_slot.h: error texts and exception guards for the slots of a driver written
// in C++; optional, inline only.
//
// The ABI, graft/driver.h, is C and does not need this header, which saves drivers in C++ repeated
// lines. A slot reports a failure as
//
//   return graft::fail(GRAFT_INVALID_ARGUMENT, "what was given, what was expected, what to do");
//
// and the driver fills its table with guarded slots, so that no exception crosses the boundary:
//
//   table.copy = &graft::Guarded<&copy>::call;
//   table.last_message = &graft::Guarded<&graft::last_message>::call;
//
// All functions are thread-safe: each thread has its own text.
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

// Two drivers of one process must not share the texts.
#pragma GCC visibility push(hidden)

namespace graft {

// The text of the calling thread's last failure, "" if it never failed. Valid until the thread
// fails again or ends.
inline std::string& last_text() {
  thread_local std::string text;
  return text;
}

// Keeps text for last_message and returns status. Throws nothing; the caller's copy of text may
// throw std::bad_alloc.
inline graft_status fail(graft_status status, std::string text) {
  last_text() = std::move(text);
  return status;
}

// Copies text to the caller's buffer, cut to capacity and ended by a zero byte.
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

// Guarded<&slot>::call goes into a table. It returns the slot's status, OUT_OF_MEMORY if the slot
// threw std::bad_alloc, INTERNAL with the exception's text if it threw another std::exception.
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
