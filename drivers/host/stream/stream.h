// drivers/host/stream/stream.h: a queue of commands with a worker of its own.
#ifndef GRAFT_DRIVERS_HOST_STREAM_STREAM_H_
#define GRAFT_DRIVERS_HOST_STREAM_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include "device.h"
#include "fault.h"
#include "graft/driver.h"
#include "graft/driver_failure.h"
#include "memory/arena.h"
#include "queue.h"
#include "settings.h"
#include "simulation/simulation.h"
#include "simulation/virtual_clock.h"
#include "trace.h"

// Calls on one stream are serialised by the caller (driver.h, rule 4).
struct graft_stream_s {
  graft_stream_s(graft_device device, int32_t priority);
  ~graft_stream_s();

  // Enqueues a command; the first one starts the worker.
  template <class F>
  void push(uint32_t tag, bool survives, F&& function) {
    if (!worker.joinable()) start();
    queue.next().set(tag, survives, std::forward<F>(function));
    queue.publish();
  }

  // Runs a command of about bytes of memory traffic: at once when the stream is idle and the
  // command is small enough for the mode, else in the queue.
  template <class F>
  graft_status submit(uint32_t tag, uint64_t bytes, F&& function) {
    if (graft_status status = admit(); status != GRAFT_OK) return status;
    if (!runs_here(bytes)) {
      push(tag, false, std::forward<F>(function));
      return GRAFT_OK;
    }
    const graft::host::TracedRun traced(this, tag);
    note(function(), tag);
    return GRAFT_OK;
  }

  // The same in a simulation: the command takes cost_ns of the stream's time.
  template <class F>
  graft_status submit_timed(uint32_t tag, uint64_t bytes, int64_t cost_ns, F&& function);

  // Enqueues a command that never ends, for GRAFT_HOST_FAULTS.
  graft_status hang(uint32_t tag);

  // OK when a command may enter; counts it for the planted loss of the device.
  graft_status admit();
  bool runs_here(uint64_t bytes) const;
  // Keeps a failed command's error for the next synchronisation.
  void note(const graft::host::Outcome& outcome, uint32_t tag);

  const graft_device device;
  const int32_t priority;
  graft::host::Queue queue;
  const std::shared_ptr<graft::Failure> failure;
  graft::host::VirtualClock clock;  // stands still without a simulation
  graft::host::Arena::Known known;  // where copies and fills last were; of the calling side
  uint32_t owners = 1;              // guarded by the list of streams

 private:
  void start();
  void work();

  std::thread worker;
};

namespace graft::host {

// A command in simulated time; one that is skipped does nothing else.
template <class F>
struct Timed {
  graft_stream stream;
  int64_t issued_ns, cost_ns;
  bool skipped;
  F function;

  Outcome operator()() {
    stream->clock.end(stream->clock.begin(issued_ns) + cost_ns);
    return skipped ? Outcome{} : function();
  }
};

// Whether a command of that size takes time and does nothing.
bool is_skipped(uint64_t bytes);

// Slots of the table, see driver.h.
struct StreamSlots {
  static graft_status stream_create(graft_device device, int32_t priority, graft_stream* out);
  // The handle is another graft_stream, which then has two owners.
  static graft_status stream_wrap(graft_device device, uint64_t native_handle, graft_stream* out);
  static graft_status stream_destroy(graft_stream stream);
  static graft_status stream_synchronize(graft_stream stream);
  static graft_status stream_synchronize_within(graft_stream stream, uint64_t timeout_ns);
  static graft_status stream_query(graft_stream stream);
  static graft_status stream_error(graft_stream stream, uint32_t* out_tag, char* out_text,
                                   size_t capacity);
  // The address of the stream: there is no vendor below who would have a handle of his own.
  static graft_status stream_native_handle(graft_stream stream, uint64_t* out_handle);
  static graft_status host_callback(graft_stream stream, void (*function)(void* context),
                                    void* context);
};

}  // namespace graft::host

template <class F>
graft_status graft_stream_s::submit_timed(uint32_t tag, uint64_t bytes, int64_t cost_ns,
                                          F&& function) {
  using graft::host::Timed;
  const bool skipped = graft::host::is_skipped(bytes);
  return submit(tag, skipped ? 0 : bytes,
                Timed<std::decay_t<F>>{this, graft::host::host_gives_command(), cost_ns, skipped,
                                       std::forward<F>(function)});
}

#endif  // GRAFT_DRIVERS_HOST_STREAM_STREAM_H_
