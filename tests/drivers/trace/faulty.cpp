// tests/drivers/trace/faulty.cpp: drivers with a bug that only a program's traffic shows.
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/drivers/trace/variant.h"

namespace graft::driver_test {
namespace {

std::mutex mutex;  // guards what follows of each variant

// For a page it gives memory that is in use.
std::vector<graft_address> given;
void recycles(graft_driver_table& t) {
  t.memory_allocate = [](graft_device device, uint64_t bytes, graft_address* out) {
    const std::lock_guard lock(mutex);
    if (bytes == 4096 && !given.empty()) {
      *out = given.back();
      return GRAFT_OK;
    }
    const graft_status status = base.memory_allocate(device, bytes, out);
    if (status == GRAFT_OK) given.push_back(*out);
    return status;
  };
  t.memory_free = [](graft_device, graft_address address) {
    const std::lock_guard lock(mutex);
    std::erase(given, address);
    return GRAFT_OK;
  };
}

// Ends a stream while its work waits, which goes on: no memory is ever freed.
void drops_work(graft_driver_table& t) {
  t.memory_free = [](graft_device, graft_address) { return GRAFT_OK; };
  t.device_close = [](graft_device) { return GRAFT_OK; };
  t.stream_destroy = [](graft_stream s) {
    std::thread([s] { base.stream_destroy(s); }).detach();
    return GRAFT_OK;
  };
}

// From the tenth record on, marks are passed at once.
std::atomic<int> records{0};
void early_marks(graft_driver_table& t) {
  t.event_record = [](graft_event event, graft_stream s) {
    ++records;
    return base.event_record(event, s);
  };
  t.event_query = [](graft_event event) {
    return records < 10 ? base.event_query(event) : GRAFT_OK;
  };
  t.event_synchronize = nullptr;
  t.event_synchronize_within = nullptr;
}

// Long copies lose their last bytes.
void short_copies(graft_driver_table& t) {
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) {
    return base.copy(s, to, from, kind == GRAFT_HOST_TO_DEVICE && bytes > 4096 ? bytes - 3 : bytes,
                     kind, tag);
  };
}

// A launch waits for the next call on its stream, and reads its arguments only then.
struct Waiting {
  graft_kernel kernel = nullptr;
  const graft_launch* launch = nullptr;
};
std::map<graft_stream, Waiting> waiting;
graft_status launch_waiting(graft_stream s) {
  Waiting one;
  {
    const std::lock_guard lock(mutex);
    std::swap(one, waiting[s]);
  }
  return one.launch == nullptr ? GRAFT_OK : base.kernel_launch(s, one.kernel, one.launch);
}
void keeps_arguments(graft_driver_table& t) {
  t.kernel_launch = [](graft_stream s, graft_kernel kernel, const graft_launch* launch) {
    const graft_status status = launch_waiting(s);
    const std::lock_guard lock(mutex);
    waiting[s] = {kernel, launch};
    return status;
  };
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) {
    launch_waiting(s);
    return base.copy(s, to, from, bytes, kind, tag);
  };
  t.stream_synchronize = [](graft_stream s) {
    launch_waiting(s);
    return base.stream_synchronize(s);
  };
  t.stream_synchronize_within = nullptr;
  t.stream_query = nullptr;
  t.extension = nullptr;
}

// A stream that waits for an event runs on; only long queues show it.
void forgets_waits(graft_driver_table& t) {
  t.stream_wait_event = [](graft_stream, graft_event) { return GRAFT_OK; };
}

// event_record leaves an event alone that was recorded before.
std::map<graft_event, int> records_of;
void stale_marks(graft_driver_table& t) {
  t.event_record = [](graft_event event, graft_stream s) {
    const std::lock_guard lock(mutex);
    return records_of[event]++ == 0 ? base.event_record(event, s) : GRAFT_OK;
  };
  t.event_destroy = [](graft_event event) {
    const std::lock_guard lock(mutex);
    records_of.erase(event);
    return base.event_destroy(event);
  };
}

// A fill waits for the next call on its stream, and reads its pattern only then.
struct WaitingFill {
  graft_address to = 0;
  uint64_t bytes = 0;
  const void* pattern = nullptr;
  uint32_t pattern_bytes = 0, tag = 0;
};
std::map<graft_stream, WaitingFill> fills;
void fill_waiting(graft_stream s) {
  const std::lock_guard lock(mutex);
  WaitingFill& one = fills[s];
  if (one.bytes != 0) base.fill(s, one.to, one.bytes, one.pattern, one.pattern_bytes, one.tag);
  one = {};
}
template <auto slot, class... A>
void fill_first(graft_driver_table& t, graft_status (*)(graft_stream, A...)) {
  t.*slot = [](graft_stream s, A... rest) {
    fill_waiting(s);
    return (base.*slot)(s, rest...);
  };
}
void keeps_pattern(graft_driver_table& t) {
  using Table = graft_driver_table;
  fill_first<&Table::copy>(t, base.copy);
  fill_first<&Table::kernel_launch>(t, base.kernel_launch);
  fill_first<&Table::stream_synchronize>(t, base.stream_synchronize);
  fill_first<&Table::stream_synchronize_within>(t, base.stream_synchronize_within);
  fill_first<&Table::stream_query>(t, base.stream_query);
  t.fill = [](graft_stream s, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t pattern_bytes, uint32_t tag) {
    fill_waiting(s);
    const std::lock_guard lock(mutex);
    fills[s] = {to, bytes, pattern, pattern_bytes, tag};
    return GRAFT_OK;
  };
  t.event_record = [](graft_event event, graft_stream s) {
    fill_waiting(s);
    return base.event_record(event, s);
  };
  t.extension = nullptr;
}

