// src/runtime/stream/late_errors.cpp: what failed of a stream's commands after their calls.
#include "runtime/stream/late_errors.h"

#include <string>
#include <utility>

#include "runtime/driver/op_tag.h"
#include "runtime/driver/op_trace.h"
#include "runtime/driver/open_device.h"
#include "runtime/driver/readable_text.h"

namespace graft {

Error LateErrors::told(graft_stream stream, graft_status status) {
  const graft_driver_table& table = device_.driver().table();
  uint32_t tag = 0;
  char text[4096] = "";
  if (table.stream_error != nullptr && stream != nullptr) {
    if (Driver::call_locked(table.stream_error, stream, &tag, text, sizeof(text)) != GRAFT_OK)
      tag = 0;
    text[sizeof(text) - 1] = '\0';
  }
  const std::string op = op_name(tag);
  const std::string says = text[0] != '\0' ? readable(text) : status_text(status);
  if (status == GRAFT_DEVICE_LOST) {
    device_.lose(says, op);
    return device_.unusable_error();
  }
  return {status, (op.empty() ? "A command" : op) + " failed on " + device_.label() + ": " +
                      status_name(status) + ": " + says +
                      " (the command failed while it ran; this later call reports it)" +
                      op_trace_note(tag)};
}

void LateErrors::keep(graft_stream stream, graft_status status) {
  const Error error = told(stream, status);
  if (first_) {
    ++others_;
  } else {
    first_.emplace(error);
  }
}

Error LateErrors::take_all() {
  const uint64_t others = others_;
  const Error error = *take_first();
  if (others == 0) return error;
  return {error.status(), error.what() + (". After it " + std::to_string(others)) +
                              " more failed on this stream before this error was reported"};
}

std::optional<Error> LateErrors::take_first() {
  others_ = 0;
  return std::exchange(first_, std::nullopt);
}

}  // namespace graft
