// src/runtime/stream/event_handle.cpp: an event of a driver, for as long as its device is open.
#include "runtime/stream/event_handle.h"

#include "runtime/driver/fork.h"
#include "runtime/driver/open_device.h"

namespace graft {

EventHandle::EventHandle(OpenDevice& device, bool timed) : device_(device) {
  device.check(Driver::call(device.driver().table().event_create, device.handle(), timed ? 1u : 0u,
                            &handle_),
               "event_create");
  if (handle_ == nullptr) {
    throw Error(GRAFT_INTERNAL, device.label() + ": event_create returned OK but no event");
  }
  device.own(handle_, device.driver().table().event_destroy);
}

EventHandle::~EventHandle() {
  const auto destroy = device_.driver().table().event_destroy;
  if (!forked_child() && device_.disown(handle_, destroy)) Driver::call(destroy, handle_);
}

}  // namespace graft
