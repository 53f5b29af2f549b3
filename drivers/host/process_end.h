// drivers/host/process_end.h: no command runs while the globals of the libraries are destroyed.
#ifndef GRAFT_DRIVERS_HOST_PROCESS_END_H_
#define GRAFT_DRIVERS_HOST_PROCESS_END_H_

namespace graft::host {

// Held by a worker while it runs a command. Once the process ends the worker stops here for good.
class RunningCommand {
 public:
  RunningCommand();
  ~RunningCommand();
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;
};

// Stops the worker that runs a command; the end of the process does not wait for it.
[[noreturn]] void stop_for_good();

// From now on exit() waits for commands that run, two seconds at most, and lets no other one begin.
// It does so before the globals of libraries that were loaded by now are destroyed.
void watch_process_end();

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_PROCESS_END_H_
