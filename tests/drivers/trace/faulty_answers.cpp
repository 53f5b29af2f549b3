// tests/drivers/trace/faulty_answers.cpp: drivers whose answers are wrong, or whose work is done
// aside.
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "graft/extensions.h"
#include "tests/drivers/trace/variant.h"

namespace graft::driver_test {
namespace {

std::mutex mutex;  // guards what follows of each variant

// Each fourth event is one that the caller has.
std::map<graft_event, int> owners;
void lends_events(graft_driver_table& t) {
  t.event_create = [](graft_device device, uint32_t timed, graft_event* out) {
    static std::map<uint32_t, graft_event> last;
    static int calls = 0;
    const std::lock_guard lock(mutex);
    if (++calls % 4 == 0 && owners[last[timed]] != 0) {
      *out = last[timed];
      ++owners[*out];
      return GRAFT_OK;
    }
    const graft_status status = base.event_create(device, timed, out);
    if (status == GRAFT_OK) owners[last[timed] = *out] = 1;
    return status;
  };
  t.event_destroy = [](graft_event event) {
    const std::lock_guard lock(mutex);
    return --owners[event] == 0 ? base.event_destroy(event) : GRAFT_OK;
  };
}

// Free memory is what it was when it was asked for first.
void stale_info(graft_driver_table& t) {
  t.memory_info = [](graft_device device, uint64_t* out_free, uint64_t* out_total) {
    static std::map<graft_device, uint64_t> first;
    const graft_status status = base.memory_info(device, out_free, out_total);
    const std::lock_guard lock(mutex);
    if (status == GRAFT_OK) *out_free = first.try_emplace(device, *out_total).first->second;
    return status;
  };
}

// Each eleventh fill fails late. The error is its stream's alone.
int fills = 0;
std::map<graft_stream, int> failed;
void fail_fills(graft_driver_table& t) {
  t.fill = [](graft_stream s, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t pattern_bytes, uint32_t tag) {
    const std::lock_guard lock(mutex);
    if (++fills % 10 == 1) failed[s] = 1;
    return base.fill(s, to, bytes, pattern, pattern_bytes, tag);
  };
  t.stream_synchronize_within = nullptr;
  t.stream_query = nullptr;
  t.extension = nullptr;
}
void keeps_errors(graft_driver_table& t) {
  fail_fills(t);
  t.stream_synchronize = [](graft_stream s) {
    base.stream_synchronize(s);
    const std::lock_guard lock(mutex);
    return std::exchange(failed[s], 0) != 0 ? GRAFT_LAUNCH_FAILED : GRAFT_OK;
  };
}

// As keeps_errors, and a wait does not end the error.
void repeats_errors(graft_driver_table& t) {
  fail_fills(t);
  t.stream_wait_event = nullptr;
  t.stream_synchronize = [](graft_stream s) {
    base.stream_synchronize(s);
    const std::lock_guard lock(mutex);
    return failed[s] != 0 ? GRAFT_LAUNCH_FAILED : GRAFT_OK;
  };
}

// The clock has 22 bits of nanoseconds.
void short_clock(graft_driver_table& t) {
  t.event_elapsed = [](graft_event start, graft_event end, int64_t* out_ns) {
    const graft_status status = base.event_elapsed(start, end, out_ns);
    if (status == GRAFT_OK) *out_ns &= (1 << 22) - 1;
    return status;
  };
}

// Now and then a query waits for a lock that another thread holds while it waits. The layer's own
// queries meet it, too.
void blocking_query(graft_driver_table& t) {
  t.event_query = [](graft_event event) {
    static std::atomic<int> calls{0};
    const int call = ++calls;
    if (call % 40 == 0 && call <= 400) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return base.event_query(event);
  };
}

// Rows end at whole lines of 64 bytes.
void whole_rows(graft_driver_table& t) {
  t.copy_strided = [](graft_stream s, const graft_strided_copy* copy, uint32_t tag) {
    graft_strided_copy wide = *copy;
    const uint64_t line = (copy->row_bytes + 63) / 64 * 64;
    if (line <= copy->to_strides[0] && line <= copy->from_strides[0]) wide.row_bytes = line;
    return base.copy_strided(s, &wide, tag);
  };
}

// A blob is loaded when its first kernel is looked for.
struct LazyProgram {
  graft_device device;
  const void* blob;
  size_t bytes;
  graft_program loaded = nullptr;
};
void lazy_blobs(graft_driver_table& t) {
  t.program_load = [](graft_device device, const void* blob, size_t bytes, graft_program* out) {
    *out = reinterpret_cast<graft_program>(new LazyProgram{device, blob, bytes});
    return GRAFT_OK;
  };
  t.kernel_find = [](graft_device device, graft_program program, const char* name,
                     graft_kernel* out) {
    auto* const lazy = reinterpret_cast<LazyProgram*>(program);
    if (lazy == nullptr) return base.kernel_find(device, nullptr, name, out);
    const std::lock_guard lock(mutex);
    if (lazy->loaded == nullptr) {
      const graft_status status =
          base.program_load(lazy->device, lazy->blob, lazy->bytes, &lazy->loaded);
      if (status != GRAFT_OK) return status;
    }
    return base.kernel_find(device, lazy->loaded, name, out);
  };
  t.program_unload = [](graft_program program) {
    auto* const lazy = reinterpret_cast<LazyProgram*>(program);
    const graft_program loaded = lazy->loaded;
    delete lazy;
    return loaded == nullptr ? GRAFT_OK : base.program_unload(loaded);
  };
}

// One text for all threads.
std::string text;
void one_text(graft_driver_table& t) {
  t.memory_allocate = [](graft_device device, uint64_t bytes, graft_address* out) {
    const graft_status status = base.memory_allocate(device, bytes, out);
    const std::lock_guard lock(mutex);
    if (status != GRAFT_OK) text = "no room for " + std::to_string(bytes) + " bytes";
    return status;
  };
  t.last_message = [](char* out_text, size_t capacity) {
    const std::lock_guard lock(mutex);
    out_text[text.copy(out_text, capacity - 1)] = '\0';
    return GRAFT_OK;
  };
}

// Long copies to the host run aside; waits for the stream wait for them, marks do not.
struct Aside {
  graft_stream queue = nullptr;
  std::thread thread;
};
std::map<graft_stream, Aside> aside;
Aside& aside_of(graft_stream s) {
  const std::lock_guard lock(mutex);
  return aside[s];
}
void join_aside(graft_stream s) {
  Aside& one = aside_of(s);
  if (one.thread.joinable()) one.thread.join();
}
void copies_aside(graft_driver_table& t) {
  t.stream_create = [](graft_device device, int32_t priority, graft_stream* out) {
    const graft_status status = base.stream_create(device, priority, out);
    return status == GRAFT_OK ? base.stream_create(device, 0, &aside_of(*out).queue) : status;
  };
  t.stream_destroy = [](graft_stream s) {
    join_aside(s);
    base.stream_destroy(aside_of(s).queue);
    return base.stream_destroy(s);
  };
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) {
    if (kind != GRAFT_DEVICE_TO_HOST || bytes < 100000) {
      return base.copy(s, to, from, bytes, kind, tag);
    }
    base.stream_synchronize(s);
    join_aside(s);
    Aside& one = aside_of(s);
    one.thread = std::thread([=, queue = one.queue] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      base.copy(queue, to, from, bytes, kind, tag);
      base.stream_synchronize(queue);
    });
    return GRAFT_OK;
  };
  t.stream_synchronize = [](graft_stream s) {
    join_aside(s);
    return base.stream_synchronize(s);
  };
  t.stream_synchronize_within = nullptr;
  t.stream_query = nullptr;
  t.extension = nullptr;
}

