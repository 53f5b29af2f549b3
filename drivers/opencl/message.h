// drivers/opencl/message.h: the text of the calling thread's last failure.
#ifndef GRAFT_DRIVERS_OPENCL_MESSAGE_H_
#define GRAFT_DRIVERS_OPENCL_MESSAGE_H_

#include <cstddef>
#include <string>

#include "graft/driver.h"

namespace graft::opencl {

// Keeps text for last_message and returns status, so that a slot can `return fail(...)`.
graft_status fail(graft_status status, std::string text);

// The kept text, "" when the thread never failed.
const std::string& last_text();

// Copies text to a caller's buffer: truncated to capacity, always ended by a zero byte.
void copy_text(const std::string& text, char* out, size_t capacity);

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_MESSAGE_H_
