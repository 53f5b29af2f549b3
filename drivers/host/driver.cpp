// drivers/host/driver.cpp: the tables of the host driver, a simulated accelerator on the CPU.
#include "graft/driver.h"

#include "collectives/collectives.h"
#include "device.h"
#include "graft/driver_slot.h"
#include "kernel/kernel.h"
#include "kernel/library.h"
#include "kernel/program.h"
#include "memory/handle.h"
#include "memory/mapping.h"
#include "memory/transfer.h"
#include "settings.h"
#include "stream/event.h"
#include "stream/graph.h"
#include "stream/stream.h"
#include "stream/trace.h"

namespace graft::host {
namespace {

constexpr auto kBlas = extension_of<graft_blas_table, LibrarySlots>();
constexpr auto kDnn = extension_of<graft_dnn_table, LibrarySlots>();
constexpr auto kProfiler = extension_of<graft_profiler_table, ProfilerSlots>();
constexpr auto kGraphs = extension_of<graft_graphs_table, GraphSlots>();
constexpr auto kCollectives = extension_of<graft_collectives_table, CollectiveSlots>();

struct Slots : DeviceSlots,
               StreamSlots,
               EventSlots,
               TransferSlots,
               HandleSlots,
               MappingSlots,
               ProgramSlots,
               KernelSlots {
  static graft_status extension(const char* name, uint32_t version, const void** out_table) {
    graft_status status =
        find_extension(name, version, out_table, kProfiler, kGraphs, kCollectives);
    if (status != GRAFT_NOT_FOUND) return status;
    const void* library = nullptr;
    status = find_extension(name, version, &library, kBlas, kDnn);
    if (status != GRAFT_OK) return status;
    if (compute_library() == nullptr) return fail(GRAFT_NOT_FOUND, compute_library_problem());
    *out_table = library;
    return GRAFT_OK;
  }
};

}  // namespace
}  // namespace graft::host

graft_status graft_driver_query(graft_driver_table* table) {
  graft_driver_table own = graft::table_of<graft::host::Slots>("host");
  if (!graft::host::settings().view) own.memory_host_view = nullptr;
  if (!graft::host::settings().share) {
    own.memory_export = nullptr;
    own.memory_import = nullptr;
    own.memory_release = nullptr;
  }
  return graft_driver_fill(table, &own);
}
