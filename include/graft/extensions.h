/* include/graft/extensions.h: tables by which a driver offers its vendor's libraries.
 *
 * Only a driver that offers such a library includes graft/extensions.h; each extension is optional.
 * Graft asks for a table through the slot "extension", by name and version. The rules of
 * graft/driver.h hold, and the lists of slots read as the one there. A descriptor makes a plan
 * (slow, may compile); plan_execute queues the plan's work and allocates nothing. Several threads
 * may execute one plan at once, and a plan may end before its executions do.
 *
 * Graft asks once for each table and copies the slots that both sides know. An OPTIONAL slot may be
 * NULL or beyond slot_count. Graft refuses a table that lacks a REQUIRED slot, is not aligned to 8
 * bytes or claims more than GRAFT_MAX_EXTENSION_SLOTS slots, and a slot "extension" that fails: one
 * line on standard error names the driver, the extension and the fault. Then Graft works as if the
 * driver lacked the extension. */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_EXTENSIONS_H_
#define GRAFT_EXTENSIONS_H_

#include "graft/descriptors.h"
#include "graft/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Extension graft.blas. Without it Graft multiplies by its kernels. */
#define GRAFT_BLAS_SLOTS(SLOT)                                                                   \
  /* Makes a plan. UNSUPPORTED if the library cannot compute it: Graft then uses its kernels. */ \
  SLOT(REQUIRED, matmul_plan,                                                                    \
       (graft_device device, const graft_matmul* matmul, graft_plan_needs* out_needs,            \
        graft_plan* out_plan))                                                                   \
  /* Queues the plan's work. */                                                                  \
  SLOT(REQUIRED, plan_execute,                                                                   \
       (graft_stream stream, graft_plan plan, const graft_execution* execution))                 \
  /* Ends a plan. Earlier executions still run to their end. */                                  \
  SLOT(REQUIRED, plan_destroy, (graft_plan plan))

/* Extension graft.dnn. Without it Graft convolves by its kernels. */
#define GRAFT_DNN_SLOTS(SLOT)                                                                   \
  /* As matmul_plan. */                                                                         \
  SLOT(REQUIRED, convolution_plan,                                                              \
       (graft_device device, const graft_convolution* convolution, graft_plan_needs* out_needs, \
        graft_plan* out_plan))                                                                  \
  /* As in graft.blas. */                                                                       \
  SLOT(REQUIRED, plan_execute,                                                                  \
       (graft_stream stream, graft_plan plan, const graft_execution* execution))                \
  /* As in graft.blas. */                                                                       \
  SLOT(REQUIRED, plan_destroy, (graft_plan plan))

/* The device's work for one command, or for a part of one. The driver sets struct_size. */
typedef struct graft_trace_event {
  uint32_t struct_size;
  uint32_t tag; /* of the command, as given to the driver; 0: the driver's internal work */
  graft_stream stream;
  int64_t start_ns, end_ns; /* since the Unix epoch by the host's clock (CLOCK_REALTIME) */
  const char* name;         /* of the work, read during the call; NULL: the whole command */
} graft_trace_event;

/* Takes count events, which emit reads during the call. On any thread; calls no slot. */
typedef void (*graft_emit_trace)(void* context, const graft_trace_event* events, uint64_t count);

/* Extension graft.profiler. Without it Graft times commands by events. */
#define GRAFT_PROFILER_SLOTS(SLOT)                                                               \
  /* After this call the driver reports every finished copy, fill, launch and plan of the device \
   * through emit, before stream_synchronize returns. BUSY if the device is already traced. */   \
  SLOT(REQUIRED, trace_start, (graft_device device, graft_emit_trace emit, void* context))       \
  /* Ends the trace: no call of emit follows. Unfinished commands are not reported. */           \
  SLOT(REQUIRED, trace_stop, (graft_device device))

/* Extension graft.programs: for a blob that takes longer to make than its program. Without it Graft
 * calls program_compile and program_load. */
