// tests/drivers/tracing.cpp: another driver that writes, for each call of a slot, who called it.
//
// GRAFT_TRACED_DRIVER is the path of the driver that it stands in front of. While a trace is on, a
// call of a slot appends a line to its file: thread, extension, slot, and the calls from the slot
// outwards, each as library+offset, with tabs between. The offsets are those of symbol tables.
#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "graft/driver.h"
#include "graft/driver_table.h"
#include "graft/extensions.h"
#include "tests/drivers/base_driver.h"

namespace {

template <class Table>
Table base;

constexpr int kMostFrames = 128;
std::mutex trace_mutex;
std::FILE* trace = nullptr;  // guarded by trace_mutex

void write_call(const char* extension, const char* slot) {
  const std::lock_guard lock(trace_mutex);
  if (trace == nullptr) return;
  std::fprintf(trace, "%d\t%s\t%s", gettid(), extension, slot);
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  for (int i = 0; i < count; ++i) {
    // A return address may be the first of the next function.
    const char* const call = static_cast<char*>(frames[i]) - 1;
    Dl_info found = {};
    if (dladdr(call, &found) == 0) continue;
    std::fprintf(trace, "\t%s+%tx", found.dli_fname, call - static_cast<char*>(found.dli_fbase));
  }
  std::fputc('\n', trace);
}

template <class Table, size_t index, auto slot>
struct Traced;
template <class Table, size_t index, class... Arguments, graft_status (*Table::*slot)(Arguments...)>
struct Traced<Table, index, slot> {
  static graft_status call(Arguments... arguments) {
    constexpr const graft::TableFacts& facts = graft::table_facts<Table>;
    write_call(facts.name, facts.slots[index].name);
    return (base<Table>.*slot)(arguments...);
  }
};

#define GRAFT_TRACE_SLOT(presence, slot, parameters)                                  \
  if (constexpr size_t place = offsetof(Table, slot); mine.slot != nullptr) {         \
    mine.slot = Traced<Table, (place - prelude) / sizeof(void*), &Table::slot>::call; \
  }
#define GRAFT_TRACE_SLOTS(name, prelude_bytes, SLOTS) \
  const void* traced(graft_##name##_table& mine) {    \
    using Table = graft_##name##_table;               \
    constexpr size_t prelude = prelude_bytes;         \
    SLOTS(GRAFT_TRACE_SLOT)                           \
    return &mine;                                     \
  }
#define GRAFT_TRACE_EXTENSION_SLOTS(name, version, SLOTS) \
  GRAFT_TRACE_SLOTS(name, GRAFT_EXTENSION_PRELUDE_BYTES, SLOTS)
GRAFT_TRACE_SLOTS(driver, GRAFT_TABLE_PRELUDE_BYTES, GRAFT_DRIVER_SLOTS)
GRAFT_EXTENSIONS(GRAFT_TRACE_EXTENSION_SLOTS)

graft_status extension(const char* name, uint32_t version, const void** out_table) {
  const graft_status status = base<graft_driver_table>.extension(name, version, out_table);
  if (status != GRAFT_OK) return status;
#define GRAFT_TRACE_EXTENSION(extension, number, SLOTS)             \
  if (std::strcmp(name, "graft." #extension) == 0) {                \
    static graft_##extension##_table mine;                          \
    mine = base<graft_##extension##_table> =                        \
        *static_cast<const graft_##extension##_table*>(*out_table); \
    *out_table = traced(mine);                                      \
  }
  GRAFT_EXTENSIONS(GRAFT_TRACE_EXTENSION)
  return status;
}

}  // namespace

// Traces into a new file at path until graft_trace_stop.
extern "C" GRAFT_DRIVER_EXPORT void graft_trace_start(const char* path) {
  const std::lock_guard lock(trace_mutex);
  trace = std::fopen(path, "w");
}

extern "C" GRAFT_DRIVER_EXPORT void graft_trace_stop() {
  const std::lock_guard lock(trace_mutex);
  std::fclose(trace);
  trace = nullptr;
}

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  const char* path = std::getenv("GRAFT_TRACED_DRIVER");
  if (path == nullptr) return GRAFT_INVALID_ARGUMENT;
  graft_driver_table& from = base<graft_driver_table>;
  if (const graft_status status = load_base(path, &from); status != GRAFT_OK) return status;
  static graft_driver_table mine;
  mine = from;
  mine.name = "traced";
  traced(mine);
  if (from.extension != nullptr) mine.extension = extension;
  return graft_driver_fill(table, &mine);
}
