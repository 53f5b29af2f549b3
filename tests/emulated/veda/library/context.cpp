// tests/emulated/veda/library/context.cpp: the one context of a device: its session while it is
// active, and its memory.
#include "tests/emulated/veda/library/context.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "tests/emulated/veda/library/entry.h"

using emulated::AllocationHandle;
using emulated::Command;
using emulated::Handling;
using emulated::Link;
using emulated::Outcome;
using emulated::Reply;
using emulated::require;
using emulated::Session;

namespace {

std::uint64_t number(VEDAdeviceptr pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

Handling checked(std::shared_ptr<emulated::ProfileRecord> record = nullptr) {
  return {true, nullptr, std::move(record)};
}

}  // namespace

veda_context::veda_context(const emulated::Settings& settings, emulated::Faults* faults, int device)
    : settings_(settings),
      faults_(faults),
      device_(device),
      map_(device, static_cast<std::uint32_t>(settings.indices)) {}

void veda_context::start(int mode) {
  const std::lock_guard lock(mutex_);
  require(session_ == nullptr, VEDA_ERROR_CANNOT_CREATE_CONTEXT);
  require(mode == VEDA_CONTEXT_MODE_OMP || mode == VEDA_CONTEXT_MODE_SCALAR,
          VEDA_ERROR_INVALID_VALUE);
  int cores = static_cast<int>(settings_.cores);
  if (settings_.omp_threads > 0) cores = std::min(cores, settings_.omp_threads);
  const bool scalar = mode == VEDA_CONTEXT_MODE_SCALAR;
  const std::string threads = std::to_string(scalar ? 1 : cores);
  ::setenv("VE_OMP_NUM_THREADS", threads.c_str(), 1);
  session_ = std::make_shared<Session>(settings_, device_, scalar ? 1 : cores, scalar ? cores : 1);
  mode_ = mode;
}

void veda_context::stop() {
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock(mutex_);
    require(session_ != nullptr, VEDA_ERROR_CONTEXT_IS_DESTROYED);
    session.swap(session_);
    override_ = nullptr;
    mode_ = VEDA_CONTEXT_MODE_OMP;
  }
  session->stop();
  map_.clear();
}

bool veda_context::active() {
  const std::lock_guard lock(mutex_);
  return session_ != nullptr;
}

std::shared_ptr<Session> veda_context::session() {
  const std::lock_guard lock(mutex_);
  require(session_ != nullptr, VEDA_ERROR_CONTEXT_IS_DESTROYED);
  return session_;
}

void veda_context::enqueue(VEDAstream stream, emulated::Work work, Handling handling) {
  const auto current = session();
  current->stream(stream).enqueue(std::move(work), std::move(handling));
  if (stream < 0) current->synchronize(0);
}

void veda_context::synchronize(VEDAstream stream) {
  const auto record = emulated::profile(VEDA_PROFILER_SYNC, device_, stream);
  if (record) record->tell(VEDA_PROFILER_EVENT_ISSUE);
  if (record) record->tell(VEDA_PROFILER_EVENT_BEGIN);
  session()->synchronize(stream);
  if (record) record->tell(VEDA_PROFILER_EVENT_END);
}

VEDAdeviceptr veda_context::take_override(std::size_t size) {
  VEDAdeviceptr pointer = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::swap(pointer, override_);
  }
  if (pointer == nullptr) return nullptr;
  const AllocationHandle found = resolve(pointer);
  require(found->size == size, VEDA_ERROR_INVALID_VALUE);
  require(found->raw != 0, VEDA_ERROR_UNKNOWN_PPTR);
  return pointer;
}

VEDAdeviceptr veda_context::allocate(std::size_t size, VEDAstream stream) {
  const auto current = session();
  current->stream(stream);
  if (const VEDAdeviceptr given = take_override(size)) return given;
  const AllocationHandle added = map_.add(size);
  if (size == 0) return added->pointer;
  const bool fails = faults_->device("oom", "*");
  const std::uint64_t pointer = number(added->pointer);
  auto record = emulated::profile_allocation(VEDA_PROFILER_MEM_ALLOC, device_, stream, size);
  enqueue(stream,
          [added, pointer, size, fails](Link& link) {
            if (!fails) added->raw = link.ask(Command::kAllocate, {pointer, size}).value;
            return Outcome{};
          },
          {false, nullptr, record});
  return reinterpret_cast<VEDAdeviceptr>(pointer);
}

