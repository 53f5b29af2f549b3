// src/runtime/stream/device.cpp: an open device of a driver with its streams and memory.
#include "runtime/stream/device.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "runtime/driver/bounded_wait.h"
#include "runtime/driver/device_name.h"
#include "runtime/driver/device_properties.h"
#include "runtime/driver/fork.h"
#include "runtime/memory/caching_allocator.h"
#include "runtime/memory/direct_allocator.h"
#include "runtime/stream/write_epochs.h"

namespace graft {
namespace {

bool caching_is_off() {
  const char* value = std::getenv("GRAFT_NO_CACHING");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

const char* sensor_name(graft_sensor which) {
  switch (which) {
    case GRAFT_SENSOR_TEMPERATURE:
      return "temperature";
    case GRAFT_SENSOR_POWER:
      return "power";
    case GRAFT_SENSOR_CLOCK:
      return "clock";
    case GRAFT_SENSOR_UTILIZATION:
      return "utilization";
  }
  return "kind";
}

}  // namespace

Device::Device(Driver& driver, uint32_t ordinal, int index)
    : driver_(driver),
      ordinal_(ordinal),
      index_(index),
      name_(device_label(index)),
      properties_(read_properties(driver, ordinal)) {
  watch_forks();
  SlotGate::open();
  const graft_status status = Driver::call(driver.table().device_open, ordinal, &handle_);
  if (status != GRAFT_OK) driver.fail(status, "device_open", name_, {});
  if (handle_ == nullptr) {
    throw Error(GRAFT_INTERNAL, label() + ": device_open returned OK but no device");
  }
  try {
    auto direct = std::make_unique<DirectAllocator>(*this);
    if (caching_is_off()) {
      allocator_ = std::move(direct);
    } else {
      allocator_ = std::make_unique<CachingAllocator>(*this, std::move(direct));
    }
    pinned_ = std::make_unique<PinnedAllocator>(*this);
    default_stream_ =
        &make_stream(0, std::clamp(0, properties_.priority_highest, properties_.priority_lowest));
  } catch (...) {
    Driver::call(driver.table().device_close, handle_);
    throw;
  }
}

Device::~Device() {
  note_closed(*this);
  if (forked_child()) {  // memory, streams and handles are the parent's
    static_cast<void>(allocator_.release());
    static_cast<void>(pinned_.release());
    return;
  }
  if (!closed_) {
    try {
      Patience patience({}, kExitLimit);
      for (Stream* stream : streams()) stream->drain(patience);
    } catch (...) {
      postpone_interrupt(std::current_exception());
    }
    pinned_.reset();
    close();
  }
  allocator_.reset();
  pinned_.reset();
  for (Stream* stream : streams()) delete stream;
}

void Device::close() noexcept {
  allocator_->close();
  if (pinned_ != nullptr) pinned_->close();
  std::unordered_set<graft_event> events;
  {
    const std::lock_guard lock(owned_);
    events.swap(events_);
    closed_ = true;
  }
  for (const graft_event event : events) Driver::call(driver_.table().event_destroy, event);
  for (const graft_address address : addresses_) {
    Driver::call(driver_.table().memory_free, handle_, address);
  }
  for (Stream* stream : streams()) stream->close();
  Driver::call(driver_.table().device_close, handle_);
}

void Device::own(graft_event event) {
  const std::lock_guard lock(owned_);
  events_.insert(event);
}

bool Device::disown(graft_event event) noexcept {
  const std::lock_guard lock(owned_);
  return events_.erase(event) != 0;
}

void Device::own(graft_address address) {
  const std::lock_guard lock(owned_);
  addresses_.push_back(address);
}

std::string Device::label() const { return name_ + " (driver '" + driver_.name() + "')"; }

Stream& Device::make_stream(int64_t id, int priority) {
  std::atomic<Stream*>& slot = streams_[id];
  Stream* made = slot.load(std::memory_order_acquire);
  if (made == nullptr) {
    std::lock_guard<std::mutex> lock(making_);
    made = slot.load(std::memory_order_acquire);
    if (made == nullptr) {
      made = new Stream(*this, id, priority);
      slot.store(made, std::memory_order_release);
    }
  }
  return *made;
}

Stream& Device::stream_from_pool(int priority) {
  refuse_unusable();
  const int64_t highest = properties_.priority_highest;
  const int64_t count = properties_.priority_lowest - highest + 1;
  const int64_t wanted = std::clamp<int64_t>(priority, highest, properties_.priority_lowest);
  const int64_t levels = std::min<int64_t>(count, kPriorities);
  const int64_t level = (wanted - highest) * levels / count;
  const uint32_t turn = turns_[level].fetch_add(1, std::memory_order_relaxed);
  const int64_t id = 1 + level * kStreamsPerPriority + turn % kStreamsPerPriority;
  return make_stream(id, static_cast<int>(highest + level * count / levels));
}

Stream& Device::stream(int64_t id) const {
  Stream* found = id >= 0 && id < kStreams ? streams_[id].load(std::memory_order_acquire) : nullptr;
  if (found == nullptr) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                name_ + " has no stream with id " + std::to_string(id) +
                    ": use the default stream (id 0) or a stream that torch.Stream made.");
  }
  return *found;
}

