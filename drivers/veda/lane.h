// drivers/veda/lane.h: VEDA's streams of a device, on which Graft's streams take turns.
#ifndef GRAFT_DRIVERS_VEDA_LANE_H_
#define GRAFT_DRIVERS_VEDA_LANE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "context.h"
#include "graft/driver.h"
#include "library.h"
#include "work.h"

namespace graft::veda {

// Whoever enqueues here holds the mutex until all that it enqueued is done, so a free lane is idle,
// and an error that a wait reports belongs to who waits.
class Lane {
 public:
  Lane(graft_device device, VEDAstream stream) : device(device), stream(stream) {}

  // Waits for what was enqueued: the first error, else success. A failed request may stay in VEDA's
  // stream for good, so the wait is repeated, at most once for each of so many requests; *out_over
  // says whether the stream is empty now. REQUIRES: the mutex is held and the device's context is
  // current, as the next.
  Called drain(size_t most, bool* out_over);

  // The status and, for last_message, the text of a call that failed. Finds out whether the device
  // is lost, and keeps it so. otherwise: for results that say nothing more exact.
  graft_status failed(const Called& called, const std::string& what, graft_status otherwise);

  const graft_device device;
  const VEDAstream stream;
  std::mutex mutex;
  // Commands of a lost device, which VEDA may still know: what they point to stays until it is
  // closed. Guarded by mutex.
  std::vector<std::unique_ptr<Work>> abandoned;

 private:
  bool answers();
};

// A device's lanes: one in OMP mode, one for each core in SCALAR mode.
class Lanes {
 public:
  // Makes one of each stream that VEDA has. REQUIRES: the device's context is current.
  Called open(graft_device device);

  // The lane of one more stream of Graft's; lanes take turns. Any thread.
  Lane& next();

  Lane& first() { return lanes_.front(); }

  // Drops what abandoned commands hold of VEDA's.
  void clear() { lanes_.clear(); }

 private:
  std::deque<Lane> lanes_;
  std::atomic<uint32_t> streams_{0};
};

// A call's turn on the device's first lane, with its context: for what waits at the call itself.
class Turn {
 public:
  explicit Turn(graft_device device);

  // OK, or why nothing can be called.
  graft_status status();
  graft_status failed(const Called& called, const std::string& what, graft_status otherwise);

 private:
  Lane& lane_;
  std::lock_guard<std::mutex> lock_;
  Current current_;
};

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_LANE_H_
