// drivers/opencl/driver.cpp: the tables of the OpenCL driver.
#include "graft/driver.h"

#include "graft/driver_slot.h"
#include "kernel/kernel.h"
#include "kernel/program.h"
#include "memory/transfer.h"
#include "platform/device.h"
#include "stream/event.h"
#include "stream/graph.h"
#include "stream/stream.h"
#include "stream/trace.h"

namespace graft::opencl {
namespace {

constexpr auto kProfiler = extension_of<graft_profiler_table, ProfilerSlots>();
constexpr auto kPrograms = extension_of<graft_programs_table, ProgramSlots>();
constexpr auto kGraphs = extension_of<graft_graphs_table, GraphSlots>();

struct Slots : DeviceSlots, StreamSlots, EventSlots, TransferSlots, ProgramSlots, KernelSlots {
  static graft_status extension(const char* name, uint32_t version, const void** out_table) {
    return find_extension(name, version, out_table, kProfiler, kPrograms, kGraphs);
  }
};

constexpr graft_driver_table kTable = table_of<Slots>("opencl");

}  // namespace
}  // namespace graft::opencl

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &graft::opencl::kTable);
}
