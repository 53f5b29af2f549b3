// drivers/trace/call/active_calls.cpp: which thread is inside which slot of a driver.
#include "call/active_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "call/signals.h"

namespace graft::trace {

std::atomic<uint64_t> ticks{0};

namespace {

constexpr size_t kThreads = 512;  // that can be inside a driver at once
std::array<ActiveCall, kThreads> calls;

// The calling thread's place in calls.
struct Place {
  ActiveCall* call = nullptr;

  Place() {
    for (ActiveCall& one : calls) {
      if (one.taken.exchange(true)) continue;
      one.thread = static_cast<uint64_t>(syscall(SYS_gettid));
      call = &one;
      return;
    }
  }
  ~Place() {
    if (call == nullptr) return;
    call->layer = nullptr;
    call->taken = false;
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
};

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr const char* kNames[] = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT"};
std::array<struct sigaction, std::size(kSignals)> before;
std::array<std::atomic<bool>, std::size(kSignals)> handled{};  // by a driver, which may go on

void write_text(int file, const char* text) {
  const ssize_t written = write(file, text, strlen(text));
  (void)written;
}

// Only async-signal-safe calls here.
void report_crash(const ActiveCall& call, const char* signal) {
  const Findings& findings = call.layer.load()->findings;
  const char* const path = findings.path();
  const int file =
      *path == '\0' ? STDERR_FILENO : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  const TableFacts& table = *call.table;
  for (const char* text : {"graft-driver-trace: driver '", findings.driver(),
                           "': ", table.slots[call.slot].name, "(): ended the process by ", signal,
                           ". Return a status; nothing aborts across this boundary. [crashed]\n"}) {
    write_text(file, text);
  }
  if (file != STDERR_FILENO) close(file);
}

void on_crash(int signal, siginfo_t* info, void* context) {
  size_t which = 0;
  while (which + 1 < std::size(kSignals) && kSignals[which] != signal) ++which;
  const auto thread = static_cast<uint64_t>(syscall(SYS_gettid));
  for (ActiveCall& one : calls) {
    if (!one.taken || one.thread != thread || one.layer == nullptr) continue;
    if (!TraceLayer::forked() && !handled[which]) report_crash(one, kNames[which]);
    one.layer = nullptr;  // once
  }
  pass_on(before[which], signal, info, context);
}

std::string library_of(const void* code) {
  Dl_info info{};
  return code != nullptr && dladdr(code, &info) != 0 ? info.dli_fname : "";
}

ActiveCall* own_call() {
  thread_local Place place;
  return place.call;
}

}  // namespace

InsideDriver::InsideDriver(TraceCall& call) : call_(call), active_(own_call()) {
  const uint64_t now = ticks.load(std::memory_order_relaxed);
  call.began_tick = now;
  if (active_ == nullptr) return;
  around_ = active_->layer.load(std::memory_order_relaxed);
  if (around_ != nullptr) return;
  active_->table = &call.table;
  active_->slot = call.slot;
  active_->began = now;
  active_->prompt = call.prompt;
  active_->awaited_stream = call.awaited_stream;
  active_->awaited_ticket = call.awaited_ticket;
  active_->reported = false;
  active_->layer = &call.layer;
}

InsideDriver::~InsideDriver() {
  call_.ticks_inside = ticks.load(std::memory_order_relaxed) - call_.began_tick;
  if (active_ != nullptr && around_ == nullptr) active_->layer = nullptr;
}

void each_active_call(const std::function<void(ActiveCall&)>& f) {
  for (ActiveCall& one : calls) {
    if (one.taken && one.layer != nullptr) f(one);
  }
}

void watch_crashes(const void* code) {
  static const bool once = [] {
    for (size_t i = 0; i < std::size(kSignals); ++i) before[i] = take_signal(kSignals[i], on_crash);
    return true;
  }();
  (void)once;
  const std::string driver = library_of(code);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    const auto handler = reinterpret_cast<const void*>(before[i].sa_sigaction);
    if (!driver.empty() && library_of(handler) == driver) handled[i] = true;
  }
}

}  // namespace graft::trace
