// drivers/host/collectives/exchange.h: collectives of one rank with the others of its group.
#ifndef GRAFT_DRIVERS_HOST_COLLECTIVES_EXCHANGE_H_
#define GRAFT_DRIVERS_HOST_COLLECTIVES_EXCHANGE_H_

#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "group.h"
#include "simulation/virtual_clock.h"
#include "stream/queue.h"

namespace graft::host {

// The outcome of a failure, with a text that stays until the thread's next command.
Outcome failed(graft_status status, const std::string& text);

// Runs body under the group's lock; what it throws is the outcome.
template <class Body>
Outcome run_in_group(Group& group, const Body& body) {
  try {
    const std::lock_guard lock(group.running());
    body();
    return {};
  } catch (const GroupError& error) {
    return failed(error.status, error.what());
  } catch (const std::bad_alloc&) {
    group.abort();
    return failed(GRAFT_OUT_OF_MEMORY, "no host memory left");
  }
}

// One collective: a command of a stream. Its arguments are right (collectives.cpp).
struct Exchange {
  std::shared_ptr<Group> group;
  CommandRecord record;
  const char* send;
  char* receive;
  bool planted = false;           // it fails, by GRAFT_HOST_FAULTS
  VirtualClock* clock = nullptr;  // the stream's, in a simulation
  int64_t issued_ns = 0;
  bool started = false;  // by try_now()

  // For the calling thread, where nothing else of the group runs: does a small all_reduce if the
  // others are there already. False leaves the rest, or all of it, to the stream's worker.
  bool try_now(Outcome* out_outcome);

  // Runs it, or what try_now() left. The outcome's text stays until the thread's next command.
  Outcome operator()();

 private:
  bool is_small() const;
  void run();
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_COLLECTIVES_EXCHANGE_H_
