// drivers/veda/queue.h: the commands of one of Graft's streams, on a thread that gives them to
// VEDA.
#ifndef GRAFT_DRIVERS_VEDA_QUEUE_H_
#define GRAFT_DRIVERS_VEDA_QUEUE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "graft/driver.h"
#include "graft/driver_failure.h"
#include "lane.h"
#include "work.h"

namespace graft::veda {

// A point in a queue. Waiters keep it alive after its event was recorded again or destroyed.
// Thread-safe.
class Mark {
 public:
  explicit Mark(std::shared_ptr<Failure> source) : source(std::move(source)) {}

  void pass();
  bool is_passed() const;
  // False: not passed when the time is over.
  bool wait(uint64_t timeout_ns);
  // REQUIRES of both: the point is passed.
  int64_t time_ns() const { return time_ns_; }       // of a steady clock
  const LateError& error() const { return error_; }  // of the stream at that time

  const std::shared_ptr<Failure> source;  // the stream's

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_passed_ = false;  // guarded by mutex_; the next are written before it is set
  int64_t time_ns_ = 0;
  LateError error_;
};

// The longest wait: more would overflow the clock, and is longer than any process lives.
inline constexpr uint64_t kForever = uint64_t{1} << 60;

// Pushes are serialised by the caller; all others may come from any thread. Commands that follow
// one another go to VEDA together, up to a mark, a wait or a call of the host: these take place
// between two of VEDA's waits, so that they see what failed before them.
class Queue {
 public:
  explicit Queue(Lane& lane);
  // Waits for the commands.
  ~Queue();

  void push(std::unique_ptr<Work> work);
  void push(std::shared_ptr<Mark> mark);
  // The function runs also if the device is lost.
  void push(std::function<void()> function);

  bool is_idle() const;
  // False: commands are left when the time is over.
  bool wait(uint64_t timeout_ns = kForever) const;

  const std::shared_ptr<Failure> failure = std::make_shared<Failure>();

 private:
  // One of the three.
  struct Command {
    std::unique_ptr<Work> work;
    std::shared_ptr<Mark> mark;
    std::function<void()> function;
  };
  using Batch = std::vector<std::unique_ptr<Work>>;

  void add(Command command);
  void serve();
  Batch take_work();
  void run(Batch& batch);
  void run_locked(Batch& batch);
  void note(const Work& work, const Called& called, const std::string& also);

  Lane& lane_;
  mutable std::mutex mutex_;  // guards what follows but the thread
  mutable std::condition_variable changed_;
  std::deque<Command> commands_;
  uint64_t left_ = 0;  // commands that are not done
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_QUEUE_H_
