// tests/runtime/driver/fake_driver.h: a driver over malloc whose time, errors and slots a test
// controls.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "graft/driver.h"
#include "runtime/driver/library.h"
#include "runtime/driver/op_tag.h"
#include "runtime/platform/device.h"

// Handles. Commands run when their stream is told to (or at once when time is not held).
struct graft_device_s {
  uint32_t ordinal;
};
struct graft_stream_s {
  std::mutex mutex;
  std::deque<std::function<void()>> queue;
  uint64_t enqueued = 0, done = 0;
  graft_status late = GRAFT_OK;  // handed out once
  uint32_t late_tag = 0;
};
struct graft_event_s {
  std::mutex mutex;
  graft_stream stream = nullptr;
  uint64_t mark = 0;
  int64_t time_ns = 0;
};

namespace graft::fake {

// What a test sets before or during its run; one per process, reset by Fake's constructor.
struct Controls {
  std::atomic<bool> hold{false};            // commands wait until release() or a synchronisation
  std::atomic<graft_stream> hung{nullptr};  // its commands wait for release() alone
  std::atomic<int> fail_late{0};     // status of the next command, after its slot returned OK
  std::atomic<int> fail_now{0};      // status that the next command's slot returns
  std::atomic<int64_t> clock_ns{0};  // events are stamped with it
  std::atomic<uint64_t> memory{1 << 30};
  std::atomic<uint64_t> used{0};
  std::atomic<int> allocations{0}, frees{0}, live_events{0}, live_streams{0}, live_devices{0};
  std::atomic<int> host_allocations{0}, host_frees{0};
  std::string message;
  graft_device_properties properties{};
  std::mutex mutex;
  std::map<graft_address, uint64_t> blocks;  // guarded by mutex
  std::vector<graft_argument> arguments;     // of all launches, in order; guarded by mutex
};

inline Controls& controls() {
  static auto* const the_controls = new Controls();
  return *the_controls;
}

// Runs the first commands that the stream holds. REQUIRES: its mutex is held.
inline void run(graft_stream stream, size_t commands) {
  for (; commands > 0 && !stream->queue.empty(); --commands) {
    auto command = std::move(stream->queue.front());
    stream->queue.pop_front();
    command();
    ++stream->done;
  }
}
inline void run_all(graft_stream stream) {
  if (controls().hung != stream) run(stream, SIZE_MAX);
}

// Lets time pass on one stream while it is held everywhere else.
inline void release(Stream& stream, size_t commands = SIZE_MAX) {
  std::lock_guard<std::mutex> lock(stream.handle()->mutex);
  run(stream.handle(), commands);
}

inline void hang(Stream& stream) { controls().hung = stream.handle(); }

// Asks done, which runs commands, until it says yes or the time is over.
template <class Done>
bool within(uint64_t timeout_ns, Done&& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

inline graft_status enqueue(graft_stream stream, uint32_t tag, std::function<void()> work) {
  Controls& now = controls();
  if (const int status = now.fail_now.exchange(0)) return static_cast<graft_status>(status);
  const int late = now.fail_late.exchange(0);
  std::lock_guard<std::mutex> lock(stream->mutex);
  ++stream->enqueued;
  stream->queue.push_back([=, work = std::move(work)] {
    if (late == 0) return work();
    stream->late = static_cast<graft_status>(late);
    stream->late_tag = tag;
  });
  if (!now.hold) run_all(stream);
  return GRAFT_OK;
}

inline graft_status take_late(graft_stream stream) {
  const graft_status late = stream->late;
  if (late != GRAFT_DEVICE_LOST) stream->late = GRAFT_OK;
  return late;
}

inline graft_status memory_allocate(graft_device, uint64_t bytes, graft_address* out) {
  Controls& now = controls();
  std::lock_guard<std::mutex> lock(now.mutex);
  if (now.used + bytes > now.memory) return GRAFT_OUT_OF_MEMORY;
  void* pointer = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (pointer == nullptr) return GRAFT_OUT_OF_MEMORY;
  now.used += bytes;
  ++now.allocations;
  *out = reinterpret_cast<uintptr_t>(pointer);
  now.blocks[*out] = bytes;
  return GRAFT_OK;
}

inline graft_status memory_free(graft_device, graft_address address) {
  Controls& now = controls();
  std::lock_guard<std::mutex> lock(now.mutex);
  const auto found = now.blocks.find(address);
  if (found == now.blocks.end()) return GRAFT_INVALID_ARGUMENT;
  now.used -= found->second;
  ++now.frees;
  now.blocks.erase(found);
  std::free(reinterpret_cast<void*>(address));
  return GRAFT_OK;
}

inline graft_status event_query(graft_event event) {
  std::lock_guard<std::mutex> lock(event->mutex);
  if (event->stream == nullptr) return GRAFT_OK;
  std::lock_guard<std::mutex> stream_lock(event->stream->mutex);
  return event->stream->done >= event->mark ? GRAFT_OK : GRAFT_BUSY;
}

inline graft_status event_synchronize(graft_event event) {
  std::lock_guard<std::mutex> lock(event->mutex);
  if (event->stream == nullptr) return GRAFT_OK;
  std::lock_guard<std::mutex> stream_lock(event->stream->mutex);
  run_all(event->stream);
  return take_late(event->stream);
}

inline graft_status event_synchronize_within(graft_event event, uint64_t timeout_ns) {
  graft_stream stream = nullptr;
  const bool passed = within(timeout_ns, [&] {
    std::lock_guard<std::mutex> lock(event->mutex);
    stream = event->stream;
    if (stream == nullptr) return true;
    std::lock_guard<std::mutex> stream_lock(stream->mutex);
    run_all(stream);
    return stream->done >= event->mark;
  });
  if (!passed) return GRAFT_BUSY;
  if (stream == nullptr) return GRAFT_OK;
  std::lock_guard<std::mutex> lock(stream->mutex);
  return take_late(stream);
}

inline graft_status stream_synchronize_within(graft_stream stream, uint64_t timeout_ns) {
  const bool done = within(timeout_ns, [&] {
    std::lock_guard<std::mutex> lock(stream->mutex);
    run_all(stream);
    return stream->queue.empty();
  });
  std::lock_guard<std::mutex> lock(stream->mutex);
  return done ? take_late(stream) : GRAFT_BUSY;
}

inline void add_devices(graft_driver_table& t) {
  t.device_count = [](uint32_t* out) { return *out = 2, GRAFT_OK; };
  t.device_properties = [](uint32_t ordinal, graft_device_properties* properties) {
    if (ordinal > 1) return GRAFT_NOT_FOUND;
    std::memcpy(properties, &controls().properties, sizeof(*properties));
    return GRAFT_OK;
  };
  t.device_open = [](uint32_t ordinal, graft_device* out) {
    ++controls().live_devices;
    return *out = new graft_device_s{ordinal}, GRAFT_OK;
  };
  t.device_close = [](graft_device device) {
    --controls().live_devices;
    return delete device, GRAFT_OK;
  };
  t.memory_allocate = &memory_allocate;
  t.memory_free = &memory_free;
  t.last_message = [](char* text, size_t capacity) {
    std::strncpy(text, controls().message.c_str(), capacity - 1);
    return text[capacity - 1] = '\0', GRAFT_OK;
  };
}

inline void add_streams(graft_driver_table& t) {
  t.stream_create = [](graft_device, int32_t, graft_stream* out) {
    ++controls().live_streams;
    return *out = new graft_stream_s(), GRAFT_OK;
  };
  t.stream_destroy = [](graft_stream stream) {
    --controls().live_streams;
    return delete stream, GRAFT_OK;
  };
  t.stream_synchronize = [](graft_stream stream) {
    std::lock_guard<std::mutex> lock(stream->mutex);
    run_all(stream);
    return take_late(stream);
  };
  t.stream_synchronize_within = &stream_synchronize_within;
  t.copy = [](graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes, uint32_t,
              uint32_t tag) {
    return enqueue(stream, tag, [=] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    });
  };
  t.fill = [](graft_stream stream, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t pattern_bytes, uint32_t tag) {
    const std::string copied(static_cast<const char*>(pattern), pattern_bytes);
    return enqueue(stream, tag, [=] {
      for (uint64_t i = 0; i < bytes; ++i) {
        reinterpret_cast<char*>(to)[i] = copied[i % pattern_bytes];
      }
    });
  };
  t.kernel_find = [](graft_device, graft_program, const char*, graft_kernel*) {
    return GRAFT_NOT_FOUND;
  };
  t.kernel_launch = [](graft_stream stream, graft_kernel, const graft_launch* launch) {
    {
      const std::lock_guard lock(controls().mutex);
      controls().arguments.insert(controls().arguments.end(), launch->arguments,
                                  launch->arguments + launch->argument_count);
    }
    return enqueue(stream, launch->tag, [] {});
  };
  t.stream_error = [](graft_stream stream, uint32_t* tag, char* text, size_t capacity) {
    std::lock_guard<std::mutex> lock(stream->mutex);
    *tag = stream->late_tag;
    std::strncpy(text, controls().message.c_str(), capacity - 1);
    return text[capacity - 1] = '\0', GRAFT_OK;
  };
}

inline void add_events(graft_driver_table& t) {
  t.event_create = [](graft_device, uint32_t, graft_event* out) {
    ++controls().live_events;
    return *out = new graft_event_s(), GRAFT_OK;
  };
  t.event_destroy = [](graft_event event) {
    --controls().live_events;
    return delete event, GRAFT_OK;
  };
  t.event_record = [](graft_event event, graft_stream stream) {
    std::lock_guard<std::mutex> lock(event->mutex);
    std::lock_guard<std::mutex> stream_lock(stream->mutex);
    event->stream = stream;
    event->mark = stream->enqueued;
    event->time_ns = controls().clock_ns;
    return GRAFT_OK;
  };
  t.event_query = &event_query;
  t.event_synchronize = &event_synchronize;
  t.event_synchronize_within = &event_synchronize_within;
  t.event_elapsed = [](graft_event start, graft_event end, int64_t* out) {
    if (event_query(start) != GRAFT_OK || event_query(end) != GRAFT_OK) return GRAFT_BUSY;
    return *out = end->time_ns - start->time_ns, GRAFT_OK;
  };
}

// A full table; a test may take slots away or replace them before it opens a device.
inline graft_driver_table full_table() {
  graft_driver_table t{};
  t.abi_major = GRAFT_ABI_MAJOR;
  t.abi_minor = GRAFT_ABI_MINOR;
  t.slot_count = GRAFT_SLOT_COUNT;
  t.name = "fake";
  add_devices(t);
  add_streams(t);
  add_events(t);
  return t;
}

// What a driver of an older minor leaves out.
inline void remove_bounded_waits(graft_driver_table& t) {
  t.stream_synchronize_within = nullptr;
  t.event_synchronize_within = nullptr;
}

inline graft_driver_table& table() {
  static graft_driver_table the_table = full_table();
  return the_table;
}

inline graft_status query(graft_driver_table* out) { return graft_driver_fill(out, &table()); }

// A loaded driver with one open device, and controls as they are at first.
class Fake {
 public:
  Fake() { reset(); }
  ~Fake() {
    close();
    table() = full_table();
  }