#define GRAFT_PROGRAMS_SLOTS(SLOT)                                                                \
  /* Makes a program that can run, as program_compile and program_load do, with their errors. */  \
  SLOT(REQUIRED, program_build,                                                                   \
       (graft_device device, const char* source, size_t source_bytes, const char* options,        \
        graft_program* out_program))                                                              \
  /* Writes the blob of program_build's program, for program_load. Slow: any thread may call this \
   * while others use the device and the program. Graft does not unload the program meanwhile. */ \
  SLOT(REQUIRED, program_save, (graft_program program, graft_sink blob))

/* A device address of a graph: the launch's base number `base`, plus offset. */
typedef struct graft_place {
  uint64_t offset;
  uint32_t base; /* GRAFT_NO_BASE: offset is the address, 0 for none */
  uint32_t unused;
} graft_place;

#define GRAFT_NO_BASE UINT32_MAX

typedef enum graft_command_kind {
  GRAFT_COMMAND_COPY = 0, /* on the device */
  GRAFT_COMMAND_FILL = 1,
  GRAFT_COMMAND_LAUNCH = 2,
  GRAFT_COMMAND_EXECUTE = 3, /* a plan of graft.blas or graft.dnn */
  GRAFT_COMMAND_OPERATE = 4  /* a plan of graft.ops; UNSUPPORTED if a graph cannot hold it */
} graft_command_kind;

/* The command that one call of a slot queues, with places for addresses. graph_create reads all
 * that it points to; its kernel and plan outlive the graph. The caller sets struct_size. */
typedef struct graft_command {
  uint32_t struct_size;
  uint32_t kind; /* graft_command_kind */
  uint32_t tag;  /* as the slot's, for late errors and traces */
  uint32_t place_count;
  /* COPY: to, from. FILL: to. LAUNCH, OPERATE: one for each ADDRESS argument. EXECUTE: tensors,
   * operands and workspace of graft_execution. */
  const graft_place* places;
  uint64_t bytes;             /* COPY, FILL */
  const void* pattern;        /* FILL */
  uint64_t pattern_bytes;     /* FILL */
  graft_kernel kernel;        /* LAUNCH */
  const graft_launch* launch; /* LAUNCH, OPERATE; the driver does not read its addresses */
  graft_plan plan;            /* EXECUTE, OPERATE */
  graft_status (*execute)(graft_stream stream, graft_plan plan, const graft_execution* execution);
} graft_command;

typedef struct graft_graph_s* graft_graph;

/* Extension graft.graphs: many commands in one call. Without it, or if graph_create returns
 * UNSUPPORTED, Graft queues the commands one by one. */
#define GRAFT_GRAPHS_SLOTS(SLOT)                                                                  \
  /* Makes a graph of count commands, in their order. */                                          \
  SLOT(REQUIRED, graph_create,                                                                    \
       (graft_device device, const graft_command* commands, uint32_t count,                       \
        graft_graph* out_graph))                                                                  \
  /* Queues the commands in their order. Several launches of one graph may run at once. If one is \
   * refused, the commands before it stay queued. */                                              \
  SLOT(REQUIRED, graph_launch,                                                                    \
       (graft_stream stream, graft_graph graph, const graft_address* bases, uint32_t base_count)) \
  /* Ends a graph. Earlier launches still run to their end. */                                    \
  SLOT(REQUIRED, graph_destroy, (graft_graph graph))

/* Processes (or devices of one process) that compute together, each as a rank of the group. */
typedef struct graft_group_s* graft_group;

#define GRAFT_GROUP_ID_BYTES 128

/* How elements of several ranks become one. On BOOL, SUM and MAX are "or", PRODUCT and MIN "and".
 * Complex numbers have SUM, PRODUCT and AVERAGE only; BIT_ needs integers or BOOL. */
