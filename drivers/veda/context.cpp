// drivers/veda/context.cpp: VEDA's state of the process.
#include "context.h"

#include <cstdint>
#include <mutex>

namespace graft::veda {
namespace {

std::mutex mutex;
// Guarded by mutex.
uint64_t devices = 0;
bool is_ready = false;
bool others_began = false;

}  // namespace

Called initialise() {
  std::lock_guard lock(mutex);
  if (is_ready) return {VEDA_SUCCESS, "vedaInit"};
  Called called = GRAFT_VEDA_CALL(Init, 0);
  others_began = called.result == VEDA_ERROR_ALREADY_INITIALIZED;
  if (others_began) called.result = VEDA_SUCCESS;
  is_ready = called.ok();
  return called;
}

void enter() {
  std::lock_guard lock(mutex);
  ++devices;
}

void leave() {
  std::lock_guard lock(mutex);
  if (--devices != 0 || others_began) return;
  is_ready = false;
  veda().Exit();
}

}  // namespace graft::veda
