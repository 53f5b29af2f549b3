// src/runtime/stream/host_callback.cpp: functions of the host in the order of a stream.
#include "runtime/stream/host_callback.h"

#include <memory>
#include <utility>

#include "runtime/driver/fork.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/stream.h"

namespace graft {
namespace {

void run_callback(void* context) {
  const std::unique_ptr<std::function<void()>> function(
      static_cast<std::function<void()>*>(context));
  try {
    (*function)();
  } catch (...) {
  }
}

}  // namespace

void host_callback(Stream& stream, std::function<void()> function) {
  auto owned = std::make_unique<std::function<void()>>(std::move(function));
  stream.refuse_recording("a host callback");
  const auto slot = stream.device().driver().table().host_callback;
  if (slot == nullptr) {
    if (!stream.device().usable() || forked_child()) stream.device().refuse_unusable();
    stream.settle_or_throw();
    run_callback(owned.release());
    return;
  }
  stream.command("host_callback", [&](uint32_t) {
    const graft_status status =
        Driver::call_locked(slot, stream.handle(), &run_callback, owned.get());
    if (status == GRAFT_OK) static_cast<void>(owned.release());
    return status;
  });
}

}  // namespace graft
