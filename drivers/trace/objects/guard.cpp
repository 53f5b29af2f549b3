// drivers/trace/objects/guard.cpp: memory that a slot may read during its call only.
#include "objects/guard.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "call/signals.h"

namespace graft::trace {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kPages = 512;                        // a page is closed for as many calls
constexpr size_t kRooms = 512;                        // larger ones, which stay closed
constexpr size_t kMostRoomBytes = size_t{256} << 20;  // of all rooms

// A stretch of memory that is open, or closed to all.
struct Stretch {
  std::atomic<char*> first{nullptr};
  std::atomic<size_t> bytes{0};
  std::atomic<const char*> slot{nullptr};  // whose call had it last
  std::atomic<bool> read_late{false}, busy{false};
};

struct Stretches {
  std::array<Stretch, kPages> pages;
  std::array<Stretch, kRooms> rooms;
  std::atomic<uint64_t> next_page{0}, next_room{0}, room_bytes{0}, late{0};
  struct sigaction previous = {};

  template <class Function>
  bool any(const Function& f) {
    return std::any_of(pages.begin(), pages.end(), f) || std::any_of(rooms.begin(), rooms.end(), f);
  }
};
std::atomic<Stretches*> stretches{nullptr};  // never freed

bool open_up(const Stretch& one) {
  return mprotect(one.first, one.bytes, PROT_READ | PROT_WRITE) == 0;
}

// Only async-signal-safe calls here.
void on_fault(int signal, siginfo_t* info, void* context) {
  const auto* const at = static_cast<const char*>(info->si_addr);
  const bool guarded = stretches.load()->any([&](Stretch& one) {
    const char* const first = one.first;
    if (first == nullptr || at < first || at >= first + one.bytes) return false;
    one.read_late = true;
    ++stretches.load()->late;
    return open_up(one);
  });
  if (!guarded) pass_on(stretches.load()->previous, signal, info, context);
}

char* map(size_t bytes) {
  void* const room =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return room == MAP_FAILED ? nullptr : static_cast<char*>(room);
}

void make_pages() {
  char* const first = map(kPages * kPageBytes);
  if (first == nullptr) return;
  auto* const made = new Stretches;
  for (size_t i = 0; i < kPages; ++i) {
    made->pages[i].bytes = kPageBytes;
    made->pages[i].first = first + i * kPageBytes;
  }
  stretches = made;
  made->previous = take_signal(SIGSEGV, on_fault);
}

Stretch* take_page() {
  Stretch& page = stretches.load()->pages.at(stretches.load()->next_page++ % kPages);
  if (page.busy.exchange(true)) return nullptr;
  if (open_up(page)) return &page;
  page.busy = false;
  return nullptr;
}

Stretch* take_room(size_t bytes) {
  bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (stretches.load()->room_bytes + bytes > kMostRoomBytes ||
      stretches.load()->next_room >= kRooms) {
    return nullptr;
  }
  const size_t place = stretches.load()->next_room++;
  char* const first = place < kRooms ? map(bytes) : nullptr;
  if (first == nullptr) return nullptr;
  stretches.load()->room_bytes += bytes;
  Stretch& room = stretches.load()->rooms.at(place);
  room.bytes = bytes;
  room.first = first;
  return &room;
}

void close_up(const void* stretch) {
  auto* const one = const_cast<Stretch*>(static_cast<const Stretch*>(stretch));
  mprotect(one->first, one->bytes, PROT_NONE);
  one->busy = false;
}

}  // namespace

bool wants_guards(TraceCall& call) {
  if (!call.wants_guards.has_value()) {
    call.wants_guards = call.layer.settings.rules && call.layer.sampling.guards(call.id);
  }
  return *call.wants_guards;
}

char* guarded_room(TraceCall& call, size_t bytes) {
  static std::once_flag once;
  std::call_once(once, make_pages);
  if (stretches == nullptr) return nullptr;
  Stretch* const taken = bytes <= kPageBytes ? take_page() : take_room(bytes);
  if (taken == nullptr) return nullptr;
  taken->slot = call.table.slots[call.slot].name;
  call.guards.emplace_back(taken, close_up);
  return taken->first;
}

const void* guarded_bytes(TraceCall& call, const void* data, size_t bytes) {
  if (data == nullptr || bytes == 0 || !wants_guards(call)) return data;
  char* const room = guarded_room(call, bytes);
  return room == nullptr ? data : std::memcpy(room, data, bytes);
}

const char* guarded_text(TraceCall& call, const char* text) {
  if (text == nullptr || !wants_guards(call)) return text;
  const size_t bytes = ::strnlen(text, kPageBytes) + 1;
  return bytes > kPageBytes ? text : static_cast<const char*>(guarded_bytes(call, text, bytes));
}

const graft_launch* guarded_launch(TraceCall& call, const graft_launch* launch) {
  const size_t head = (std::max<size_t>(launch->struct_size, sizeof *launch) + 7) / 8 * 8;
  const size_t bytes = launch->argument_count * sizeof(graft_argument);
  if (launch->struct_size < sizeof *launch || !wants_guards(call)) return launch;
  char* const room = guarded_room(call, head + bytes);
  if (room == nullptr) return launch;
  std::memcpy(room, launch, launch->struct_size);
  if (bytes != 0) std::memcpy(room + head, launch->arguments, bytes);
  auto* const copy = reinterpret_cast<graft_launch*>(room);
  copy->arguments = reinterpret_cast<const graft_argument*>(room + head);
  return copy;
}

void report_late_reads(TraceCall& call) {
  if (stretches == nullptr || stretches.load()->late == 0) return;
  stretches.load()->late = 0;
  stretches.load()->any([&](Stretch& one) {
    if (!one.read_late.exchange(false)) return false;
    const char* const slot = one.slot;
    call.layer.findings.add(slot,
                            {Culprit::kDriver, "kept-pointer", slot,
                             "the driver read the caller's memory after the slot had returned",
                             "Copy what the command needs during the call."});
    return false;
  });
}

}  // namespace graft::trace
