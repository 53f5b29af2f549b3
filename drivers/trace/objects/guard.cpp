// drivers/trace/objects/guard.cpp: memory that a slot may read during its call only.
#include "objects/guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <mutex>

namespace graft::trace {
namespace {

constexpr size_t kPages = 512;  // a page is closed for as many calls

struct Pages {
  char* first = nullptr;
  struct sigaction previous = {};
  std::array<std::atomic<const char*>, kPages> slots{};  // whose call had the page last
  std::array<std::atomic<bool>, kPages> read_late{}, busy{};
  std::atomic<uint64_t> next{0}, late{0};
};
Pages* pages = nullptr;  // never freed

// Only async-signal-safe calls here.
void on_fault(int signal, siginfo_t* info, void* context) {
  const size_t offset = static_cast<char*>(info->si_addr) - pages->first;
  if (offset < kPages * GuardedPage::kBytes) {
    const size_t page = offset / GuardedPage::kBytes;
    pages->read_late[page] = true;
    ++pages->late;
    mprotect(pages->first + page * GuardedPage::kBytes, GuardedPage::kBytes,
             PROT_READ | PROT_WRITE);
    return;
  }
  const struct sigaction& previous = pages->previous;
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
    return;
  }
  sigaction(SIGSEGV, &previous, nullptr);
  if (info->si_code <= 0) raise(signal);
}

void make_pages() {
  void* const room = mmap(nullptr, kPages * GuardedPage::kBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return;
  pages = new Pages;
  pages->first = static_cast<char*>(room);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &pages->previous);
}

}  // namespace

GuardedPage::GuardedPage(const char* slot) {
  static std::once_flag once;
  std::call_once(once, make_pages);
  if (pages == nullptr) return;
  const size_t page = pages->next++ % kPages;
  if (pages->busy[page].exchange(true)) return;
  char* const room = pages->first + page * kBytes;
  if (mprotect(room, kBytes, PROT_READ | PROT_WRITE) != 0) return;
  pages->slots[page] = slot;
  data_ = room;
}

GuardedPage::~GuardedPage() {
  if (data_ == nullptr) return;
  mprotect(data_, kBytes, PROT_NONE);
  pages->busy[(data_ - pages->first) / kBytes] = false;
}

void report_late_reads(TraceCall& call) {
  if (pages == nullptr || pages->late == 0) return;
  pages->late = 0;
  for (size_t page = 0; page < kPages; ++page) {
    if (!pages->read_late[page].exchange(false)) continue;
    const char* const slot = pages->slots[page];
    call.layer.findings.add(slot,
                            {Culprit::kDriver, "kept-pointer", slot,
                             "the driver read the caller's memory after the slot had returned",
                             "Copy what the command needs during the call."});
  }
}

const graft_launch* guarded_launch(TraceCall& call, const graft_launch* launch) {
  const size_t head = (std::max<size_t>(launch->struct_size, sizeof *launch) + 7) / 8 * 8;
  const size_t bytes = launch->argument_count * sizeof(graft_argument);
  if (launch->struct_size < sizeof *launch || head + bytes > GuardedPage::kBytes) return launch;
  const auto page = std::make_shared<GuardedPage>(call.table.slots[call.slot].name);
  if (page->data() == nullptr) return launch;
  std::memcpy(page->data(), launch, launch->struct_size);
  if (bytes != 0) std::memcpy(page->data() + head, launch->arguments, bytes);
  auto* const copy = reinterpret_cast<graft_launch*>(page->data());
  copy->arguments = reinterpret_cast<const graft_argument*>(page->data() + head);
  call.kept.push_back(page);
  return copy;
}

const void* guarded_bytes(TraceCall& call, const void* data, size_t bytes) {
  if (data == nullptr || bytes > GuardedPage::kBytes) return data;
  const auto page = std::make_shared<GuardedPage>(call.table.slots[call.slot].name);
  if (page->data() == nullptr) return data;
  std::memcpy(page->data(), data, bytes);
  call.kept.push_back(page);
  return page->data();
}

}  // namespace graft::trace
