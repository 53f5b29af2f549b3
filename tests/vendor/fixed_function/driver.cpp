// tests/vendor/fixed_function/driver.cpp: the slots of the fixed-function chip; commands run at the
// call.
#include "graft/driver.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "chip.h"

namespace {

constexpr uint64_t kAlignment = 256, kMemoryBytes = 4ull << 30;
char the_device, the_event;  // one of each; nothing is ever pending

// What failed of a stream's commands after their slots returned OK, to be told once.
struct Stream {
  std::mutex mutex;  // guards what follows
  graft_status failed = GRAFT_OK;
  uint32_t tag = 0;  // of the command that failed
  std::string text;
};

Stream& stream_of(graft_stream handle) { return *reinterpret_cast<Stream*>(handle); }

graft_status device_count(uint32_t* out_count) {
  *out_count = 1;
  return GRAFT_OK;
}

graft_status device_properties(uint32_t ordinal, graft_device_properties* properties) {
  if (ordinal != 0) return GRAFT_NOT_FOUND;
  graft_device_properties mine{};
  mine.struct_size = std::min<uint32_t>(properties->struct_size, sizeof mine);
  mine.device_class = GRAFT_CPU_LIKE;
  mine.features = GRAFT_FEATURE_SIMULATED;
  mine.compute_units = 1, mine.max_group_size = 1, mine.sub_group_size = 1;
  mine.capability_major = 1;
  mine.memory_bytes = kMemoryBytes;
  mine.allocation_alignment = kAlignment;
  std::strcpy(mine.name, "Fixed-function chip");
  std::strcpy(mine.vendor, "Fixed Functions Ltd");
  std::memcpy(properties, &mine, mine.struct_size);
  return GRAFT_OK;
}

graft_status device_open(uint32_t ordinal, graft_device* out_device) {
  if (ordinal != 0) return GRAFT_NOT_FOUND;
  *out_device = reinterpret_cast<graft_device>(&the_device);
  return GRAFT_OK;
}

graft_status device_close(graft_device) { return GRAFT_OK; }

graft_status memory_allocate(graft_device, uint64_t bytes, graft_address* out) {
  if (bytes > kMemoryBytes) return GRAFT_OUT_OF_MEMORY;
  void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) return GRAFT_OUT_OF_MEMORY;
  *out = reinterpret_cast<graft_address>(memory);
  return GRAFT_OK;
}

graft_status memory_free(graft_device, graft_address address) {
  std::free(reinterpret_cast<void*>(address));
  return GRAFT_OK;
}

graft_status stream_create(graft_device, int32_t, graft_stream* out) {
  *out = reinterpret_cast<graft_stream>(new Stream);
  return GRAFT_OK;
}

graft_status stream_destroy(graft_stream stream) {
  delete &stream_of(stream);
  return GRAFT_OK;
}

graft_status stream_synchronize(graft_stream handle) {
  Stream& stream = stream_of(handle);
  const std::lock_guard lock(stream.mutex);
  return std::exchange(stream.failed, GRAFT_OK);
}

graft_status stream_error(graft_stream handle, uint32_t* out_tag, char* out_text, size_t capacity) {
  Stream& stream = stream_of(handle);
  const std::lock_guard lock(stream.mutex);
  *out_tag = stream.tag;
  if (capacity != 0) out_text[stream.text.copy(out_text, capacity - 1)] = '\0';
  return GRAFT_OK;
}

graft_status copy(graft_stream, uint64_t to, uint64_t from, uint64_t bytes, uint32_t, uint32_t) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return GRAFT_OK;
}

graft_status fill(graft_stream, graft_address to, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, uint32_t) {
  if (pattern_bytes == 0 || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)) != 0) {
    return GRAFT_INVALID_ARGUMENT;
  }
  for (uint64_t done = 0; done + pattern_bytes <= bytes; done += pattern_bytes) {
    std::memcpy(reinterpret_cast<char*>(to) + done, pattern, pattern_bytes);
  }
  return GRAFT_OK;
}

graft_status event_create(graft_device, uint32_t, graft_event* out) {
  *out = reinterpret_cast<graft_event>(&the_event);
  return GRAFT_OK;
}

graft_status event_end(graft_event) { return GRAFT_OK; }
graft_status event_record(graft_event, graft_stream) { return GRAFT_OK; }

// Whether a variable of the environment names the operator.
bool named(const char* variable, const std::string& name) {
  const char* const value = std::getenv(variable);
  return value != nullptr && name == value;
}

graft_status operation_known(graft_device, const char* name) {
  return chip::find(name) != nullptr ? GRAFT_OK : GRAFT_UNSUPPORTED;
}