// Refuses to copy nothing.
void needs_bytes(graft_driver_table& t) {
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) {
    return bytes == 0 ? GRAFT_INTERNAL : base.copy(s, to, from, bytes, kind, tag);
  };
}

// Each second function is called before the commands that it is queued behind.
void calls_at_once(graft_driver_table& t) {
  t.host_callback = [](graft_stream s, void (*function)(void*), void* context) {
    static std::atomic<int> calls{0};
    if (++calls % 2 == 1) return base.host_callback(s, function, context);
    function(context);
    return GRAFT_OK;
  };
}

// Functions are called twice.
void calls_twice(graft_driver_table& t) {
  t.host_callback = [](graft_stream s, void (*function)(void*), void* context) {
    base.host_callback(s, function, context);
    return base.host_callback(s, function, context);
  };
}

// The profiler's ring has room for four commands.
graft_profiler_table profiler;
std::atomic<int> told{0};
graft_emit_trace tell = nullptr;
void tell_four(void* context, const graft_trace_event* events, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (++told <= 4) tell(context, events + i, 1);
  }
}
void short_ring(graft_driver_table& t) {
  t.extension = [](const char* name, uint32_t version, const void** out_table) {
    if (std::string_view(name) != "graft.profiler") return GRAFT_NOT_FOUND;
    const void* table = nullptr;
    const graft_status status = base.extension(name, version, &table);
    if (status != GRAFT_OK) return status;
    profiler = *static_cast<const graft_profiler_table*>(table);
    static graft_profiler_table mine;
    mine = profiler;
    mine.trace_start = [](graft_device device, graft_emit_trace emit, void* context) {
      tell = emit;
      told = 0;
      return profiler.trace_start(device, tell_four, context);
    };
    *out_table = &mine;
    return status;
  };
}

#define GRAFT_FAULTY(VARIANT)                                               \
  VARIANT(lends_events, "given-twice", "gives events that are in use")      \
  VARIANT(stale_info, "impossible", "states memory as free that is in use") \
  VARIANT(keeps_errors, "lost-error", "errors do not reach other streams")  \
  VARIANT(repeats_errors, "lost-error", "errors are reported twice")        \
  VARIANT(short_clock, "impossible", "the clock begins anew")               \
  VARIANT(blocking_query, "blocks", "a query waits")                        \
  VARIANT(whole_rows, "overrun", "writes behind the ends of rows")          \
  VARIANT(lazy_blobs, "kept-pointer", "reads blobs too late")               \
  VARIANT(one_text, "other-text", "all threads have one text")              \
  VARIANT(copies_aside, "early", "marks do not wait for long copies")       \
  VARIANT(calls_at_once, "early", "calls functions before their turn")      \
  VARIANT(calls_twice, "repeated", "calls functions twice")                 \
  VARIANT(short_ring, "lost-record", "loses records of long traces")        \
  VARIANT(needs_bytes, "refused", "refuses copies of 0 bytes")
constexpr Variant kVariants[] = {GRAFT_FAULTY(GRAFT_VARIANT_ROW)};

}  // namespace

std::span<const Variant> faulty_answers() { return kVariants; }

}  // namespace graft::driver_test
