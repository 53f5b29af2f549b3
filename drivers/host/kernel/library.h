// drivers/host/kernel/library.h: graft_host_onednn.so, the part of the driver that links oneDNN and
// TBB.
#ifndef GRAFT_DRIVERS_HOST_KERNEL_LIBRARY_H_
#define GRAFT_DRIVERS_HOST_KERNEL_LIBRARY_H_

#include <cstddef>
#include <cstdint>

#include "graft/extensions.h"
#include "pool.h"

namespace graft::host {

// A plan made by the library.
struct LibraryPlan;

// Where a plan's tensors and operands lie for one execution; 0 where there is none.
struct LibraryExecution {
  void* tensors[3];
  void* operands[GRAFT_MAX_EPILOGUES];
  void* workspace;
};

// What graft_host_onednn.so offers. Its functions write a message of at most capacity bytes when
// they fail, and throw nothing.
struct LibraryTable {
  // Fixes the number of threads, and the level of x86-64 whose instructions it keeps to; "": all
  // that the processor has. Called once, first.
  void (*start)(uint32_t threads, const char* level);
  // As run_parallel, in about `ranges` ranges.
  void (*parallel)(uint64_t count, uint64_t ranges, RangeFunction function, void* context);
  graft_status (*matmul_plan)(const graft_matmul* matmul, uint64_t* out_workspace,
                              LibraryPlan** out_plan, char* message, size_t capacity);
  graft_status (*convolution_plan)(const graft_convolution* convolution, uint64_t* out_workspace,
                                   LibraryPlan** out_plan, char* message, size_t capacity);
  graft_status (*execute)(LibraryPlan* plan, const LibraryExecution* execution);
  void (*destroy)(LibraryPlan* plan);
};

// The name of the one function that the library exports; it returns its table.
inline constexpr char kLibraryEntry[] = "graft_host_library";

// The library's table, loaded at the first call; NULL where it or oneDNN is missing. Thread-safe.
const LibraryTable* compute_library();

// Why compute_library() is NULL; "" when it is not.
const char* compute_library_problem();

// Slots of graft.blas and graft.dnn; only for a driver whose compute_library() is not NULL.
struct LibrarySlots {
  static graft_status matmul_plan(graft_device device, const graft_matmul* matmul,
                                  graft_plan_needs* out_needs, graft_plan* out_plan);
  static graft_status convolution_plan(graft_device device, const graft_convolution* convolution,
                                       graft_plan_needs* out_needs, graft_plan* out_plan);
  static graft_status plan_execute(graft_stream stream, graft_plan plan,
                                   const graft_execution* execution);
  static graft_status plan_destroy(graft_plan plan);
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_KERNEL_LIBRARY_H_
