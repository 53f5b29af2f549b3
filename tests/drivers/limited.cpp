// tests/drivers/limited.cpp: another driver with one ability less; GRAFT_LIMIT names which.
//
// GRAFT_LIMITED_DRIVER is the path of the driver that it stands in front of; a build may define
// GRAFT_BASE_DRIVER for when it is not set. What a device in the
// field may lack, each row of GRAFT_LIMITS takes away alone, so that what fails is that row's.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "drivers/veda/facts/properties.h"
#include "graft/driver.h"
#include "graft/extensions.h"
#include "tests/drivers/base_driver.h"

namespace {

graft_driver_table base;
thread_local std::string own_message;

constexpr uint32_t kFewArguments = 8;
constexpr uint64_t kAlignment = 65536;
constexpr uint64_t kSmallMemory = uint64_t{64} << 20;

graft_status rejected(const std::string& why) {
  own_message = why;
  return GRAFT_COMPILE_ERROR;
}

graft_status reject_all(graft_device, const char*, size_t, const char*, graft_sink) {
  return rejected("limited: this compiler rejects everything");
}

// FNV-1a.
uint32_t hash_of(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char letter : text) hash = (hash ^ static_cast<uint8_t>(letter)) * 16777619u;
  return hash ^ (hash >> 16);
}

template <uint32_t half>
graft_status reject_half(graft_device device, const char* source, size_t bytes, const char* options,
                         graft_sink blob) {
  if (hash_of({source, bytes}) % 2 == half) return rejected("limited: of the rejected half");
  return base.program_compile(device, source, bytes, options, blob);
}

std::mutex allowed_mutex;
std::set<graft_kernel> allowed;  // since graft_limited_allow
std::atomic<int> allowed_most{-1};

bool allows(graft_kernel kernel) {
  if (allowed_most < 0) return true;
  const std::lock_guard lock(allowed_mutex);
  if (static_cast<int>(allowed.size()) < allowed_most) allowed.insert(kernel);
  return allowed.count(kernel) != 0;
}

graft_status launch_allowed(graft_stream stream, graft_kernel kernel, const graft_launch* launch) {
  if (allows(kernel)) return base.kernel_launch(stream, kernel, launch);
  own_message = "limited: refuses to launch this kernel now";
  return GRAFT_UNSUPPORTED;
}

graft_status launch_few(graft_stream stream, graft_kernel kernel, const graft_launch* launch) {
  if (launch->argument_count > kFewArguments) {
    own_message = "limited: a launch takes at most 8 arguments";
    return GRAFT_UNSUPPORTED;
  }
  return base.kernel_launch(stream, kernel, launch);
}

std::mutex aligned_mutex;
std::map<graft_address, graft_address> aligned;  // what Graft got, to what the base gave

