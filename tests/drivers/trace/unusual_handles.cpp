// tests/drivers/trace/unusual_handles.cpp: right drivers whose handles are unusual.
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/drivers/trace/variant.h"

namespace graft::driver_test {
namespace {

std::mutex mutex;  // guards what follows of each variant

// Events are numbers from 0; the base's event of each.
std::vector<graft_event> numbered;
graft_event base_event(graft_event number) {
  const std::lock_guard lock(mutex);
  return numbered.at(reinterpret_cast<uintptr_t>(number));
}
void integer_events(graft_driver_table& t) {
  t.event_create = [](graft_device device, uint32_t timed, graft_event* out) {
    graft_event made = nullptr;
    const graft_status status = base.event_create(device, timed, &made);
    if (status != GRAFT_OK) return status;
    const std::lock_guard lock(mutex);
    *out = reinterpret_cast<graft_event>(numbered.size());
    numbered.push_back(made);
    return status;
  };
  t.event_destroy = [](graft_event event) { return base.event_destroy(base_event(event)); };
  t.event_query = [](graft_event event) { return base.event_query(base_event(event)); };
  t.event_record = [](graft_event event, graft_stream stream) {
    return base.event_record(base_event(event), stream);
  };
  t.event_elapsed = [](graft_event start, graft_event end, int64_t* out_ns) {
    return base.event_elapsed(base_event(start), base_event(end), out_ns);
  };
  t.stream_wait_event = [](graft_stream stream, graft_event event) {
    return base.stream_wait_event(stream, base_event(event));
  };
  t.event_synchronize = nullptr;
  t.event_synchronize_within = nullptr;
}

// Streams whose handles are the caller's names for streams of the base.
std::map<graft_stream, graft_stream> named;
graft_stream base_stream(graft_stream name) {
  const std::lock_guard lock(mutex);
  const auto found = named.find(name);
  return found == named.end() ? name : found->second;
}
void rename_streams(graft_driver_table& t) {
  t.stream_synchronize = [](graft_stream s) { return base.stream_synchronize(base_stream(s)); };
  t.stream_query = [](graft_stream s) { return base.stream_query(base_stream(s)); };
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) { return base.copy(base_stream(s), to, from, bytes, kind, tag); };
  t.fill = [](graft_stream s, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t pattern_bytes, uint32_t tag) {
    return base.fill(base_stream(s), to, bytes, pattern, pattern_bytes, tag);
  };
  t.event_record = [](graft_event event, graft_stream s) {
    return base.event_record(event, base_stream(s));
  };
  t.stream_wait_event = [](graft_stream s, graft_event event) {
    return base.stream_wait_event(base_stream(s), event);
  };
  t.host_callback = [](graft_stream s, void (*function)(void*), void* context) {
    return base.host_callback(base_stream(s), function, context);
  };
  t.stream_error = [](graft_stream s, uint32_t* out_tag, char* out_text, size_t capacity) {
    return base.stream_error(base_stream(s), out_tag, out_text, capacity);
  };
  t.kernel_launch = [](graft_stream s, graft_kernel kernel, const graft_launch* launch) {
    return base.kernel_launch(base_stream(s), kernel, launch);
  };
  t.stream_synchronize_within = [](graft_stream s, uint64_t timeout_ns) {
    return base.stream_synchronize_within(base_stream(s), timeout_ns);
  };
  t.copy_strided = [](graft_stream s, const graft_strided_copy* copy, uint32_t tag) {
    return base.copy_strided(base_stream(s), copy, tag);
  };
  t.peer_copy = nullptr;
  t.stream_native_handle = nullptr;
  t.extension = nullptr;
}

void null_stream(graft_driver_table& t) {
  rename_streams(t);
  t.stream_create = [](graft_device device, int32_t priority, graft_stream* out) {
    const graft_status status = base.stream_create(device, priority, out);
    const std::lock_guard lock(mutex);
    if (status == GRAFT_OK && named.try_emplace(nullptr, *out).second) *out = nullptr;
    return status;
  };
  t.stream_destroy = [](graft_stream s) {
    const graft_status status = base.stream_destroy(base_stream(s));
    const std::lock_guard lock(mutex);
    named.erase(s);
    return status;
  };
}

// All streams of the caller are one of the base.
graft_stream only = nullptr;
uintptr_t next_name = 1;
void one_queue(graft_driver_table& t) {
  rename_streams(t);
  t.stream_create = [](graft_device device, int32_t, graft_stream* out) {
    const std::lock_guard lock(mutex);
    if (only == nullptr) {
      const graft_status status = base.stream_create(device, 0, &only);
      if (status != GRAFT_OK) return status;
    }
    *out = reinterpret_cast<graft_stream>(next_name++);
    named[*out] = only;
    return GRAFT_OK;
  };
  t.stream_destroy = [](graft_stream s) { return base.stream_synchronize(base_stream(s)); };
}

// Programs of one blob are one program, which the last unload ends.
std::map<std::string, graft_program> loaded;
std::map<graft_program, int> loads;
void shared_programs(graft_driver_table& t) {
  t.program_load = [](graft_device device, const void* blob, size_t bytes, graft_program* out) {
    const std::lock_guard lock(mutex);
    graft_program& program = loaded[{static_cast<const char*>(blob), bytes}];
    if (program == nullptr) {
      const graft_status status = base.program_load(device, blob, bytes, &program);
      if (status != GRAFT_OK) return status;
    }
    ++loads[program];
    *out = program;
    return GRAFT_OK;
  };
  t.program_unload = [](graft_program program) {
    const std::lock_guard lock(mutex);
    if (--loads[program] != 0) return GRAFT_OK;
    for (auto row = loaded.begin(); row != loaded.end(); ++row) {
      if (row->second != program) continue;
      loaded.erase(row);
      break;
    }
    return base.program_unload(program);
  };
}

// Programs and their kernels are numbers from 1, and the same ones.
struct NumberedKernel {
  graft_program program = nullptr;
  graft_kernel kernel = nullptr;
};
std::vector<NumberedKernel> kernels;
NumberedKernel& kernel_at(const void* number) {
  return kernels.at(reinterpret_cast<uintptr_t>(number) - 1);
}
void integer_programs(graft_driver_table& t) {
  t.program_load = [](graft_device device, const void* blob, size_t bytes, graft_program* out) {
    NumberedKernel made;
    const graft_status status = base.program_load(device, blob, bytes, &made.program);
    if (status != GRAFT_OK) return status;
    const std::lock_guard lock(mutex);
    kernels.push_back(made);
    *out = reinterpret_cast<graft_program>(kernels.size());
    return status;
  };
  t.program_unload = [](graft_program program) {
    const std::lock_guard lock(mutex);
    return base.program_unload(kernel_at(program).program);
  };
  t.kernel_find = [](graft_device device, graft_program program, const char* name,
                     graft_kernel* out) {
    if (program == nullptr) return GRAFT_NOT_FOUND;  // it has no pack
    const std::lock_guard lock(mutex);
    NumberedKernel found{kernel_at(program).program, nullptr};
    const graft_status status = base.kernel_find(device, found.program, name, &found.kernel);
    if (status != GRAFT_OK) return status;
    const bool first = kernel_at(program).kernel == nullptr;
    if (first) {
      kernel_at(program).kernel = found.kernel;
    } else {
      kernels.push_back(found);
    }
    *out = first ? reinterpret_cast<graft_kernel>(program)
                 : reinterpret_cast<graft_kernel>(kernels.size());
    return status;
  };
  t.kernel_launch = [](graft_stream s, graft_kernel kernel, const graft_launch* launch) {
    std::unique_lock lock(mutex);
    const graft_kernel mine = kernel_at(kernel).kernel;
    lock.unlock();
    return base.kernel_launch(s, mine, launch);
  };
  t.extension = nullptr;
}

// An event is a value of one counter, which counts the marks of all streams in their order: it is
// passed once all earlier ones are.
auto& counted = *new std::vector<graft_event>;  // outlives the marks that it holds
std::map<graft_event, size_t> values;
graft_device opened = nullptr;
size_t passed = 0;
uintptr_t next_event = 1;
graft_status query_counter(graft_event event) {
  const std::lock_guard lock(mutex);
  while (passed < values[event]) {
    const graft_status status = base.event_query(counted[passed]);
    if (status == GRAFT_BUSY) return status;
    ++passed;
    if (status != GRAFT_OK) return status;
  }
  return GRAFT_OK;
}
void counter_events(graft_driver_table& t) {
  t.event_create = [](graft_device, uint32_t, graft_event* out) {
    const std::lock_guard lock(mutex);
    *out = reinterpret_cast<graft_event>(next_event++);
    return GRAFT_OK;
  };
  t.event_destroy = [](graft_event event) {
    const std::lock_guard lock(mutex);
    values.erase(event);
    return GRAFT_OK;
  };
  t.event_record = [](graft_event event, graft_stream s) {
    const std::lock_guard lock(mutex);
    graft_event mark = nullptr;
    graft_status status = base.event_create(opened, 0, &mark);
    if (status == GRAFT_OK) status = base.event_record(mark, s);
    if (status != GRAFT_OK) return status;
    counted.push_back(mark);
    values[event] = counted.size();
    return status;
  };
  t.event_query = query_counter;
  t.stream_wait_event = [](graft_stream s, graft_event event) {
    const std::lock_guard lock(mutex);
    const size_t value = values[event];
    return value == 0 ? GRAFT_OK : base.stream_wait_event(s, counted[value - 1]);
  };
  t.device_open = [](uint32_t ordinal, graft_device* out) {
    const graft_status status = base.device_open(ordinal, out);
    if (status == GRAFT_OK) opened = *out;
    return status;
  };
  t.event_elapsed = nullptr;
  t.event_synchronize = nullptr;
  t.event_synchronize_within = nullptr;
}

#define GRAFT_UNUSUAL_HANDLES(VARIANT)                                     \
  VARIANT(integer_events, "", "events are numbers from 0")                 \
  VARIANT(integer_programs, "", "programs and kernels are numbers from 1") \
  VARIANT(counter_events, "", "all events are one counter's values")       \
  VARIANT(null_stream, "", "the first stream's handle is null")            \
  VARIANT(one_queue, "", "one queue behind all streams")                   \
  VARIANT(shared_programs, "", "one program for equal blobs")
constexpr Variant kVariants[] = {GRAFT_UNUSUAL_HANDLES(GRAFT_VARIANT_ROW)};

}  // namespace

std::span<const Variant> unusual_handles() { return kVariants; }

}  // namespace graft::driver_test