typedef enum graft_reduction {
  GRAFT_REDUCE_SUM = 0,
  GRAFT_REDUCE_PRODUCT = 1,
  GRAFT_REDUCE_MIN = 2,
  GRAFT_REDUCE_MAX = 3,
  GRAFT_REDUCE_AVERAGE = 4, /* the sum divided by the number of ranks */
  GRAFT_REDUCE_BIT_AND = 5,
  GRAFT_REDUCE_BIT_OR = 6,
  GRAFT_REDUCE_BIT_XOR = 7
} graft_reduction;

/* Extension graft.collectives. Without it Graft stages tensors through host memory.
 *
 * A slot queues its command and does not wait. Every rank queues the same commands in the same
 * order (sends and receives: those between the same two ranks). A group serves one stream at a
 * time: a command on another stream runs after the group's earlier commands, by an event. Addresses
 * belong to the stream's device and may be 0 if count is 0 or the rank does not use them. Buffers
 * do not overlap, but a command may work in place: send equals receive or, in all_gather and
 * reduce_scatter, the shorter buffer is the rank's part of the longer one. Every rank that receives
 * a reduction gets the same bits.
 *
 * Late errors: INVALID_ARGUMENT if two ranks' commands differ (kind, count, dtype, reduction,
 * root): the text names both. TIMEOUT if a rank died, left, aborted or was too late: the text names
 * the rank. After a late error every command of the group fails. At the call, on all ranks alike:
 * UNSUPPORTED if the library cannot take the dtype or reduction. */
#define GRAFT_COLLECTIVES_SLOTS(SLOT)                                                             \
  /* Writes a fresh id, GRAFT_GROUP_ID_BYTES, on rank 0; Graft passes it to the other ranks. */   \
  SLOT(REQUIRED, group_id, (graft_device device, uint8_t * out_id))                               \
  /* Waits until all ranks have called it. TIMEOUT if timeout_ns ends first: last_message names   \
   * the missing ranks. timeout_ns also bounds each later command, from the start of its run.     \
   * UNSUPPORTED if the library cannot reach all ranks. */                                        \
  SLOT(REQUIRED, group_create,                                                                    \
       (graft_device device, const uint8_t* id, uint32_t rank, uint32_t size, int64_t timeout_ns, \
        graft_group* out_group))                                                                  \
  /* Any thread. Running and later commands of the group fail late, on all ranks. */              \
  SLOT(REQUIRED, group_abort, (graft_group group))                                                \
  /* Destroys a group that no unfinished command of this rank uses. */                            \
  SLOT(REQUIRED, group_destroy, (graft_group group))                                              \
  /* receive = the reduction of every rank's send. */                                             \
  SLOT(REQUIRED, all_reduce,                                                                      \
       (graft_stream stream, graft_group group, graft_address send, graft_address receive,        \
        uint64_t count, uint32_t dtype, uint32_t reduction, uint32_t tag))                        \
  /* As all_reduce, but writes only root's receive. */                                            \
  SLOT(REQUIRED, reduce,                                                                          \
       (graft_stream stream, graft_group group, graft_address send, graft_address receive,        \
        uint64_t count, uint32_t dtype, uint32_t reduction, uint32_t root, uint32_t tag))         \
  /* receive = root's send, on every rank; reads only root's send. */                             \
  SLOT(REQUIRED, broadcast,                                                                       \
       (graft_stream stream, graft_group group, graft_address send, graft_address receive,        \
        uint64_t count, uint32_t dtype, uint32_t root, uint32_t tag))                             \
  /* receive (size * count elements) = every rank's send, in the order of the ranks. */           \
  SLOT(REQUIRED, all_gather,                                                                      \
       (graft_stream stream, graft_group group, graft_address send, graft_address receive,        \
        uint64_t count, uint32_t dtype, uint32_t tag))                                            \
  /* receive = the rank's part of the reduction of every rank's send (size * count elements). */  \
  SLOT(REQUIRED, reduce_scatter,                                                                  \
       (graft_stream stream, graft_group group, graft_address send, graft_address receive,        \
        uint64_t count, uint32_t dtype, uint32_t reduction, uint32_t tag))                        \
  /* peer receives the same count and dtype. A rank may send to itself in a batch only. */        \
  SLOT(REQUIRED, send,                                                                            \
       (graft_stream stream, graft_group group, graft_address address, uint64_t count,            \
        uint32_t dtype, uint32_t peer, uint32_t tag))                                             \
  /* peer sends the same count and dtype. */                                                      \
  SLOT(REQUIRED, receive,                                                                         \
       (graft_stream stream, graft_group group, graft_address address, uint64_t count,            \
        uint32_t dtype, uint32_t peer, uint32_t tag))                                             \
  /* The thread's sends and receives until batch_end, on one stream, become one command with      \
   * the first one's tag; none of them waits for another. The group takes no other command        \
   * meanwhile. */                                                                                \
  SLOT(REQUIRED, batch_begin, (graft_group group))                                                \
  /* Ends the batch. Counts as a call on that stream (rule 4). */                                 \
  SLOT(REQUIRED, batch_end, (graft_group group))

