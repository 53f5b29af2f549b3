// src/kernels/launch/assertion.h: conditions on data that are reported late.
#pragma once

#include <string_view>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Checks low <= smallest and largest <= high, in float64. smallest and largest have one element of
// a real dtype; NaN fails. Does not wait: where the condition fails, the next synchronisation of
// the stream (or copy to the host) throws Error INVALID_ARGUMENT with the message, as for an index
// out of range (error_record.h). Messages are kept for as long as the process lives.
GRAFT_EXPORT void require_within(Stream& stream, const TensorView& smallest,
                                 const TensorView& largest, double low, double high,
                                 std::string_view message);

// Queues a check that no integer is 0, which is reported in the same way.
GRAFT_EXPORT void require_nonzero(Stream& stream, const TensorView& integers,
                                  std::string_view message);

}  // namespace graft
