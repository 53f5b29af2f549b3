// tests/vendor/graph_chip/driver.cpp: a chip without a kernel compiler: memory, copies, and a
// compiler of graphs.
//
// Everything runs at the call. GRAPH_CHIP_MODE makes it fail in one way: see the names below.
// GRAPH_CHIP_LOG names a file that gets a line for each graph that is compiled, loaded or run;
// GRAPH_CHIP_BUILD is the build that blobs name; GRAPH_CHIP_LEAVES a part of the names of operators
// that the compiler does not take.
#include "graft/driver.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "executable.h"
#include "graft/extensions.h"

struct graft_device_s {};
struct graft_stream_s {
  graft_status late = GRAFT_OK;
  uint32_t late_tag = 0;
};
struct graft_event_s {
  std::chrono::steady_clock::time_point at;
};
struct graft_executable_s {
  chip::Executable graph;
};

namespace {

constexpr uint64_t kAlignment = 256, kMemoryBytes = 1ull << 32;

graft_device_s the_device;
thread_local std::string last;

bool mode(const char* name) {
  const char* wanted = std::getenv("GRAPH_CHIP_MODE");
  return wanted != nullptr && std::strcmp(wanted, name) == 0;
}

graft_status fail(graft_status status, const std::string& text) {
  last = text;
  return status;
}

void log(const char* what, const std::string& graph) {
  if (const char* path = std::getenv("GRAPH_CHIP_LOG")) {
    std::ofstream(path, std::ios::app) << what << " " << graph << "\n";
  }
}

std::string build() {
  const char* number = std::getenv("GRAPH_CHIP_BUILD");
  return std::string("graph chip, build ") + (number == nullptr ? "1" : number) + "\n";
}

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
  mine.memory_bytes = kMemoryBytes;
  mine.allocation_alignment = kAlignment;
  std::strcpy(mine.name, "Graph chip");
  std::strcpy(mine.vendor, "Graph works");
  std::memcpy(properties, &mine, mine.struct_size);
  return GRAFT_OK;
}

graft_status device_open(uint32_t ordinal, graft_device* out_device) {
  if (ordinal != 0) return GRAFT_NOT_FOUND;
  *out_device = &the_device;
  return GRAFT_OK;
}
graft_status device_close(graft_device) { return GRAFT_OK; }

// Of bytes that are NaN as float32.
graft_status memory_allocate(graft_device, uint64_t bytes, graft_address* out) {
  const uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* pointer = bytes <= kMemoryBytes ? std::aligned_alloc(kAlignment, rounded) : nullptr;
  if (pointer == nullptr) return fail(GRAFT_OUT_OF_MEMORY, "the chip's memory is full");
  std::memset(pointer, 0xff, rounded);
  *out = reinterpret_cast<uint64_t>(pointer);
  return GRAFT_OK;
}
graft_status memory_free(graft_device, graft_address address) {
  std::free(reinterpret_cast<void*>(address));
  return GRAFT_OK;
}

graft_status stream_create(graft_device, int32_t, graft_stream* out) {
  *out = new graft_stream_s;
  return GRAFT_OK;
}
graft_status stream_destroy(graft_stream stream) {
  delete stream;
  return GRAFT_OK;
}
graft_status stream_synchronize(graft_stream stream) {
  const graft_status status = std::exchange(stream->late, GRAFT_OK);
  return status == GRAFT_OK ? status : fail(status, "the chip stopped in the middle of a graph");
}
graft_status stream_error(graft_stream stream, uint32_t* out_tag, char* text, size_t capacity) {
  *out_tag = stream->late_tag;
  std::strncpy(text, "the chip stopped in the middle of a graph", capacity - 1);
  text[capacity - 1] = '\0';
  return GRAFT_OK;
}
graft_status copy(graft_stream, uint64_t to, uint64_t from, uint64_t bytes, uint32_t, uint32_t) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return GRAFT_OK;
}
graft_status fill(graft_stream, graft_address to, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, uint32_t) {
  const bool power = pattern_bytes != 0 && (pattern_bytes & (pattern_bytes - 1)) == 0;
  if (!power || pattern_bytes > 16) return fail(GRAFT_INVALID_ARGUMENT, "no such pattern");
  for (uint64_t done = 0; done + pattern_bytes <= bytes; done += pattern_bytes) {
    std::memcpy(reinterpret_cast<char*>(to) + done, pattern, pattern_bytes);
  }
  return GRAFT_OK;
}

graft_status event_create(graft_device, uint32_t, graft_event* out) {
  *out = new graft_event_s;
  return GRAFT_OK;
}
graft_status event_destroy(graft_event event) {
  delete event;
  return GRAFT_OK;
}
graft_status event_record(graft_event event, graft_stream) {
  event->at = std::chrono::steady_clock::now();
  return GRAFT_OK;
}
graft_status event_elapsed(graft_event start, graft_event end, int64_t* out_ns) {
  *out_ns = (end->at - start->at) / std::chrono::nanoseconds(1);
  return GRAFT_OK;
}
graft_status event_query(graft_event) { return GRAFT_OK; }