  // Opens the device; call after changes to table() and controls().
  Device& open() {
    driver_ = Driver::adopt(&query, "/nowhere/fake.so");
    device_ = std::make_unique<Device>(*driver_, 0, 0);
    return *device_;
  }
  Device& open_second() {
    second_ = std::make_unique<Device>(*driver_, 1, 1);
    return *second_;
  }
  // The first device's pinned memory may hold events of the second.
  void close() { device_.reset(), second_.reset(); }
  Driver& driver() { return *driver_; }
  Device& device() { return *device_; }

 private:
  static void reset() {
    Controls& now = controls();
    now.hold = false;
    now.hung = nullptr;
    now.fail_late = now.fail_now = 0;
    now.clock_ns = 0;
    now.memory = 1 << 30;
    now.allocations = now.frees = now.host_allocations = now.host_frees = 0;
    now.message.clear();
    now.properties = {};
    now.properties.struct_size = sizeof(now.properties);
    now.properties.compute_units = now.properties.max_group_size = 1;
    now.properties.sub_group_size = 1;
    now.properties.memory_bytes = 1 << 30;
    now.properties.allocation_alignment = 256;
    now.properties.priority_lowest = 0;
    now.properties.priority_highest = -1;
    std::strcpy(now.properties.name, "Fake device");
  }

  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> second_;
};

// The text of the Error that action throws, empty when it throws none.
template <class Action>
std::string error_of(Action&& action, graft_status* out_status = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (out_status != nullptr) *out_status = error.status();
    return error.what();
  }
  return {};
}

// Whether a text holds a part, for EXPECT_TRUE.
inline testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected '" << part << "' in '" << text << "'";
}

}  // namespace graft::fake
