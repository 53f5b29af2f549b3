// drivers/trace/call/signals.cpp: signals of a fault, which other handlers may want too.
#include "call/signals.h"

namespace graft::trace {

struct sigaction take_signal(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {}, previous = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &previous);
  return previous;
}

void pass_on(const struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
    return;
  }
  sigaction(signal, &previous, nullptr);
  if (info->si_code <= 0) raise(signal);
}

}  // namespace graft::trace