VEDAdeviceptr veda_context::assign(std::uint64_t raw, std::size_t size, VEDAstream stream) {
  require(raw != 0 && size != 0, VEDA_ERROR_INVALID_VALUE);
  session()->stream(stream);
  const AllocationHandle added = map_.add(size);
  added->raw = raw;
  const std::uint64_t pointer = number(added->pointer);
  enqueue(stream, [=](Link& link) {
    link.ask(Command::kAssign, {pointer, raw, size});
    return Outcome{};
  });
  return reinterpret_cast<VEDAdeviceptr>(pointer);
}

void veda_context::free(VEDAdeviceptr pointer, VEDAstream stream) {
  if (!active()) return;
  require(VEDA_GET_OFFSET(pointer) == 0, VEDA_ERROR_OFFSETTED_VPTR_NOT_ALLOWED);
  const AllocationHandle found = map_.find(pointer);
  const auto current = session();
  current->stream(stream);
  if (found->raw == 0 && found->size != 0) current->synchronize(-1);
  if (!found->released) {
    enqueue(
        stream,
        [pointer](Link& link) {
          return Outcome{VEDA_SUCCESS, link.ask(Command::kFree, {number(pointer)}).status};
        },
        checked(emulated::profile_release(VEDA_PROFILER_MEM_FREE, device_, stream, pointer)));
  }
  map_.remove(pointer);
}

void veda_context::release(VEDAdeviceptr pointer) {
  require(VEDA_GET_OFFSET(pointer) == 0, VEDA_ERROR_OFFSETTED_VPTR_NOT_ALLOWED);
  const AllocationHandle found = map_.find(pointer);
  require(found->delayed, VEDA_ERROR_CANT_RELEASE_NON_DELAYED_VPTR);
  require(!found->released, VEDA_ERROR_CANT_RELEASE_ALREADY_RELEASED_VPTR);
  resolve(pointer);
  require(found->raw != 0, VEDA_ERROR_CANT_RELEASE_NON_DEVICE_ALLOCATED_VPTR);
  found->released = true;
  found->raw = 0;
  found->size = 0;
}

void veda_context::swap(VEDAdeviceptr first, VEDAdeviceptr second, VEDAstream stream) {
  session()->stream(stream);
  map_.swap(first, second);
  enqueue(
      stream,
      [=](Link& link) {
        return Outcome{VEDA_SUCCESS,
                       link.ask(Command::kSwap, {number(first), number(second)}).status};
      },
      checked());
}

void veda_context::override_once(VEDAdeviceptr pointer) {
  require(VEDA_GET_OFFSET(pointer) == 0, VEDA_ERROR_OFFSET_NOT_ALLOWED);
  require(pointer == nullptr || VEDA_GET_DEVICE(pointer) == device_, VEDA_ERROR_INVALID_DEVICE);
  const std::lock_guard lock(mutex_);
  require(pointer == nullptr || override_ == nullptr, VEDA_ERROR_OVERRIDE_ALREADY_SET);
  override_ = pointer;
}

void veda_context::learn_addresses() {
  const auto current = session();
  const bool ask = !delayed_known_.exchange(true);
  bool wait = false;
  for (const AllocationHandle& allocation : map_.all()) {
    if (allocation->raw != 0 || allocation->released) continue;
    if (allocation->size == 0 && !ask) continue;
    wait = true;
    if (allocation->size != 0) continue;
    current->stream(0).enqueue([allocation](Link& link) {
      const Reply reply = link.ask(Command::kInfo, {number(allocation->pointer)});
      allocation->size = reply.second;
      allocation->raw = reply.value;
      return Outcome{};
    });
  }
  if (wait) current->synchronize(-1);
}

AllocationHandle veda_context::resolve(VEDAdeviceptr pointer) {
  session();
  const AllocationHandle found = map_.find(pointer);
  if (found->raw == 0) learn_addresses();
  return found;
}

std::size_t veda_context::used() {
  learn_addresses();
  std::size_t sum = 0;
  for (const AllocationHandle& allocation : map_.all()) sum += allocation->size;
  return sum;
}

void veda_context::report() {
  if (!active()) return;
  std::printf("# VE#%d %zu of %" PRId64 " bytes\n", device_, used(), settings_.memory);
  for (const AllocationHandle& allocation : map_.all()) {
    std::printf("%p/%#" PRIx64 " %" PRIu64 " bytes\n", static_cast<void*>(allocation->pointer),
                allocation->raw.load(), allocation->size.load());
  }
  std::fflush(stdout);
}
