// tests/drivers/planted_bugs.cpp: the host driver, or for gpu_* the OpenCL driver, with one planted
// bug; GRAFT_BUG names it at the build.
#include <cstring>
#include <string>

#include "graft/driver.h"
#include "tests/drivers/base_driver.h"
#include "tests/drivers/extension_bugs.h"

#define GRAFT_STRING(x) #x
#define GRAFT_NAME_OF(x) GRAFT_STRING(x)

namespace {

// Each bug: the function that replaces a slot, and the case that must find it.
// BUG(name, slot, "case of graft-driver-check")
#define GRAFT_BUGS(BUG)                                                                            \
  BUG(misaligned, memory_allocate, "memory: addresses are aligned as the properties say")          \
  BUG(overlapping, memory_allocate, "memory: allocations do not overlap")                          \
  BUG(leaking, memory_free, "memory: what is freed can be had again")                              \
  BUG(sticky_failure, memory_allocate,                                                             \
      "memory: an impossible size fails and leaves the device usable")                             \
  BUG(overrun, copy, "copy: writes its range and nothing beside it")                               \
  BUG(narrow_fill, fill, "fill: patterns of 1, 2, 4, 8 and 16 bytes")                              \
  BUG(early_event, event_query, "event: busy before its mark, done after")                         \
  BUG(impatient, stream_synchronize, "stream: synchronize waits for all commands")                 \
  BUG(unordered, stream_wait_event, "stream: stream_wait_event orders two streams")                \
  BUG(greedy_struct, device_properties, "devices: properties keep to struct_size")                 \
  BUG(crashing, device_open, "devices: an ordinal past the last one is refused")                   \
  BUG(hanging, event_synchronize, "event: waiting for one never recorded returns")                 \
  BUG(lost_item, kernel_launch, "kernel: every work-item runs once")                               \
  BUG(swallowed_error, stream_synchronize, "late error: synchronize returns it once")              \
  BUG(one_handle, stream_native_handle, "stream: two streams have two native handles")             \
  BUG(throwing, host_callback, "stream: host_callback runs once, in order")                        \
  BUG(greatest_sum, extension, "graft.collectives: reductions of two ranks")                       \
  BUG(blas_ceiling, extension, "graft.blas: each epilogue is as PyTorch computes it")              \
  BUG(blas_lost_plan, extension, "graft.blas: a plan ends and its executions go on")               \
  BUG(first_bases, extension,                                                                      \
      "graft.graphs: commands run in order, at the addresses of each launch")                      \
  BUG(ops_wrong_sum, extension, "graft.ops: what it takes is computed right")                      \
  BUG(ops_any_name, extension, "graft.ops: an unknown operator is UNSUPPORTED")                    \
  BUG(short_graphs, extension, "graft.graphs: the table has every required slot")                  \
  BUG(endless_wait, stream_synchronize_within, "stream: synchronize_within ends in time")          \
  BUG(hasty_wait, event_synchronize_within, "event: synchronize_within ends in time")              \
  BUG(degrees, device_sensor, "sensors: values are in their units, and none is made up")           \
  BUG(nameless, device_identity, "identity: it stays the same, and its text ends")                 \
  BUG(greedy_identity, device_identity,                                                            \
      "identity: it keeps to struct_size, and to the devices there are")                           \
  BUG(half_reset, device_reset, "reset: a device that was closed and reset works")                 \
  BUG(resets_all, device_reset, "reset: an ordinal past the last one is refused")                  \
  BUG(everywhere, device_link, "links: their kinds are known, and the same in both directions")    \
  BUG(unwrapped, stream_wrap, "stream: stream_wrap takes a stream and leaves it its owner")        \
  BUG(wide_rows, copy_strided, "copy: copy_strided moves its rows and nothing beside them")        \
  BUG(unmaps_all, memory_unmap, "mapping: neighbours are one allocation, and parts can go")        \
  BUG(keeps_memory, memory_unmap, "mapping: what is unmapped can be had again")                    \
  BUG(private_import, memory_import, "export: another process sees the bytes and changes them")    \
  BUG(mixed_programs, kernel_find, "kernel: programs with kernels of one name are told apart")     \
  BUG(unloads_all, program_unload, "kernel: unloading a program leaves the others")                \
  BUG(mistyped_dialect, device_properties, "properties: they do not contradict each other")        \
  BUG(shifted_dtypes, device_properties, "properties: they do not contradict each other")          \
  BUG(moody, device_properties, "properties: they are the same at each call")                      \
  BUG(boastful, device_properties, "properties: half of memory_bytes can be allocated")            \
  BUG(modest, device_properties, "properties: more than memory_bytes cannot be allocated")         \
  BUG(long_pieces, device_properties, "properties: one allocation can have max_allocation_bytes")  \
  BUG(coarse, device_properties, "memory: addresses are aligned as the properties say")            \
  BUG(narrow_double, program_compile,                                                              \
      "properties: GRAFT_FEATURE_FLOAT64: a kernel computes in float64")                           \
  BUG(narrow_atomics, program_compile,                                                             \
      "properties: GRAFT_FEATURE_INT64_ATOMICS: 64 bits are added at once")                        \
  BUG(few_arguments, kernel_launch, "properties: a launch of max_arguments arguments runs")        \
  BUG(one_priority, stream_create, "stream: every priority of the properties is accepted")         \
  BUG(gpu_wide_groups, device_properties, "properties: a group of max_group_size work-items runs") \
  BUG(gpu_wide_memory, device_properties,                                                          \
      "properties: a group gets local_memory_bytes of local memory")                               \
  BUG(gpu_deaf_shuffle, program_compile,                                                           \
      "properties: GRAFT_FEATURE_SHUFFLES: work-items of a sub-group exchange values")

graft_status misaligned(graft_device device, uint64_t bytes, graft_address* out) {
  const graft_status status = base.memory_allocate(device, bytes + 8, out);
  if (status == GRAFT_OK) *out += 8;
  return status;
}

graft_status overlapping(graft_device device, uint64_t bytes, graft_address* out) {
  static graft_address before = 0;
  static uint64_t room = 0;
  if (before != 0 && bytes < room) {
    *out = before;
    return GRAFT_OK;
  }
  const graft_status status = base.memory_allocate(device, bytes, out);
  if (status == GRAFT_OK) {
    before = *out;
    room = bytes;
  }
  return status;
}

graft_status leaking(graft_device, graft_address) { return GRAFT_OK; }

graft_status sticky_failure(graft_device device, uint64_t bytes, graft_address* out) {
  static bool failed = false;
  if (failed) return GRAFT_OUT_OF_MEMORY;
  const graft_status status = base.memory_allocate(device, bytes, out);
  failed = status != GRAFT_OK;
  return status;
}

graft_status overrun(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
                     uint32_t tag) {
  return base.copy(stream, to, from,
                   kind == GRAFT_HOST_TO_DEVICE && bytes % 2 == 1 ? bytes + 1 : bytes, kind, tag);
}

graft_status narrow_fill(graft_stream stream, graft_address to, uint64_t bytes, const void* pattern,
                         uint32_t pattern_bytes, uint32_t tag) {
  return base.fill(stream, to, bytes, pattern, pattern_bytes == 16 ? 8 : pattern_bytes, tag);
}

graft_status early_event(graft_event) { return GRAFT_OK; }

graft_status one_handle(graft_stream, uint64_t* out_handle) {
  *out_handle = 1;
  return GRAFT_OK;
}

graft_status impatient(graft_stream) { return GRAFT_OK; }

graft_status unordered(graft_stream, graft_event) { return GRAFT_OK; }

graft_status greedy_struct(uint32_t ordinal, graft_device_properties* properties) {
  const uint32_t known = properties->struct_size;
  properties->struct_size = sizeof *properties;
  const graft_status status = base.device_properties(ordinal, properties);
  properties->struct_size = known;
  return status;
}

graft_status crashing(uint32_t ordinal, graft_device* out_device) {
  volatile int* nowhere = nullptr;
  if (ordinal != 0) *nowhere = 1;
  return base.device_open(ordinal, out_device);
}

graft_status hanging(graft_event event) {
  while (base.event_query(event) == GRAFT_OK) {
  }
  return GRAFT_OK;
}

graft_status lost_item(graft_stream stream, graft_kernel kernel, const graft_launch* launch) {
  graft_launch less = *launch;
  if (less.grid[0] > 2) --less.grid[0];
  return base.kernel_launch(stream, kernel, &less);
}

graft_status swallowed_error(graft_stream stream) {
  base.stream_synchronize(stream);
  return GRAFT_OK;
}

graft_status throwing(graft_stream, void (*)(void*), void*) {
  throw std::string("a C++ exception left the driver");
}

graft_status private_import(graft_device device, const uint8_t*, graft_address* out_address) {
  return base.memory_allocate(device, 1 << 20, out_address);
}

graft_status endless_wait(graft_stream stream, uint64_t) { return base.stream_synchronize(stream); }

graft_status hasty_wait(graft_event event, uint64_t timeout_ns) {
  const graft_status status = base.event_synchronize_within(event, timeout_ns);
  return status == GRAFT_BUSY ? GRAFT_OK : status;
}

// Millionths of a degree. The host driver has no sensors.
graft_status degrees(graft_device, uint32_t sensor, int64_t* out_value) {
  if (sensor != GRAFT_SENSOR_TEMPERATURE) return GRAFT_NOT_FOUND;
  *out_value = 45'000'000;
  return GRAFT_OK;
}

graft_status nameless(uint32_t ordinal, graft_device_identity* identity) {
  const graft_status status = base.device_identity(ordinal, identity);
  if (status == GRAFT_OK) std::memset(identity->uuid, 0, sizeof identity->uuid);
  return status;
}

graft_status greedy_identity(uint32_t ordinal, graft_device_identity* identity) {
  const uint32_t known = identity->struct_size;
  identity->struct_size = sizeof *identity;
  const graft_status status = base.device_identity(ordinal, identity);
  identity->struct_size = known;
  return status;
}

graft_status everywhere(uint32_t, uint32_t, graft_device_link* link) {
  link->kind = GRAFT_LINK_BUS;
  return GRAFT_OK;
}

// Shares the handle without a second owner.
graft_status unwrapped(graft_device, uint64_t native_handle, graft_stream* out) {
  if (native_handle == 0) return GRAFT_INVALID_ARGUMENT;
  *out = reinterpret_cast<graft_stream>(native_handle);
  return GRAFT_OK;
}

graft_status wide_rows(graft_stream stream, const graft_strided_copy* copy, uint32_t tag) {
  graft_strided_copy wide = *copy;
  if (wide.kind == GRAFT_DEVICE_TO_HOST) wide.row_bytes += 8;
  return base.copy_strided(stream, &wide, tag);
}

graft_status unmaps_all(graft_device device, graft_address address, uint64_t bytes) {
  const graft_status status = base.memory_unmap(device, address, bytes);
  if (status == GRAFT_OK) base.memory_unmap(device, address + bytes, bytes);
  return status;
}

graft_status keeps_memory(graft_device device, graft_address address, uint64_t bytes) {
  graft_address other = 0;
  const graft_status status = base.memory_unmap(device, address, bytes);
  return status == GRAFT_OK ? base.memory_allocate(device, bytes, &other) : status;
}

bool was_reset = false;

graft_status half_reset(uint32_t ordinal) {
  was_reset = true;
  return base.device_reset(ordinal);
}

graft_status stream_before_reset(graft_device device, int32_t priority, graft_stream* out) {
  return was_reset ? GRAFT_DEVICE_LOST : base.stream_create(device, priority, out);
}

graft_status resets_all(uint32_t) { return GRAFT_OK; }

graft_status mixed_programs(graft_device device, graft_program program, const char* name,
                            graft_kernel* out) {
  static graft_program first = program;
  return base.kernel_find(device, program == nullptr ? nullptr : first, name, out);
}

bool unloaded = false;

graft_status unloads_all(graft_program program) {
  unloaded = true;
  return base.program_unload(program);
}

graft_status launch_until_unloaded(graft_stream stream, graft_kernel kernel,
                                   const graft_launch* launch) {
  return unloaded ? GRAFT_NOT_FOUND : base.kernel_launch(stream, kernel, launch);
}

// The base's properties, changed for a caller that knows them all.
template <class Change>
graft_status with(uint32_t ordinal, graft_device_properties* properties, Change change) {
  const graft_status status = base.device_properties(ordinal, properties);
  if (status == GRAFT_OK && properties->struct_size >= sizeof *properties) change(*properties);
  return status;
}

graft_status mistyped_dialect(uint32_t ordinal, graft_device_properties* properties) {
  return with(ordinal, properties, [](auto& p) { std::strcpy(p.dialect, "C"); });
}

graft_status shifted_dtypes(uint32_t ordinal, graft_device_properties* properties) {
  return with(ordinal, properties, [](auto& p) { p.dtypes = 1u << 31 | 1u << GRAFT_FLOAT32; });
}

graft_status moody(uint32_t ordinal, graft_device_properties* properties) {
  static uint32_t calls = 0;
  return with(ordinal, properties, [](auto& p) { p.compute_units = ++calls; });
}

graft_status boastful(uint32_t ordinal, graft_device_properties* properties) {
  return with(ordinal, properties, [](auto& p) { p.memory_bytes *= 4; });
}

graft_status modest(uint32_t ordinal, graft_device_properties* properties) {
  return with(ordinal, properties, [](auto& p) { p.memory_bytes /= 4; });
}

graft_status long_pieces(uint32_t ordinal, graft_device_properties* properties) {
  return with(ordinal, properties, [](auto& p) {
    p.memory_bytes *= 4;
    p.max_allocation_bytes = p.memory_bytes / 2;
  });
}

graft_status coarse(uint32_t ordinal, graft_device_properties* properties) {
  return with(ordinal, properties, [](auto& p) { p.allocation_alignment *= 1024; });
}

graft_status gpu_wide_groups(uint32_t ordinal, graft_device_properties* properties) {
  // The OpenCL driver states fewer work-items than some devices run; no device runs this many.
  return with(ordinal, properties, [](auto& p) { p.max_group_size *= 256; });
}

graft_status gpu_wide_memory(uint32_t ordinal, graft_device_properties* properties) {
  return with(ordinal, properties, [](auto& p) { p.local_memory_bytes *= 2; });
}

graft_status claim_shuffles(uint32_t ordinal, graft_device_properties* properties) {
  return with(ordinal, properties, [](auto& p) { p.features |= GRAFT_FEATURE_SHUFFLES; });
}

graft_status compile_instead(graft_device device, std::string source, const std::string& word,
                             const std::string& other, const char* options, graft_sink blob) {
  for (size_t at = 0; (at = source.find(word, at)) != std::string::npos; at += other.size()) {
    source.replace(at, word.size(), other);
  }
  return base.program_compile(device, source.data(), source.size(), options, blob);
}

graft_status narrow_double(graft_device device, const char* source, size_t bytes,
                           const char* options, graft_sink blob) {
  return compile_instead(device, {source, bytes}, "1.0 / (double)", "1.0f / (float)", options,
                         blob);
}

graft_status narrow_atomics(graft_device device, const char* source, size_t bytes,
                            const char* options, graft_sink blob) {
  return compile_instead(device, {source, bytes}, "__atomic_fetch_add(p,",
                         "__atomic_fetch_add((int*)(p),", options, blob);
}

graft_status gpu_deaf_shuffle(graft_device device, const char* source, size_t bytes,
                              const char* options, graft_sink blob) {
  return compile_instead(device, {source, bytes}, "SHUFFLE((int)i * 3 + n, 1)", "(int)i * 3 + n",
                         options, blob);
}

graft_status few_arguments(graft_stream stream, graft_kernel kernel, const graft_launch* launch) {
  if (launch->argument_count > 64) return GRAFT_INVALID_ARGUMENT;
  return base.kernel_launch(stream, kernel, launch);
}

graft_status one_priority(graft_device device, int32_t priority, graft_stream* out) {
  return priority == 0 ? base.stream_create(device, priority, out) : GRAFT_INVALID_ARGUMENT;
}

struct Bug {
  const char* name;
  const char* found_by;
};
#define GRAFT_ROW(bug, slot, found_by) {#bug, found_by},
constexpr Bug kBugs[] = {GRAFT_BUGS(GRAFT_ROW)};

}  // namespace

// The case of graft-driver-check that must find this library's bug.
extern "C" GRAFT_DRIVER_EXPORT const char* graft_bug_found_by() {
  for (const Bug& bug : kBugs) {
    if (std::strcmp(bug.name, GRAFT_NAME_OF(GRAFT_BUG)) == 0) return bug.found_by;
  }
  return "";
}

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  if (const graft_status status = load_base(GRAFT_BASE_DRIVER, &base); status != GRAFT_OK)
    return status;
  graft_driver_table mine = base;
  mine.name = GRAFT_NAME_OF(GRAFT_BUG);
#define GRAFT_PLANT(bug, slot, found_by) \
  if (std::strcmp(mine.name, #bug) == 0) mine.slot = bug;
  GRAFT_BUGS(GRAFT_PLANT)
  if (std::strcmp(mine.name, "gpu_deaf_shuffle") == 0) mine.device_properties = claim_shuffles;
  if (std::strcmp(mine.name, "unloads_all") == 0) mine.kernel_launch = launch_until_unloaded;
  if (std::strcmp(mine.name, "half_reset") == 0) mine.stream_create = stream_before_reset;
  return graft_driver_fill(table, &mine);
}
