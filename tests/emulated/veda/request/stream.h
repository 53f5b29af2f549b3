// tests/emulated/veda/request/stream.h: one queue of requests, done in order by a thread of the
// host.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_STREAM_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/emulated/veda/request/link.h"
#include "tests/emulated/veda/request/profiler.h"
#include "tests/emulated/veda/request/settings.h"

namespace emulated {

// What a request came to: how the device took it, and the value that it gave.
struct Outcome {
  VEDAresult status = VEDA_SUCCESS;
  std::uint64_t value = 0;
};

using Work = std::function<Outcome(Link&)>;

// What a stream does with a request beside its work.
struct Handling {
  bool value_is_code = false;       // a value other than 0 is an error of VEDA, seen at the sync
  std::uint64_t* result = nullptr;  // gets the value at the sync
  std::shared_ptr<ProfileRecord> record;
};

// Thread-safe. Ends with stop.
class Stream {
 public:
  Stream(std::unique_ptr<Channel> channel, const Settings& settings,
         std::shared_ptr<std::atomic<bool>> lost);
  ~Stream();

  // Throws Failure(INVALID_REQID) if the device is lost, or if too many requests wait for a sync.
  void enqueue(Work work, Handling handling = {});

  // Waits for all requests given so far and gives the first error. A request that failed stays in
  // the queue, as in VEDA: each later sync then gives VEO_COMMAND_ERROR.
  VEDAresult synchronize();

  // Ends the thread; what it has not done yet fails with VEO_COMMAND_ERROR.
  void stop();

 private:
  struct Call {
    Work work;
    Handling handling;
    Outcome outcome;
    bool done = false;
    bool reported = false;
  };

  Link link_;
  const bool keep_failed_;
  const std::size_t most_calls_;
  const std::shared_ptr<std::atomic<bool>> lost_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Call>> calls_;    // until a sync took them
  std::deque<std::shared_ptr<Call>> waiting_;  // until the thread takes them
  bool stopping_ = false;
  std::thread thread_;

  void serve();
  Outcome perform(Call* call);
  static void give_up(Call* call);
  VEDAresult report(Call* call);
};

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_STREAM_H_
