// driver/handle.h: what stands behind the driver's handles, and the statuses of the chip's calls.
//
// For the real chip: let the handles hold the SDK's objects, and let Error map the SDK's statuses.
#ifndef ACME_DRIVER_HANDLE_H_
#define ACME_DRIVER_HANDLE_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "chip/chip.h"
#include "graft/driver_slot.h"

namespace acme_driver {

struct CloseChip {
  void operator()(chip* self) const { chip_close(self); }
};
struct DestroyQueue {
  void operator()(chip_queue* self) const { chip_queue_destroy(self); }
};

// Shares a fence. Thread-safe as a shared_ptr is.
class Fence {
 public:
  // No fence: nothing to wait for.
  Fence() = default;
  // Takes over one holder's share.
  explicit Fence(chip_fence* fence) : fence_(fence) {}
  Fence(const Fence& other) : fence_(other.fence_) {
    if (fence_ != nullptr) chip_fence_retain(fence_);
  }
  Fence& operator=(Fence other) noexcept {
    std::swap(fence_, other.fence_);
    return *this;
  }
  ~Fence() {
    if (fence_ != nullptr) chip_fence_release(fence_);
  }
  chip_fence* get() const { return fence_; }

 private:
  chip_fence* fence_ = nullptr;
};

// The status of an SDK's call; keeps a text for last_message that names the call.
inline graft_status status_of(chip_status status, const char* call) {
  switch (status) {
    case CHIP_OK:
      return GRAFT_OK;
    case CHIP_BUSY:
      return GRAFT_BUSY;
    case CHIP_NO_MEMORY:
      return graft::fail(GRAFT_OUT_OF_MEMORY, std::string(call) + ": no memory is left");
    case CHIP_BAD_ADDRESS:
      return graft::fail(GRAFT_INVALID_ARGUMENT,
                         std::string(call) + ": no allocation begins at this address");
    default:
      return graft::fail(GRAFT_INTERNAL,
                         std::string(call) + ": the chip answered " + std::to_string(status));
  }
}

// The status of a late error, with its text; GRAFT_OK if error is none.
inline graft_status late_status(const chip_error& error) {
  return error.status == CHIP_OK ? GRAFT_OK : graft::fail(GRAFT_LAUNCH_FAILED, error.text);
}

}  // namespace acme_driver

struct graft_device_s {
  std::unique_ptr<chip, acme_driver::CloseChip> handle;
};

struct graft_stream_s {
  graft_device device;
  std::unique_ptr<chip_queue, acme_driver::DestroyQueue> queue;
};

// An event holds the fence of its latest mark.
struct graft_event_s {
  std::mutex mutex;
  acme_driver::Fence fence;  // guarded by mutex

  acme_driver::Fence current() {
    const std::lock_guard lock(mutex);
    return fence;
  }
};

#endif  // ACME_DRIVER_HANDLE_H_
