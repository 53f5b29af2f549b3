// src/runtime/stream/command_capture.cpp: what a thread gives to a stream, noted while it runs.
#include "runtime/stream/command_capture.h"

#include <algorithm>

namespace graft {
namespace {

thread_local CommandCapture* innermost = nullptr;

constexpr size_t kHeld = SIZE_MAX;  // the end of a temporary that was not given back

}  // namespace

std::atomic<uint32_t> CommandCapture::captures_{0};

CommandCapture* CommandCapture::of_thread() noexcept { return innermost; }

CommandCapture::CommandCapture(Stream& stream) : stream_(stream), outer_(innermost) {
  if (outer_ != nullptr) outer_->spoil();
  innermost = this;
  captures_.fetch_add(1, std::memory_order_relaxed);
}

CommandCapture::~CommandCapture() {
  innermost = outer_;
  captures_.fetch_sub(1, std::memory_order_relaxed);
}

void CommandCapture::allocated(graft_address address, uint64_t bytes,
                               const Stream& stream) noexcept {
  if (&stream != &stream_) return spoil();
  try {
    temporaries.push_back({address, bytes, commands.size(), kHeld});
    ++held_;
  } catch (const std::bad_alloc&) {
    spoil();
  }
}

void CommandCapture::freed(graft_address address) noexcept {
  const auto found = std::ranges::find_if(temporaries, [&](const Temporary& one) {
    return one.address == address && one.last == kHeld;
  });
  if (found == temporaries.end()) return;  // held since before the capture
  found->last = commands.size();
  --held_;
}

}  // namespace graft