/* A compiled graph, ready to run on its device. */
typedef struct graft_executable_s* graft_executable;

/* One run of an executable: device addresses in the order of the text's inputs and outputs, values
 * in the order of its symbols. An address is 0 if the tensor has no elements. Outputs and workspace
 * overlap nothing else of the run; inputs may overlap one another and are not written. */
typedef struct graft_graph_run {
  uint32_t struct_size;
  uint32_t tag;
  const graft_address* inputs;
  const graft_address* outputs;
  const int64_t* symbols;
  graft_address workspace; /* 0 if the executable needs none */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t symbol_count;
  uint32_t unused;
} graft_graph_run;

/* Extension graft.graph_compiler: a vendor's compiler takes graphs of torch.compile, or parts of
 * them, as texts (docs/drivers/graph-text-1.md). Without it Graft compiles kernels. */
#define GRAFT_GRAPH_COMPILER_SLOTS(SLOT)                                                           \
  /* Writes which nodes of the graph the compiler takes: a node's first result's name a line, with \
   * or without its %, or * for all; nothing for none. Any thread, as the next slot. */            \
  SLOT(REQUIRED, graph_offer,                                                                      \
       (graft_device device, const char* text, size_t bytes, graft_sink answer))                   \
  /* Compiles a graph to a blob for executable_load, also in another process with the same         \
   * toolchain_fingerprint. Slow. UNSUPPORTED: the compiler does not take it after all. For that   \
   * and for every other failure its nodes run as without the compiler. */                         \
  SLOT(REQUIRED, graph_compile,                                                                    \
       (graft_device device, const char* text, size_t bytes, graft_sink blob))                     \
  /* Loads a blob, of which the driver keeps a copy. INVALID_ARGUMENT if the blob is damaged or    \
   * from another build: Graft then compiles the text again. */                                    \
  SLOT(REQUIRED, executable_load,                                                                  \
       (graft_device device, const void* blob, size_t bytes, graft_executable* out_executable))    \
  /* The needs of runs with these values of the symbols. */                                        \
  SLOT(REQUIRED, executable_needs,                                                                 \
       (graft_executable executable, const int64_t* symbols, uint32_t symbol_count,                \
        graft_plan_needs* out_needs))                                                              \
  /* Queues a run and allocates nothing. Reads run and its arrays during the call. Several runs of \
   * one executable may be under way at once, on one stream or several. */                         \
  SLOT(REQUIRED, executable_run,                                                                   \
       (graft_stream stream, graft_executable executable, const graft_graph_run* run))             \
  /* Ends an executable. Earlier runs still run to their end. */                                   \
  SLOT(REQUIRED, executable_destroy, (graft_executable executable))

/* Extension graft.ops: a vendor's own kernels for operators. Without it, and for what it does not
 * take, Graft runs its kernels; where the device has no compiler, the CPU, counted. */
