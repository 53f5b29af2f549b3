// src/runtime/stream/late_errors.h: what failed of a stream's commands after their calls.
#pragma once

#include <cstdint>
#include <optional>

#include "graft/driver.h"
#include "runtime/driver/error.h"

namespace graft {

class OpenDevice;

// The failures that nobody has read: the first one, and how many came after it. Its stream's lock
// guards it.
class LateErrors {
 public:
  explicit LateErrors(OpenDevice& device) : device_(device) {}

  // Asks the driver what failed and keeps it. A lost device is marked as such.
  void keep(graft_stream stream, graft_status status);

  bool any() const { return first_.has_value(); }

  // The first failure, with the number of the others; none is left. REQUIRES: any().
  Error take_all();

  // The first failure, none where there is none; the others are dropped.
  std::optional<Error> take_first();

 private:
  Error told(graft_stream stream, graft_status status);

  OpenDevice& device_;
  std::optional<Error> first_;
  uint64_t others_ = 0;
};

}  // namespace graft
