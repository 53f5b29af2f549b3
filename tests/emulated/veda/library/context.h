// tests/emulated/veda/library/context.h: the one context of a device: its session while it is
// active, and its memory.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_CONTEXT_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_CONTEXT_H_

#include <memory>
#include <mutex>

#include "tests/emulated/veda/library/memory_map.h"
#include "tests/emulated/veda/library/session.h"
#include "tests/emulated/veda/request/faults.h"

// VEDAcontext points to the context of a device; it lives as long as the process.
// Thread-safe. Everything that needs the session throws Failure(CONTEXT_IS_DESTROYED) without one.
struct veda_context {
 public:
  veda_context(const emulated::Settings& settings, emulated::Faults* faults, int device);

  // CANNOT_CREATE_CONTEXT if it is active, INVALID_VALUE for another mode.
  void start(int mode);
  void stop();  // CONTEXT_IS_DESTROYED if it is not active
  bool active();
  int mode() const { return mode_; }
  int device() const { return device_; }

  std::shared_ptr<emulated::Session> session();

  // Gives work to stream index; for -1, to stream 0, then waits for it.
  void enqueue(VEDAstream stream, emulated::Work work, emulated::Handling handling = {});
  void synchronize(VEDAstream stream);  // -1: all

  VEDAdeviceptr allocate(std::size_t size, VEDAstream stream);
  VEDAdeviceptr assign(std::uint64_t raw, std::size_t size, VEDAstream stream);
  void free(VEDAdeviceptr pointer, VEDAstream stream);
  void release(VEDAdeviceptr pointer);
  void swap(VEDAdeviceptr first, VEDAdeviceptr second, VEDAstream stream);
  void override_once(VEDAdeviceptr pointer);

  // What is known of pointer's memory, its raw address too: waits for it. The address is 0 if
  // there is none, because the device had no memory or because device code has not allocated it.
  emulated::AllocationHandle resolve(VEDAdeviceptr pointer);
  std::size_t used();
  void report();

  // A kernel was given: what delayed pointers stand for may have changed.
  void kernel_given() { delayed_known_ = false; }
  emulated::Faults& faults() { return *faults_; }

 private:
  const emulated::Settings& settings_;
  emulated::Faults* const faults_;
  const int device_;
  std::atomic<int> mode_{VEDA_CONTEXT_MODE_OMP};
  std::mutex mutex_;
  std::shared_ptr<emulated::Session> session_;
  VEDAdeviceptr override_ = nullptr;
  emulated::MemoryMap map_;
  std::atomic<bool> delayed_known_{true};

  VEDAdeviceptr take_override(std::size_t size);
  void learn_addresses();
};

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_CONTEXT_H_
