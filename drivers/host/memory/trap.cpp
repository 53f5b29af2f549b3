// drivers/host/memory/trap.cpp: says in one line why host code that touches device memory dies.
#include "trap.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>

namespace graft::host {
namespace {

uint64_t trap_begin, trap_bytes;
struct sigaction previous;

// Only async-signal-safe calls here.
void print_line(uint64_t address) {
  char line[160] = "graft: host code read device memory at 0x";
  size_t at = std::strlen(line);
  for (int shift = 60; shift >= 0; shift -= 4) {
    uint64_t rest = address >> shift;
    if (rest != 0) line[at++] = "0123456789abcdef"[rest & 15];
  }
  const char* end = ": copy the tensor to the CPU first\n";
  std::memcpy(line + at, end, std::strlen(end));
  if (write(STDERR_FILENO, line, at + std::strlen(end)) < 0) return;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  uint64_t address = reinterpret_cast<uint64_t>(info->si_addr);
  if (address - trap_begin < trap_bytes) print_line(address);
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
    return;
  }
  // The instruction faults again, now without a handler; a signal that was sent does not.
  sigaction(SIGSEGV, &previous, nullptr);
  if (info->si_code <= 0) raise(signal);
}

}  // namespace

void install_trap(uint64_t begin, uint64_t bytes) {
  trap_begin = begin;
  trap_bytes = bytes;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous);
}

}  // namespace graft::host