std::vector<Stream*> Device::streams() const {
  std::vector<Stream*> made;
  for (const auto& slot : streams_) {
    if (Stream* stream = slot.load(std::memory_order_acquire)) made.push_back(stream);
  }
  return made;
}

void Device::synchronize() {
  refuse_unusable();
  std::optional<Error> first;
  for (Stream* stream : streams()) {
    try {
      if (first) {
        stream->settle();
      } else {
        stream->synchronize();
      }
    } catch (const Error& error) {
      if (stream->given_up()) throw;
      first.emplace(error);
    }
  }
  if (first) throw Error(*first);
}

MemoryInfo Device::memory_info() {
  return memory_info(static_cast<uint64_t>(allocator_->statistics().reserved_bytes.all().current));
}

MemoryInfo Device::memory_info(uint64_t held) {
  refuse_unusable();
  MemoryInfo info;
  if (driver_.table().memory_info != nullptr) {
    const graft_status status =
        Driver::call(driver_.table().memory_info, handle_, &info.free, &info.total);
    if (status != GRAFT_UNSUPPORTED) {
      check(status, "memory_info");
      return info;
    }
  }
  info.total = properties_.memory_bytes;
  info.free = info.total - std::min(info.total, held);
  return info;
}

int64_t Device::sensor(graft_sensor which) {
  refuse_unusable();
  int64_t value = 0;
  const auto slot = driver_.table().device_sensor;
  const graft_status status =
      slot == nullptr ? GRAFT_NOT_FOUND : Driver::call(slot, handle_, uint32_t{which}, &value);
  if (status == GRAFT_NOT_FOUND) {
    throw Error(GRAFT_UNSUPPORTED,
                label() + " gives no " + sensor_name(which) + ": its driver " +
                    (slot == nullptr ? "reads no sensors" : "has no such sensor") +
                    ". Use the vendor's own tools.");
  }
  check(status, "device_sensor");
  return value;
}

void* Device::host_view(graft_address address, uint64_t bytes) {
  refuse_unusable();
  if (driver_.table().memory_host_view == nullptr) return nullptr;
  void* pointer = nullptr;
  const graft_status status =
      Driver::call(driver_.table().memory_host_view, handle_, address, bytes, &pointer);
  if (status == GRAFT_UNSUPPORTED) return nullptr;
  check(status, "memory_host_view");
  return pointer;
}

Error Device::unusable_error() const {
  if (lost()) {
    std::lock_guard<std::mutex> lock(mutex_);
    return {GRAFT_DEVICE_LOST, loss_};
  }
  return {GRAFT_INVALID_ARGUMENT,
          label() + " takes no more commands: Graft was shut down because the process exits."};
}

void Device::refuse_unusable() const {
  refuse_forked_child();
  if (!usable()) throw unusable_error();
}

void Device::lose(const std::string& message, std::string_view op) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!loss_.empty()) return;
  loss_ = label() + " is lost" + (op.empty() ? "" : " (during " + std::string(op) + ")") + ": " +
          message + ". Its memory is gone and every later call fails: restart the process.";
  state_.store(State::kLost, std::memory_order_release);
}

void Device::fail(graft_status status, std::string_view what) {
  if (!usable()) throw unusable_error();
  const std::string op = op_name(current_tag());
  if (status == GRAFT_DEVICE_LOST) {
    lose(driver_.message(status), op.empty() ? what : std::string_view(op));
    throw unusable_error();
  }
  driver_.fail(status, what, name_, op);
}

bool Device::shut_down(Patience& patience) {
  if (forked_child()) return false;
  State open = State::kOpen;
  if (!state_.compare_exchange_strong(open, State::kShutDown)) return false;
  bool done = true;
  for (Stream* stream : streams()) done &= stream->drain(patience);
  return done;
}

CommandCounts Device::counts() const {
  CommandCounts sum;
  for (const Stream* stream : streams()) sum.add(stream->counts());
  return sum;
}

}  // namespace graft