graft_status last_message(char* text, size_t capacity) {
  std::strncpy(text, last.c_str(), capacity - 1);
  text[capacity - 1] = '\0';
  return GRAFT_OK;
}

graft_status fingerprint(graft_device, graft_sink text) {
  constexpr char kText[] = "graph chip";
  text.write(text.context, kText, sizeof kText - 1);
  return GRAFT_OK;
}

void write(const graft_sink& sink, const std::string& text) {
  sink.write(sink.context, text.data(), text.size());
}

graft_status graph_offer(graft_device, const char* text, size_t bytes, graft_sink answer) try {
  if (mode("nonsense")) return write(answer, "%no_such_node\n"), GRAFT_OK;
  if (mode("not_utf8")) return write(answer, "\xff\xfe\n"), GRAFT_OK;
  if (mode("takes_nothing")) return GRAFT_OK;
  if (mode("takes_all")) return write(answer, "*"), GRAFT_OK;
  if (mode("offer_fails")) return fail(GRAFT_INTERNAL, "the chip's compiler fell over");
  write(answer, chip::offer(chip::parse(std::string(text, bytes))));
  return GRAFT_OK;
} catch (const std::exception& error) {
  return fail(GRAFT_INTERNAL, error.what());
}

graft_status graph_compile(graft_device, const char* text, size_t bytes, graft_sink blob) try {
  const std::string whole(text, bytes);
  const chip::Executable made(whole);
  if (mode("refuses")) return fail(GRAFT_UNSUPPORTED, "no room for it");
  if (mode("compile_fails"))
    return fail(GRAFT_COMPILE_ERROR, made.name() + ": no registers are left");
  log("compile", made.name());
  write(blob, build() + whole);
  return GRAFT_OK;
} catch (const std::exception& error) {
  return fail(GRAFT_COMPILE_ERROR, error.what());
}

graft_status executable_load(graft_device, const void* blob, size_t bytes,
                             graft_executable* out) try {
  const std::string whole(static_cast<const char*>(blob), bytes);
  const std::string mine = build();
  if (!whole.starts_with(mine)) return fail(GRAFT_INVALID_ARGUMENT, "a blob of another build");
  *out = new graft_executable_s{chip::Executable(whole.substr(mine.size()))};
  log("load", (*out)->graph.name());
  return GRAFT_OK;
} catch (const std::exception& error) {
  return fail(GRAFT_INVALID_ARGUMENT, error.what());
}

graft_status executable_needs(graft_executable executable, const int64_t* symbols, uint32_t,
                              graft_plan_needs* out_needs) try {
  out_needs->workspace_bytes = executable->graph.workspace_bytes(symbols);
  return GRAFT_OK;
} catch (const std::exception& error) {
  return fail(GRAFT_INTERNAL, error.what());
}

graft_status executable_run(graft_stream stream, graft_executable executable,
                            const graft_graph_run* run) try {
  if (mode("run_fails")) return fail(GRAFT_LAUNCH_FAILED, "the chip is too hot");
  if (mode("fails_late")) {
    stream->late = GRAFT_LAUNCH_FAILED, stream->late_tag = run->tag;
    return GRAFT_OK;
  }
  log("run", executable->graph.name());
  if (!mode("drop")) executable->graph.run(*run);
  return GRAFT_OK;
} catch (const std::exception& error) {
  return fail(GRAFT_INTERNAL, error.what());
}

graft_status executable_destroy(graft_executable executable) {
  delete executable;
  return GRAFT_OK;
}

const graft_graph_compiler_table kCompiler = {GRAFT_EXTENSION_PRELUDE(GRAFT_GRAPH_COMPILER_SLOTS),
                                              graph_offer,
                                              graph_compile,
                                              executable_load,
                                              executable_needs,
                                              executable_run,
                                              executable_destroy};

graft_status extension(const char* name, uint32_t version, const void** out_table) {
  if (std::strcmp(name, "graft.graph_compiler") != 0 || version != 1) return GRAFT_NOT_FOUND;
  *out_table = &kCompiler;
  return GRAFT_OK;
}

graft_driver_table table() {
  graft_driver_table mine{};
  mine.abi_major = GRAFT_ABI_MAJOR, mine.abi_minor = GRAFT_ABI_MINOR;
  mine.slot_count = GRAFT_SLOT_COUNT, mine.name = "graph_chip";
  mine.device_count = device_count, mine.device_properties = device_properties;
  mine.device_open = device_open, mine.device_close = device_close;
  mine.memory_allocate = memory_allocate, mine.memory_free = memory_free;
  mine.stream_create = stream_create, mine.stream_destroy = stream_destroy;
  mine.stream_synchronize = stream_synchronize, mine.stream_error = stream_error;
  mine.copy = copy, mine.fill = fill;
  mine.event_create = event_create, mine.event_destroy = event_destroy;
  mine.event_record = event_record, mine.event_query = event_query;
  mine.event_elapsed = event_elapsed;
  mine.last_message = last_message, mine.extension = extension;
  mine.toolchain_fingerprint = fingerprint;
  return mine;
}

}  // namespace

graft_status graft_driver_query(graft_driver_table* out) {
  const graft_driver_table mine = table();
  return graft_driver_fill(out, &mine);
}
