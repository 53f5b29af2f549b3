// drivers/veda/context.h: VEDA's state of the process and of each thread.
#ifndef GRAFT_DRIVERS_VEDA_CONTEXT_H_
#define GRAFT_DRIVERS_VEDA_CONTEXT_H_

#include "library.h"

namespace graft::veda {

// vedaInit, if it was not called yet. Thread-safe, as the next two.
Called initialise();
// One more opened device. REQUIRES: initialise() succeeded.
void enter();
// One device fewer; the last one calls vedaExit, unless others of the process initialised VEDA.
void leave();

// Makes a context the calling thread's current one until the end of the scope: VEDA keeps a stack
// for each thread.
class Current {
 public:
  explicit Current(VEDAcontext context) : called_(GRAFT_VEDA_CALL(CtxPushCurrent, context)) {}
  ~Current() {
    VEDAcontext popped = nullptr;
    if (called_.ok()) veda().CtxPopCurrent(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  // How pushing it went.
  const Called& called() const { return called_; }

 private:
  Called called_;
};

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_CONTEXT_H_
