// drivers/opencl/guarded.h: lets no exception of a slot cross the boundary.
#ifndef GRAFT_DRIVERS_OPENCL_GUARDED_H_
#define GRAFT_DRIVERS_OPENCL_GUARDED_H_

#include <exception>
#include <new>

#include "graft/driver.h"
#include "message.h"

namespace graft::opencl {

// Guarded<&slot>::call is what goes into a table.
template <auto slot>
struct Guarded;

template <class... Arguments, graft_status (*slot)(Arguments...)>
struct Guarded<slot> {
  static graft_status call(Arguments... arguments) {
    try {
      return slot(arguments...);
    } catch (const std::bad_alloc&) {
      return fail(GRAFT_OUT_OF_MEMORY, "no host memory left");
    } catch (const std::exception& error) {
      return fail(GRAFT_INTERNAL, error.what());
    }
  }
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_GUARDED_H_
