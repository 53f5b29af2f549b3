// drivers/host/process_identity.h: tells whether another process still runs.
#ifndef GRAFT_DRIVERS_HOST_PROCESS_IDENTITY_H_
#define GRAFT_DRIVERS_HOST_PROCESS_IDENTITY_H_

#include <cstdint>

namespace graft::host {

// A process, told from later ones with the same number. Plain bytes: lies in shared memory.
struct ProcessIdentity {
  int32_t pid = 0;
  uint64_t start = 0;  // in the kernel's ticks since it booted; 0 when /proc did not say
  uint64_t space = 0;  // the namespace that pid belongs to
};

ProcessIdentity this_process();

// Whether the process has ended, reaped or not. False for one of another namespace: it cannot be
// seen from here.
bool has_ended(const ProcessIdentity& process);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_PROCESS_IDENTITY_H_
