// src/runtime/platform/device.cpp: an open device of a driver with its streams and memory.
#include "runtime/platform/device.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "runtime/driver/bounded_wait.h"
#include "runtime/driver/fork.h"
#include "runtime/memory/caching_allocator.h"
#include "runtime/memory/direct_allocator.h"
#include "runtime/stream/write_epochs.h"

namespace graft {
namespace {

bool caching_is_off() {
  const char* value = std::getenv("GRAFT_NO_CACHING");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

std::unique_ptr<Allocator> make_allocator(OpenDevice& device) {
  auto direct = std::make_unique<DirectAllocator>(device);
  if (caching_is_off()) return direct;
  return std::make_unique<CachingAllocator>(device, std::move(direct));
}

}  // namespace

Device::Device(Driver& driver, uint32_t ordinal, int index)
    : OpenDevice(driver, ordinal, index),
      allocator_(make_allocator(*this)),
      pinned_(std::make_unique<PinnedAllocator>(*this)),
      streams_(*this, *allocator_) {}

Device::~Device() {
  note_closed(*this);
  if (forked_child()) {  // memory, streams and handles are the parent's
    static_cast<void>(allocator_.release());
    static_cast<void>(pinned_.release());
    return;
  }
  if (!closed()) {
    try {
      Patience patience({}, kExitLimit);
      streams_.drain(patience);
    } catch (...) {
      postpone_interrupt(std::current_exception());
    }
    pinned_.reset();
    close();
  }
  allocator_.reset();  // before the streams
  pinned_.reset();
}

void Device::close() noexcept {
  if (closed()) return;
  allocator_->close();
  if (pinned_ != nullptr) pinned_->close();
  close_owned();
  streams_.close();
  close_handle();
}

std::shared_ptr<Recording> Device::make_recording(uint64_t pool) {
  allocator_->retain_pool(pool);
  const std::shared_ptr<Allocator> kept(allocator_.get(),
                                        [pool](Allocator* all) { all->release_pool(pool); });
  auto recording = std::make_shared<Recording>(*this, pool);
  recording->keep(kept);
  return recording;
}

MemoryInfo Device::memory_info() {
  return memory_info(static_cast<uint64_t>(allocator_->statistics().reserved_bytes.all().current));
}

bool Device::shut_down(Patience& patience) {
  return !forked_child() && refuse_commands() && streams_.drain(patience);
}

bool Device::finish(Patience& patience) noexcept {
  if (!usable()) return false;
  bool done = false;
  try {
    done = shut_down(patience);
  } catch (...) {  // interrupted: no other device is waited for
    patience = Patience({}, std::chrono::nanoseconds(1));
  }
  if (!done) {
    std::fprintf(
        stderr, "graft: the process ends with commands left on %s; the driver may wait for them.\n",
        label().c_str());
  }
  return done;
}

}  // namespace graft
