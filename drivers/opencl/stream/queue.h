// drivers/opencl/stream/queue.h: an in-order command queue that knows how each of its commands
// ended.
#ifndef GRAFT_DRIVERS_OPENCL_STREAM_QUEUE_H_
#define GRAFT_DRIVERS_OPENCL_STREAM_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backlog.h"
#include "completion.h"
#include "failure.h"
#include "graft/driver.h"
#include "platform/api.h"
#include "platform/device.h"

namespace graft::opencl {

class Queue;

// A point in a queue: after its first commands, of which the last has that number.
struct Mark {
  ~Mark();
  // BUSY until the point is passed; never blocks. Sends the queue's commands off.
  graft_status query() const;
  void wait() const;
  // False: not passed when the time is over. For waits of a program, which may be interrupted.
  bool wait_within(uint64_t timeout_ns);
  // The error that whoever waited for the point inherits. REQUIRES: the point is passed.
  LateError error() const;

  std::shared_ptr<Queue> queue;
  cl_event event = nullptr;  // of the command before the point; null: it was done already
  uint64_t number = 0;
  uint64_t told = 0;   // errors that the queue had told by then
  uint64_t calls = 0;  // of the host that the queue had by then
  Completion completion;
};

// Calls that enqueue are serialised by the caller, all others may come from any thread. Marks keep
// it alive longer than its stream, which stops its backlog first.
class Queue : public std::enable_shared_from_this<Queue> {
 public:
  // Takes over handle.
  Queue(graft_device device, graft_stream stream, cl_command_queue handle)
      : device(device), stream(stream), handle(handle), backlog(*this) {}
  ~Queue();

  // Takes over the event of a command that was enqueued, and sends it off if need be. work: not
  // for the driver's own commands. waited: what the command waits for in another queue.
  void note(cl_event event, uint32_t tag, bool work, std::shared_ptr<Mark> waited = nullptr);

  // Keeps the error of a command that OpenCL refused after its caller was told that it is taken.
  void refused(graft_status status, uint32_t tag, const std::string& text);

  // The point after all commands, the backlog's too; timed: with a command of its own, whose event
  // has the time.
  graft_status mark(bool timed, std::shared_ptr<Mark>* out);

  // Looks which commands are done and keeps their errors; true when all are.
  bool reap();

  // Sends every command to the device.
  void flush();

  // The commands noted from here on wait for a call of the host, until call_done says that it is
  // over. A wait on the host for the queue waits for its calls first, not inside OpenCL: there are
  // implementations where nothing else gets through meanwhile, not even the end of the call.
  void call_begins();
  void call_done();
  void await_calls(uint64_t count) const;

  // Waits for every command. An error is kept for the caller to take.
  graft_status finish();
  // The same, but BUSY if commands are left after that time.
  graft_status finish_within(uint64_t timeout_ns);

  const graft_device device;
  const graft_stream stream;  // which may be gone
  const cl_command_queue handle;
  Failure failure;
  Backlog backlog;  // what goes past it straight to handle drains it first

 private:
  struct Command {
    cl_event event;
    uint32_t tag;
    bool traced;
    uint64_t number;
    std::shared_ptr<Mark> waited;
  };

  cl_event last_event();
  LateError outcome(const Command& command, cl_int status) const;
  void close(const Command& command, cl_int status);

  std::atomic<uint64_t> calls_begun_{0}, calls_done_{0};
  std::mutex mutex_;               // guards what follows
  std::vector<Command> commands_;  // those before first_ are seen to be done
  size_t first_ = 0;
  uint64_t noted_ = 0;  // commands ever; the last one's number
  uint32_t unsent_ = 0;
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_STREAM_QUEUE_H_
