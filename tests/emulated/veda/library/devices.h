// tests/emulated/veda/library/devices.h: the library from vedaInit to vedaExit: its settings, its
// devices, its contexts.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_DEVICES_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_DEVICES_H_

#include <memory>
#include <vector>

#include "tests/emulated/veda/library/context.h"

namespace emulated {

// A VE node, or one NUMA node of it.
struct Device {
  int physical;  // the card
  int numa;
  std::unique_ptr<veda_context> context;
};

// Made by vedaInit; kept after vedaExit, since contexts never move. Read-only but for the contexts.
struct Library {
  Settings settings;
  Faults faults;
  std::vector<Device> devices;

  // Throws Failure(INVALID_DEVICE).
  Device& device(VEDAdevice ordinal);
  // The context of the device in pointer, whether active or not.
  veda_context& context_of(VEDAdeviceptr pointer) {
    return *device(VEDA_GET_DEVICE(pointer)).context;
  }
  // Throws Failure(UNKNOWN_CONTEXT) for what is no context.
  veda_context& context(VEDAcontext handle);
};

// Throws what enter throws for a function that needs vedaInit, but no planted fault.
void require_ready();

// REQUIRES: enter let the call through.
Library& library();

// The thread's stack of contexts. current throws Failure(UNKNOWN_CONTEXT) if it is empty, and
// CONTEXT_IS_DESTROYED if its top is not active.
std::vector<VEDAcontext>& context_stack();
veda_context& current_context();

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_DEVICES_H_
