// drivers/host/simulation/virtual_clock.h: simulated time, of a stream and of the host.
#ifndef GRAFT_DRIVERS_HOST_SIMULATION_VIRTUAL_CLOCK_H_
#define GRAFT_DRIVERS_HOST_SIMULATION_VIRTUAL_CLOCK_H_

#include <algorithm>
#include <cstdint>

namespace graft::host {

// How far a stream has come, in nanoseconds since the process began. Belongs to whoever runs the
// stream's commands; to the calling side while the stream is idle.
class VirtualClock {
 public:
  // A command begins: once the commands before it are over, and not before the host gave it.
  // Returns when.
  int64_t begin(int64_t issued_ns) { return begin_ns_ = now_ns_ = at_least(issued_ns); }
  // The command that began last is over.
  void end(int64_t at_ns);
  // Nothing begins before that time.
  void reach(int64_t at_ns) { now_ns_ = at_least(at_ns); }

  int64_t now() const { return now_ns_; }
  int64_t at_least(int64_t ns) const { return std::max(now_ns_, ns); }
  // The last command's begin; its end is now(), until another one or reach().
  int64_t begun() const { return begin_ns_; }

 private:
  int64_t begin_ns_ = 0, now_ns_ = 0;
};

// The host's time: that of the last wait for a device or, where a command takes the host some time,
// of the last command. A thread that has given no command does not count: it watches.
int64_t host_time();
// Counts a command; returns when the host has given it.
int64_t host_gives_command();
// The host has waited for something that came about then.
void host_waited(int64_t until_ns);
// The host has asked in vain whether something has come about. Counts for every thread.
void host_asked();

// The latest time of any stream so far.
int64_t latest_time();

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_SIMULATION_VIRTUAL_CLOCK_H_
