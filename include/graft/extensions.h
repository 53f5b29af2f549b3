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
#ifndef GRAFT_EXTENSIONS_H_
#define GRAFT_EXTENSIONS_H_

#include "graft/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graft_plan_s* graft_plan;

#define GRAFT_MAX_RANK 8

/* A tensor without its address. Strides count elements and may be 0 (broadcast). */
/* The dimensions have PyTorch's order; a library reads the layout from the strides. */
typedef struct graft_tensor {
  uint32_t dtype; /* graft_dtype */
  uint32_t rank;
  int64_t sizes[GRAFT_MAX_RANK];
  int64_t strides[GRAFT_MAX_RANK];
} graft_tensor;

/* Steps that change a result before it is stored, in the order of the list. */
typedef enum graft_epilogue_kind {
  GRAFT_EPILOGUE_SCALE = 0, /* x * value */
  GRAFT_EPILOGUE_BIAS = 1,  /* x + operand; operand: a vector over the result's last dimension
                               (matmul) or its channels (convolution) */
  GRAFT_EPILOGUE_ADD = 2,   /* x + value * operand; operand: laid out as the result; a
                               convolution's does not overlap the result */
  /* The following are PyTorch's functions; NaN if x is NaN. */
  GRAFT_EPILOGUE_RELU = 3,
  GRAFT_EPILOGUE_GELU = 4,      /* by erf */
  GRAFT_EPILOGUE_GELU_TANH = 5, /* by tanh */
  GRAFT_EPILOGUE_SILU = 6,
  GRAFT_EPILOGUE_MINIMUM = 7,      /* the smaller one of x and value */
  GRAFT_EPILOGUE_CHANNEL_SCALE = 8 /* x * operand; operand: a vector, as for BIAS */
} graft_epilogue_kind;

/* One step of an epilogue. If the library lacks a step or does not know its kind, making the plan
 * returns UNSUPPORTED. Results of half types are rounded once, after the last step. */
typedef struct graft_epilogue {
  uint32_t kind;  /* graft_epilogue_kind */
  uint32_t dtype; /* of the operand; a vector may be float32 if the result is of a half type */
  double value;
} graft_epilogue;

/* Most steps of one descriptor. */
#define GRAFT_MAX_EPILOGUES 4

/* How much precision a library may give up for speed. */
typedef enum graft_math_mode {
  GRAFT_MATH_STRICT = 0, /* products and sums at least in the operands' precision */
  GRAFT_MATH_TF32 = 1,
  GRAFT_MATH_BF16 = 2
} graft_math_mode;

/* c = epilogues(a b). Rank 2, or 3 with a leading batch; a: [m, k], b: [k, n], c: [m, n]. */
/* Any strides; UNSUPPORTED if the library cannot take them. The caller sets struct_size. */
typedef struct graft_matmul {
  uint32_t struct_size;
  uint32_t math_mode;
  graft_tensor a, b, c;
  uint32_t epilogue_count;
  uint32_t unused;
  graft_epilogue epilogues[GRAFT_MAX_EPILOGUES];
} graft_matmul;

/* Which of the three tensors of a convolution is computed from the other two. */
typedef enum graft_convolution_kind {
  GRAFT_CONVOLUTION_FORWARD = 0,        /* writes output */
  GRAFT_CONVOLUTION_BACKWARD_INPUT = 1, /* output is the gradient; writes input */
  GRAFT_CONVOLUTION_BACKWARD_WEIGHT = 2 /* writes weight */
} graft_convolution_kind;

/* input: [n, c, spatial...], weight: [out channels, c / groups, spatial...] (transposed:
 * [c, out channels / groups, spatial...]), output: [n, out channels, spatial...]. */
typedef struct graft_convolution {
  uint32_t struct_size;
  uint32_t kind; /* graft_convolution_kind */
  uint32_t math_mode;
  uint32_t transposed;
  graft_tensor input, weight, output;
  int64_t stride[3], padding[3], dilation[3];
  int64_t groups;
  uint32_t epilogue_count; /* forward only */
  uint32_t unused;
  graft_epilogue epilogues[GRAFT_MAX_EPILOGUES];
} graft_convolution;

/* A plan's needs: bytes of scratch memory for one execution. Graft gives two executions that may
 * overlap two workspaces. The caller sets struct_size. */
typedef struct graft_plan_needs {
  uint32_t struct_size;
  uint32_t unused;
  uint64_t workspace_bytes;
} graft_plan_needs;

/* Addresses for one execution, in the order of the descriptor's tensors, then of the epilogues
 * (0 for an epilogue without operand). */
typedef struct graft_execution {
  uint32_t struct_size;
  uint32_t tag;
  graft_address tensors[3];
  graft_address operands[GRAFT_MAX_EPILOGUES];
  graft_address workspace;
} graft_execution;

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

/* The dtype of a tensor that a call of an operator does not have: rank 0. */
#define GRAFT_NO_TENSOR UINT32_MAX

/* One operator on tensors of these layouts: docs/drivers/operations.md lists the names, and the
 * order of each one's tensors, attributes and scalars. Every tensor has elements. The arrays are
 * read during the call. The caller sets struct_size. */
typedef struct graft_operation {
  uint32_t struct_size;
  uint32_t math_mode; /* graft_math_mode */
  const char* name;
  uint32_t tensor_count; /* written ones first */
  uint32_t scalar_count; /* numbers that come with each execution */
  uint32_t integer_count;
  uint32_t number_count;
  const graft_tensor* tensors;
  const uint32_t* scalar_dtypes; /* graft_dtype */
  const int64_t* integers;       /* attributes, which a plan may be made for */
  const double* numbers;         /* likewise */
} graft_operation;

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
#define GRAFT_EXTENSIONS(EXTENSION)                  \
  EXTENSION(blas, 1, GRAFT_BLAS_SLOTS)               \
  EXTENSION(dnn, 1, GRAFT_DNN_SLOTS)                 \
  EXTENSION(profiler, 1, GRAFT_PROFILER_SLOTS)       \
  EXTENSION(programs, 1, GRAFT_PROGRAMS_SLOTS)       \
  EXTENSION(graphs, 1, GRAFT_GRAPHS_SLOTS)           \
  EXTENSION(collectives, 1, GRAFT_COLLECTIVES_SLOTS) \
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
GRAFT_STATIC_ASSERT(sizeof(graft_tensor) == 136, "the tensor's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_epilogue) == 16, "the epilogue's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_matmul) == 488, "the matmul's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_convolution) == 576, "the convolution's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_plan_needs) == 16, "the needs' layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_execution) == 72, "the execution's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_trace_event) == 40, "the trace event's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_place) == 16, "the place's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_command) == 80, "the command's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_operation) == 64, "the operation's layout is frozen");

#ifdef __cplusplus
}
#endif

#endif /* GRAFT_EXTENSIONS_H_ */