graft_status operation_plan(graft_device, const graft_operation* operation, graft_plan_needs* needs,
                            graft_plan* out_plan) {
  const chip::Operation* found = chip::find(operation->name);
  if (found == nullptr) return GRAFT_UNSUPPORTED;
  if (named("FIXED_FUNCTION_FAIL", found->name)) return GRAFT_COMPILE_ERROR;
  auto plan = std::make_unique<chip::Plan>();
  plan->operation = found;
  plan->tensors.assign(operation->tensors, operation->tensors + operation->tensor_count);
  plan->scalars.assign(operation->scalar_dtypes,
                       operation->scalar_dtypes + operation->scalar_count);
  plan->integers.assign(operation->integers, operation->integers + operation->integer_count);
  plan->numbers.assign(operation->numbers, operation->numbers + operation->number_count);
  for (size_t i = 0; i < plan->tensors.size(); ++i) {
    const graft_dtype expected = (found->wholes >> i & 1) != 0 ? GRAFT_INT64 : GRAFT_FLOAT32;
    const uint32_t dtype = plan->tensors[i].dtype;
    if (dtype != GRAFT_NO_TENSOR && dtype != expected) return GRAFT_UNSUPPORTED;
  }
  if (found->takes != nullptr && !found->takes(*plan)) return GRAFT_UNSUPPORTED;
  if (named("FIXED_FUNCTION_LACKS", found->name)) return GRAFT_UNSUPPORTED;
  needs->workspace_bytes = 0;
  *out_plan = reinterpret_cast<graft_plan>(plan.release());
  return GRAFT_OK;
}

double scalar_of(const graft_argument& argument) {
  if (argument.dtype == GRAFT_FLOAT32) {
    float value;
    std::memcpy(&value, &argument.value, sizeof value);
    return value;
  }
  if (argument.dtype == GRAFT_FLOAT64) {
    double value;
    std::memcpy(&value, &argument.value, sizeof value);
    return value;
  }
  return static_cast<double>(static_cast<int64_t>(argument.value));
}

// The command does nothing and counts as done; the next wait for its stream is told.
graft_status fail_late(Stream& stream, uint32_t tag, const std::string& operation) {
  const std::lock_guard lock(stream.mutex);
  stream.failed = GRAFT_LAUNCH_FAILED;
  stream.tag = tag;
  stream.text = "the unit of " + operation + " stopped";
  return GRAFT_OK;
}

graft_status operation_execute(graft_stream stream, graft_plan given, const graft_launch* launch) {
  static const bool drops = std::getenv("FIXED_FUNCTION_DROP") != nullptr;
  if (drops) return GRAFT_OK;
  const auto& plan = *reinterpret_cast<const chip::Plan*>(given);
  const std::string& name = plan.operation->name;
  if (named("FIXED_FUNCTION_REFUSE", name)) return GRAFT_UNSUPPORTED;
  if (named("FIXED_FUNCTION_FAIL_LATE", name)) {
    return fail_late(stream_of(stream), launch->tag, name);
  }
  chip::Run run{plan, {}, {}};
  const graft_argument* next = launch->arguments;
  for (const graft_tensor& tensor : plan.tensors) {
    run.tensors.push_back({&tensor, reinterpret_cast<char*>(next++->value)});
  }
  for (size_t i = 0; i < plan.scalars.size(); ++i) run.scalars.push_back(scalar_of(*next++));
  plan.operation->run(run);
  return GRAFT_OK;
}

graft_status plan_destroy(graft_plan plan) {
  delete reinterpret_cast<chip::Plan*>(plan);
  return GRAFT_OK;
}

const graft_ops_table kOperations = {GRAFT_EXTENSION_PRELUDE(GRAFT_OPS_SLOTS), operation_known,
                                     operation_plan, operation_execute, plan_destroy};

graft_status extension(const char* name, uint32_t version, const void** out_table) {
  if (std::strcmp(name, "graft.ops") != 0 || version != 1) return GRAFT_NOT_FOUND;
  *out_table = &kOperations;
  return GRAFT_OK;
}

}  // namespace

const chip::Operation* chip::find(const std::string& name) {
  static const auto all = [] {
    std::map<std::string, Operation> made;
    for (const auto& family : {elementwise(), moves(), products(), norms(), networks()}) {
      for (const Operation& one : family) made.emplace(one.name, one);
    }
    return made;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

int64_t chip::Tensor::count() const {
  int64_t count = 1;
  for (uint32_t d = 0; d < layout->rank; ++d) count *= layout->sizes[d];
  return count;
}

int64_t chip::Tensor::place(int64_t at) const {
  int64_t place = 0;
  for (uint32_t d = layout->rank; d-- > 0;) {
    place += at % layout->sizes[d] * layout->strides[d];
    at /= layout->sizes[d];
  }
  return place;
}

void chip::parallel(int64_t count, void (*each)(void*, int64_t, int64_t), void* context) {
  const int64_t parts = std::min<int64_t>(std::thread::hardware_concurrency(), count);
  std::vector<std::thread> threads;
  for (int64_t part = 1; part < parts; ++part) {
    threads.emplace_back(each, context, count * part / parts, count * (part + 1) / parts);
  }
  each(context, 0, parts > 1 ? count / parts : count);
  for (std::thread& thread : threads) thread.join();
}

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  static const graft_driver_table mine = [] {
    graft_driver_table made = {GRAFT_PRELUDE("fixed_function")};
    made.extension = extension;
    made.device_count = device_count, made.device_properties = device_properties;
    made.device_open = device_open, made.device_close = device_close;
    made.memory_allocate = memory_allocate, made.memory_free = memory_free;
    made.stream_create = stream_create, made.stream_destroy = stream_destroy;
    made.stream_synchronize = stream_synchronize, made.stream_error = stream_error;
    made.copy = copy, made.fill = fill;
    made.event_create = event_create, made.event_destroy = event_end;
    made.event_record = event_record, made.event_query = event_end;
    return made;
  }();
  return graft_driver_fill(table, &mine);
}
