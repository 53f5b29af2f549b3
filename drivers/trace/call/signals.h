// drivers/trace/call/signals.h: signals of a fault, which other handlers may want too.
#ifndef GRAFT_DRIVERS_TRACE_CALL_SIGNALS_H_
#define GRAFT_DRIVERS_TRACE_CALL_SIGNALS_H_

#include <signal.h>

namespace graft::trace {

// Makes handler the process's handler of the signal. Returns the one before, for pass_on.
struct sigaction take_signal(int signal, void (*handler)(int, siginfo_t*, void*));

// In a handler: lets the handler before decide; without one the process ends as it would have.
void pass_on(const struct sigaction& previous, int signal, siginfo_t* info, void* context);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_CALL_SIGNALS_H_