graft_status allocate_aligned(graft_device device, uint64_t bytes, graft_address* out) {
  graft_address given = 0;
  const graft_status status = base.memory_allocate(device, bytes + kAlignment, &given);
  if (status != GRAFT_OK) return status;
  *out = (given + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(aligned_mutex);
  aligned[*out] = given;
  return GRAFT_OK;
}

graft_status free_aligned(graft_device device, graft_address address) {
  graft_address given = address;
  {
    const std::lock_guard lock(aligned_mutex);
    if (const auto found = aligned.find(address); found != aligned.end()) {
      given = found->second;
      aligned.erase(found);
    }
  }
  return base.memory_free(device, given);
}

std::map<graft_address, uint64_t> held;  // guarded by aligned_mutex
uint64_t held_bytes = 0;

graft_status allocate_small(graft_device device, uint64_t bytes, graft_address* out) {
  const std::lock_guard lock(aligned_mutex);
  if (bytes > kSmallMemory - held_bytes) {
    own_message = "limited: 64 MiB are all";
    return GRAFT_OUT_OF_MEMORY;
  }
  const graft_status status = base.memory_allocate(device, bytes, out);
  if (status == GRAFT_OK) held_bytes += held[*out] = bytes;
  return status;
}

graft_status free_small(graft_device device, graft_address address) {
  const std::lock_guard lock(aligned_mutex);
  held_bytes -= held[address];
  held.erase(address);
  return base.memory_free(device, address);
}

void nothing(graft_driver_table&, graft_device_properties*) {}

// A test switches it, within a process.
void refuse_at_times(graft_driver_table& table, graft_device_properties*) {
  table.kernel_launch = launch_allowed;
  table.extension = nullptr;
}

void keep_required(graft_driver_table& table, graft_device_properties* properties) {
  if (properties != nullptr) {
    properties->dialect[0] = '\0';
    return;
  }
#define GRAFT_REQUIRED_SLOT(name)
#define GRAFT_OPTIONAL_SLOT(name) table.name = nullptr;
#define GRAFT_LEAVE_OUT(presence, name, parameters) GRAFT_##presence##_SLOT(name)
  GRAFT_DRIVER_SLOTS(GRAFT_LEAVE_OUT)
}

void hide_memory(graft_driver_table& table, graft_device_properties*) {
  table.memory_host_view = nullptr;
}

graft_status find_compiled(graft_device device, graft_program program, const char* name,
                           graft_kernel* out) {
  if (program == nullptr) return GRAFT_NOT_FOUND;
  return base.kernel_find(device, program, name, out);
}

// Without the driver's pack, graft.programs and kept blobs, so that each program meets the
// compiler.
void compile_by(graft_driver_table& table, decltype(base.program_compile) compile) {
  table.program_compile = compile;
  table.kernel_find = find_compiled;
  table.toolchain_fingerprint = nullptr;
}

void compile_nothing(graft_driver_table& table, graft_device_properties*) {
  compile_by(table, reject_all);
}
template <uint32_t half>
void compile_half(graft_driver_table& table, graft_device_properties*) {
  compile_by(table, reject_half<half>);
}

void launch_eight(graft_driver_table& table, graft_device_properties* properties) {
  if (properties != nullptr) properties->max_arguments = kFewArguments;
  table.kernel_launch = launch_few;
}

void launch_eight_unsaid(graft_driver_table& table, graft_device_properties*) {
  table.kernel_launch = launch_few;
}

template <uint32_t feature>
void lack(graft_driver_table&, graft_device_properties* properties) {
  if (properties != nullptr) properties->features &= ~feature;
}

void know_float32(graft_driver_table&, graft_device_properties* properties) {
  if (properties == nullptr) return;
  properties->dtypes = 1u << GRAFT_BOOL | 1u << GRAFT_UINT8 | 1u << GRAFT_INT32 |
                       1u << GRAFT_INT64 | 1u << GRAFT_FLOAT32;
}

void align_pages(graft_driver_table& table, graft_device_properties* properties) {
  if (properties != nullptr) properties->allocation_alignment = kAlignment;
  table.memory_allocate = allocate_aligned;
  table.memory_free = free_aligned;
  table.memory_export = nullptr;
  table.memory_import = nullptr;
  table.memory_release = nullptr;
}

void hold_little(graft_driver_table& table, graft_device_properties* properties) {
  if (properties != nullptr) properties->memory_bytes = kSmallMemory;
  table.memory_allocate = allocate_small;
  table.memory_free = free_small;
  table.memory_info = nullptr;
}

// The base's kernels are then those of a Vector Engine, which needs no such processor.
void be_vector_engine(graft_driver_table& table, graft_device_properties* properties) {
  if (properties != nullptr) {
    graft::veda::DeviceFacts facts;
    facts.memory_bytes = properties->memory_bytes;
    graft::veda::describe(facts, properties);
    return;
  }
  table.extension = nullptr;
  table.memory_host_view = nullptr;
}

// Each table ends before its last slot, so Graft refuses it.
graft_status torn_extension(const char* name, uint32_t version, const void** out_table) {
  const graft_status status = base.extension(name, version, out_table);
  if (status != GRAFT_OK) return status;
#define GRAFT_TEAR(extension, number, SLOTS)                           \
  if (std::strcmp(name, "graft." #extension) == 0) {                   \
    static graft_##extension##_table torn;                             \
    torn = *static_cast<const graft_##extension##_table*>(*out_table); \
    --torn.slot_count;                                                 \
    *out_table = &torn;                                                \
  }
  GRAFT_EXTENSIONS(GRAFT_TEAR)
  return status;
}

void tear_tables(graft_driver_table& table, graft_device_properties*) {
  if (table.extension != nullptr) table.extension = torn_extension;
}

std::atomic<int> planned{0};

template <graft_status answer>
graft_status know(graft_device, const char*) {
  return answer;
}

graft_status plan_none(graft_device, const graft_operation*, graft_plan_needs*, graft_plan*) {
  ++planned;
  own_message = "limited: takes no call of an operator";
  return GRAFT_UNSUPPORTED;
}

graft_status execute_none(graft_stream, graft_plan, const graft_launch*) { return GRAFT_INTERNAL; }
graft_status destroy_none(graft_plan) { return GRAFT_INTERNAL; }

template <graft_status known>
graft_status no_operations(const char* name, uint32_t version, const void** out_table) {
  static const graft_ops_table kOperations = {GRAFT_EXTENSION_PRELUDE(GRAFT_OPS_SLOTS), know<known>,
                                              plan_none, execute_none, destroy_none};
  if (std::strcmp(name, "graft.ops") != 0) return base.extension(name, version, out_table);
  *out_table = &kOperations;
  return GRAFT_OK;
}

// Graft describes every call to it, and refuses to describe one otherwise than its vocabulary says.
template <graft_status known>
void take_no_call(graft_driver_table& table, graft_device_properties*) {
  if (table.extension != nullptr) table.extension = no_operations<known>;
}

// LIMIT(name, function, what is left): the function changes the table, and the properties where it
// is given them. limits.py reads the rows.
#define GRAFT_LIMITS(LIMIT)                                                                     \
  LIMIT(none, nothing, "everything: the driver in front of which this one stands")              \
  LIMIT(memory_only, keep_required, "the required slots: memory, copies, streams, events")      \
  LIMIT(no_host_view, hide_memory, "all but memory_host_view")                                  \
  LIMIT(rejects_all, compile_nothing, "a compiler that rejects every program")                  \
  LIMIT(rejects_even, compile_half<0>, "a compiler that rejects one half of the programs")      \
  LIMIT(rejects_odd, compile_half<1>, "a compiler that rejects the other half")                 \
  LIMIT(eight_arguments, launch_eight, "launches with at most 8 arguments, as it states")       \
  LIMIT(eight_unsaid, launch_eight_unsaid, "launches with at most 8 arguments, unsaid")         \
  LIMIT(at_times, refuse_at_times, "no library, and what graft_limited_allow lets run")         \
  LIMIT(no_float64, lack<GRAFT_FEATURE_FLOAT64>, "kernels without float64")                     \
  LIMIT(no_int64_atomics, lack<GRAFT_FEATURE_INT64_ATOMICS>, "kernels without such atomics")    \
  LIMIT(no_shuffles, lack<GRAFT_FEATURE_SHUFFLES>, "kernels without sub-groups")                \
  LIMIT(few_dtypes, know_float32, "bool, uint8, int32, int64 and float32")                      \
  LIMIT(pages, align_pages, "memory in pages of 64 KiB")                                        \
  LIMIT(small, hold_little, "64 MiB of memory")                                                 \
  LIMIT(torn_tables, tear_tables, "tables of extensions that end too early")                    \
  LIMIT(plans_none, take_no_call<GRAFT_OK>, "every operator known to graft.ops, no call taken") \
  LIMIT(knows_none, take_no_call<GRAFT_UNSUPPORTED>, "graft.ops, and no operator known to it")  \
  LIMIT(vector_engine, be_vector_engine, "a Vector Engine's properties, and no library")

struct Limit {
  const char* name;
  void (*apply)(graft_driver_table&, graft_device_properties*);
};
#define GRAFT_ROW(name, apply, left) {#name, apply},
constexpr Limit kLimits[] = {GRAFT_LIMITS(GRAFT_ROW)};

const Limit* chosen() {
  const char* name = std::getenv("GRAFT_LIMIT");
  if (name == nullptr) return kLimits;
  for (const Limit& limit : kLimits) {
    if (std::strcmp(limit.name, name) == 0) return &limit;
  }
  return nullptr;
}

graft_status properties_of(uint32_t ordinal, graft_device_properties* properties) {
  const uint32_t known = properties->struct_size;
  graft_device_properties mine = {};
  mine.struct_size = sizeof mine;
  const graft_status status = base.device_properties(ordinal, &mine);
  if (status != GRAFT_OK) return status;
  graft_driver_table unused = base;
  chosen()->apply(unused, &mine);
  mine.struct_size = known;
  std::memcpy(properties, &mine, std::min<size_t>(known, sizeof mine));
  return GRAFT_OK;
}

graft_status message(char* out_text, size_t capacity) {
  if (own_message.empty()) return base.last_message(out_text, capacity);
  if (capacity == 0) return GRAFT_OK;
  const size_t bytes = own_message.copy(out_text, capacity - 1);
  out_text[bytes] = '\0';
  own_message.clear();
  return GRAFT_OK;
}

// Its programs would pass by the compiler that rejects.
graft_status extension(const char* name, uint32_t version, const void** out_table) {
  if (std::strcmp(name, "graft.programs") == 0) return GRAFT_NOT_FOUND;
  return base.extension(name, version, out_table);
}

}  // namespace

// at_times: the first so many kernels that are launched from now on run, each as often as it is
// launched, and all others are refused; negative: all run.
extern "C" GRAFT_DRIVER_EXPORT void graft_limited_allow(int kernels) {
  const std::lock_guard lock(allowed_mutex);
  allowed.clear();
  allowed_most = kernels;
}

// How often Graft asked for the plan of an operator.
extern "C" GRAFT_DRIVER_EXPORT int graft_limited_planned() { return planned; }

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  const char* path = std::getenv("GRAFT_LIMITED_DRIVER");
#ifdef GRAFT_BASE_DRIVER
  if (path == nullptr) path = GRAFT_BASE_DRIVER;
#endif
  if (path == nullptr || chosen() == nullptr) return GRAFT_INVALID_ARGUMENT;
  if (const graft_status status = load_base(path, &base); status != GRAFT_OK) return status;
  static graft_driver_table mine;
  mine = base;
  mine.name = "limited";
  mine.device_properties = properties_of;
  if (base.last_message != nullptr) mine.last_message = message;
  if (base.extension != nullptr) mine.extension = extension;
  chosen()->apply(mine, nullptr);
  return graft_driver_fill(table, &mine);
}
