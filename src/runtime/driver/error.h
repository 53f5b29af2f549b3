// src/runtime/driver/error.h: the one exception of the core, and the texts of statuses.
#pragma once

#include <stdexcept>
#include <string>

#include "graft/driver.h"
#include "runtime/driver/export.h"

namespace graft {

// Every failure of the core. what() is the whole text for the user: the op, the device, the
// driver, the status and the driver's message, or what was given, what was expected and the remedy.
class GRAFT_EXPORT Error : public std::runtime_error {
 public:
  Error(graft_status status, const std::string& text);
  ~Error() override;

  graft_status status() const noexcept { return status_; }

  // The device has no kernel for this, or its compiler builds none: the work can be done elsewhere.
  bool lacks_kernel() const noexcept {
    return status_ == GRAFT_UNSUPPORTED || status_ == GRAFT_COMPILE_ERROR;
  }

 private:
  graft_status status_;
};

// The status as graft/driver.h spells it without its prefix ("OUT_OF_MEMORY"), and its text. A
// number that the header does not know gives "UNKNOWN_STATUS". Static storage, any thread.
GRAFT_EXPORT const char* status_name(graft_status status) noexcept;
GRAFT_EXPORT const char* status_text(graft_status status) noexcept;

// A number of bytes for messages: "512 bytes", "2.00 GiB".
GRAFT_EXPORT std::string bytes_text(uint64_t bytes);

}  // namespace graft
