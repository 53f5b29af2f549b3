// src/runtime/stream/event_handle.h: an event of a driver, for as long as its device is open.
#pragma once

#include "graft/driver.h"

namespace graft {

class OpenDevice;

// Gives the event back when it dies or when its device closes, whichever comes first. In a forked
// child the destructor does nothing. REQUIRES: the device outlives it.
class EventHandle {
 public:
  // Throws Error where the driver cannot make one.
  EventHandle(OpenDevice& device, bool timed);
  ~EventHandle();
  EventHandle(const EventHandle&) = delete;
  EventHandle& operator=(const EventHandle&) = delete;

  graft_event get() const { return handle_; }

 private:
  OpenDevice& device_;
  graft_event handle_ = nullptr;
};

}  // namespace graft
