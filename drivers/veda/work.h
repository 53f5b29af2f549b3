// drivers/veda/work.h: a command for the device.
#ifndef GRAFT_DRIVERS_VEDA_WORK_H_
#define GRAFT_DRIVERS_VEDA_WORK_H_

#include <cstdint>
#include <string>

#include "graft/driver.h"
#include "library.h"

namespace graft::veda {

// Lives until it is done.
class Work {
 public:
  virtual ~Work() = default;
  // Enqueues it. REQUIRES: the lane's mutex is held and the device's context is current.
  virtual Called issue(VEDAstream stream) = 0;
  // What it is, for messages: "the kernel add_n".
  virtual std::string text() const = 0;
  // Whether it has left a sign of a good end. What leaves none answers false.
  virtual bool has_ended() const { return false; }
  // Another device that it uses; null if none.
  virtual graft_device other_device() const { return nullptr; }

  uint32_t tag = 0;
};

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_WORK_H_
