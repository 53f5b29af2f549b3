// drivers/host/stream/fault.h: faults that a test plants through GRAFT_HOST_FAULTS.
#ifndef GRAFT_DRIVERS_HOST_STREAM_FAULT_H_
#define GRAFT_DRIVERS_HOST_STREAM_FAULT_H_

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

// Whether this call of that kind fails. REQUIRES: faults are planted.
bool planted_strikes(Fault kind);
bool planted_drop();

inline bool faults_are_planted() {
  return (detours.load(std::memory_order_relaxed) & kDetourFaults) != 0;
}

// Whether this call of that kind fails. Thread-safe; costs one load where no fault is planted.
inline bool strikes(Fault kind) { return faults_are_planted() && planted_strikes(kind); }

// Whether launches and library calls report success and write nothing: "launch:drop", and devices
// that only compile (GRAFT_HOST_TARGET).
inline bool launches_are_dropped() { return faults_are_planted() && planted_drop(); }

// Sets the detours of mode, faults and simulation and watches for forks. Called at every
// device_open.
void watch_detours();

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_STREAM_FAULT_H_