// Pinned memory comes from a pool of blocks that forgets which are in use.
std::vector<void*> blocks;
void shares_pinned(graft_driver_table& t) {
  t.host_allocate = [](graft_device device, uint64_t bytes, void** out) {
    static size_t next = 0;
    constexpr uint64_t kBlock = 64 << 20;
    if (bytes > kBlock) return base.host_allocate(device, bytes, out);
    const std::lock_guard lock(mutex);
    if (blocks.size() < 2) {
      void* made = nullptr;
      const graft_status status = base.host_allocate(device, kBlock, &made);
      if (status != GRAFT_OK) return status;
      blocks.push_back(made);
    }
    *out = blocks[next++ % 2 % blocks.size()];
    return GRAFT_OK;
  };
  t.host_free = [](graft_device, void*) { return GRAFT_OK; };
}

// Copies need addresses that are multiples of 16.
void whole_lines(graft_driver_table& t) {
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) {
    const uint64_t device_side =
        (kind == GRAFT_HOST_TO_DEVICE ? 0 : from) | (kind == GRAFT_DEVICE_TO_HOST ? 0 : to);
    return device_side % 16 != 0 ? GRAFT_INVALID_ARGUMENT
                                 : base.copy(s, to, from, bytes, kind, tag);
  };
}

// Times are microseconds.
void microseconds(graft_driver_table& t) {
  t.event_elapsed = [](graft_event start, graft_event end, int64_t* out_ns) {
    const graft_status status = base.event_elapsed(start, end, out_ns);
    if (status == GRAFT_OK) *out_ns /= 1000;
    return status;
  };
}

// Only the first stream is ever busy.
graft_stream first_stream = nullptr;
void one_busy_stream(graft_driver_table& t) {
  t.stream_create = [](graft_device device, int32_t priority, graft_stream* out) {
    const graft_status status = base.stream_create(device, priority, out);
    const std::lock_guard lock(mutex);
    if (status == GRAFT_OK && first_stream == nullptr) first_stream = *out;
    return status;
  };
  t.stream_query = [](graft_stream s) {
    return s == first_stream ? base.stream_query(s) : GRAFT_OK;
  };
}

// A thread waits for what it has queued itself.
thread_local std::map<graft_stream, bool> queued_here;
void waits_by_thread(graft_driver_table& t) {
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) {
    queued_here[s] = true;
    return base.copy(s, to, from, bytes, kind, tag);
  };
  t.fill = [](graft_stream s, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t pattern_bytes, uint32_t tag) {
    queued_here[s] = true;
    return base.fill(s, to, bytes, pattern, pattern_bytes, tag);
  };
  t.kernel_launch = [](graft_stream s, graft_kernel kernel, const graft_launch* launch) {
    queued_here[s] = true;
    return base.kernel_launch(s, kernel, launch);
  };
  t.stream_synchronize = [](graft_stream s) {
    return std::exchange(queued_here[s], false) ? base.stream_synchronize(s) : GRAFT_OK;
  };
  t.stream_synchronize_within = [](graft_stream s, uint64_t timeout_ns) {
    const graft_status status =
        queued_here[s] ? base.stream_synchronize_within(s, timeout_ns) : GRAFT_OK;
    if (status != GRAFT_BUSY) queued_here[s] = false;
    return status;
  };
  t.stream_query = nullptr;
  t.extension = nullptr;
}

#define GRAFT_FAULTY(VARIANT)                                                  \
  VARIANT(recycles, "overlap", "gives memory that is in use")                  \
  VARIANT(drops_work, "dropped", "ends streams before their work")             \
  VARIANT(early_marks, "early", "the tenth mark is passed at once")            \
  VARIANT(short_copies, "wrong-bytes", "long copies lose three bytes")         \
  VARIANT(keeps_arguments, "kept-pointer", "reads arguments too late")         \
  VARIANT(forgets_waits, "unordered", "a stream does not wait")                \
  VARIANT(stale_marks, "early", "a second mark does not replace the first")    \
  VARIANT(keeps_pattern, "kept-pointer", "reads a fill's pattern too late")    \
  VARIANT(shares_pinned, "overlap", "gives pinned memory that is in use")      \
  VARIANT(whole_lines, "refused", "copies addresses that are multiples of 16") \
  VARIANT(microseconds, "impossible", "times are microseconds")                \
  VARIANT(one_busy_stream, "early", "streams but the first are never busy")    \
  VARIANT(waits_by_thread, "early", "a thread waits for its own commands")
constexpr Variant kVariants[] = {GRAFT_FAULTY(GRAFT_VARIANT_ROW)};

}  // namespace

std::span<const Variant> faulty_variants() { return kVariants; }

}  // namespace graft::driver_test
