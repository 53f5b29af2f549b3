// drivers/host/fault.h: faults that a test plants through GRAFT_HOST_FAULTS.
#ifndef GRAFT_DRIVERS_HOST_FAULT_H_
#define GRAFT_DRIVERS_HOST_FAULT_H_

#include <atomic>
#include <cstdint>

namespace graft::host {

// What can be made to fail; README.md has the list for users.
enum class Fault {
  kAllocate,
  kLaunch,
  kCopy,
  kLost,
  kCompile,
  kStream,
  kCollective,
  kHangLaunch,  // "launch:hang": the command never ends
  kHangCopy,
  kCount
};

// Whether this call of that kind fails. Thread-safe; a kind that is not planted costs one load.
bool strikes(Fault kind);

// Whether launches and library calls report success and write nothing ("launch:drop").
bool launches_are_dropped();

// Reasons why a launch cannot take the short way; 0 in a plain process. Read at every launch.
enum Detour : uint32_t {
  kDetourAsync = 1,      // GRAFT_HOST_MODE=async
  kDetourFaults = 2,     // a fault is planted
  kDetourForked = 4,     // this is a forked child: nothing of the parent's may be touched
  kDetourLost = 8,       // a device is lost
  kDetourTraced = 16,    // a device is traced
  kDetourSimulated = 32  // GRAFT_HOST_SIMULATE: time is simulated
};
extern std::atomic<uint32_t> detours;

// Sets the detours of mode, faults and simulation and watches for forks. Called at every
// device_open.
void watch_detours();

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_FAULT_H_
