// src/runtime/stream/host_callback.h: functions of the host in the order of a stream.
#pragma once

#include <functional>

#include "runtime/driver/export.h"

namespace graft {

class Stream;

// Calls function once the stream's commands so far are done; later ones wait for it. It runs on any
// thread, must not call into Graft, and what it throws is dropped. Without the driver's
// host_callback the call blocks and runs it here. Throws as the stream's commands do.
GRAFT_EXPORT void host_callback(Stream& stream, std::function<void()> function);

}  // namespace graft
