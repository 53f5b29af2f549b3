// drivers/trace/objects/trials.h: short programs of the layer's own, for what no command of the
// caller's shows.
//
// A trial makes streams and memory, holds one stream up and queues commands behind that: their
// bytes show in which order they ran. A trial that cannot be run, for want of memory
// or because a slot fails, finds nothing. No lock is held while it runs.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_TRIALS_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_TRIALS_H_

#include <string>

#include "graft/driver.h"

namespace graft::trace {

// Each returns what the driver does wrong, "" for nothing.

// Copies from and to memory of the host, on two streams of which one is held up, keep their bytes
// apart.
std::string try_two_streams(const graft_driver_table& driver, graft_device device);

// A peer_copy runs after the mark that its stream waits for, after its stream's earlier commands
// and before the later ones.
std::string try_peer_copies(const graft_driver_table& driver, graft_device to, graft_device from);

// Queries alone let a command of an idle stream finish, also one behind another stream's mark.
// The commands are copies, and launches of kernel, which takes one address; null: copies alone.
// Takes up to four seconds, if they do not.
std::string try_queries(const graft_driver_table& driver, graft_device device, graft_kernel kernel);

// A mark that a query says is passed has copies in front of it that are done.
std::string try_marks(const graft_driver_table& driver, graft_device device);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_TRIALS_H_