#define GRAFT_OPS_SLOTS(SLOT)                                                                    \
  /* Whether plans of that operator may be made at all: OK or UNSUPPORTED. Graft asks once for   \
   * each device and name. A name that the driver does not know is UNSUPPORTED. */               \
  SLOT(REQUIRED, operation_known, (graft_device device, const char* name))                       \
  /* Makes a plan. UNSUPPORTED if the chip cannot compute it: Graft keeps that answer. */        \
  SLOT(REQUIRED, operation_plan,                                                                 \
       (graft_device device, const graft_operation* operation, graft_plan_needs* out_needs,      \
        graft_plan* out_plan))                                                                   \
  /* Queues the plan's work. The arguments are a launch's: an ADDRESS for each tensor (0 bytes   \
   * at 0 for one that the call does not have), a SCALAR for each scalar, and an ADDRESS, the    \
   * workspace. grid and group are 1. What a plan was made for is not refused: UNSUPPORTED is an \
   * error here. */                                                                              \
  SLOT(REQUIRED, operation_execute,                                                              \
       (graft_stream stream, graft_plan plan, const graft_launch* launch))                       \
  /* As in graft.blas. */                                                                        \
  SLOT(REQUIRED, plan_destroy, (graft_plan plan))

/* The extensions. EXTENSION(name, version, slots): Graft asks for "graft.name" of that version and
 * gets a graft_name_table. A list grows at its end, by OPTIONAL slots. */
#define GRAFT_EXTENSIONS(EXTENSION)                        \
  EXTENSION(blas, 1, GRAFT_BLAS_SLOTS)                     \
  EXTENSION(dnn, 1, GRAFT_DNN_SLOTS)                       \
  EXTENSION(profiler, 1, GRAFT_PROFILER_SLOTS)             \
  EXTENSION(programs, 1, GRAFT_PROGRAMS_SLOTS)             \
  EXTENSION(graphs, 1, GRAFT_GRAPHS_SLOTS)                 \
  EXTENSION(collectives, 1, GRAFT_COLLECTIVES_SLOTS)       \
  EXTENSION(graph_compiler, 1, GRAFT_GRAPH_COMPILER_SLOTS) \
  EXTENSION(ops, 1, GRAFT_OPS_SLOTS)

/* The tables. slot_count: the slots that the driver's header has. */
#define GRAFT_DECLARE_TABLE(name, version, SLOTS)                                       \
  typedef struct graft_##name##_table {                                                 \
    uint32_t slot_count;                                                                \
    uint32_t unused;                                                                    \
    SLOTS(GRAFT_DECLARE_SLOT)                                                           \
  } graft_##name##_table;                                                               \
  GRAFT_STATIC_ASSERT(sizeof(graft_##name##_table) == 8 + 8 * GRAFT_COUNT_SLOTS(SLOTS), \
                      "slots are dense");
GRAFT_EXTENSIONS(GRAFT_DECLARE_TABLE)
#undef GRAFT_DECLARE_TABLE

/* The prelude of each table. First fields of a driver's table: static const graft_dnn_table t = {
 * GRAFT_EXTENSION_PRELUDE(GRAFT_DNN_SLOTS), convolution_plan, plan_execute, plan_destroy}; */
#define GRAFT_EXTENSION_PRELUDE(SLOTS) GRAFT_COUNT_SLOTS(SLOTS), 0u
#define GRAFT_EXTENSION_PRELUDE_BYTES offsetof(graft_blas_table, matmul_plan)

/* Most slots that Graft believes a table to have. */
#define GRAFT_MAX_EXTENSION_SLOTS 256u

GRAFT_STATIC_ASSERT(GRAFT_EXTENSION_PRELUDE_BYTES == 8, "the tables' prelude is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_trace_event) == 40, "the trace event's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_place) == 16, "the place's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_command) == 80, "the command's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_graph_run) == 56, "the graph run's layout is frozen");

#ifdef __cplusplus
}
#endif

#endif /* GRAFT_EXTENSIONS_H_ */
