// drivers/trace/rules/extension.h: the rules of the extensions' slots; rules/hooks.h says how hooks
// read.
#ifndef GRAFT_DRIVERS_TRACE_RULES_EXTENSION_H_
#define GRAFT_DRIVERS_TRACE_RULES_EXTENSION_H_

#include "rules/hooks.h"

namespace graft::trace {

// Plans of graft.blas and graft.dnn, which differ in their descriptor's slot alone.
struct PlanBefore {
  static void plan_execute(TraceCall&, graft_stream stream, graft_plan plan,
                           const graft_execution* execution);
  static void plan_destroy(TraceCall&, graft_plan plan);
};
template <>
struct Before<graft_blas_table> : PlanBefore {};
template <>
struct Before<graft_dnn_table> : PlanBefore {};
template <>
struct After<graft_blas_table> {
  static void matmul_plan(TraceCall&, graft_status, graft_device device, const graft_matmul* matmul,
                          graft_plan_needs* out_needs, graft_plan* out_plan);
};
template <>
struct After<graft_dnn_table> {
  static void convolution_plan(TraceCall&, graft_status, graft_device device,
                               const graft_convolution* convolution, graft_plan_needs* out_needs,
                               graft_plan* out_plan);
};

template <>
struct Before<graft_ops_table> {
  static void operation_known(TraceCall&, graft_device device, const char* name);
  static void operation_execute(TraceCall&, graft_stream stream, graft_plan plan,
                                const graft_launch*& launch);
  static void plan_destroy(TraceCall&, graft_plan plan);
};
template <>
struct After<graft_ops_table> {
  static void operation_known(TraceCall&, graft_status, graft_device device, const char* name);
  static void operation_plan(TraceCall&, graft_status, graft_device device,
                             const graft_operation* operation, graft_plan_needs* out_needs,
                             graft_plan* out_plan);
};

template <>
struct Before<graft_profiler_table> {
  static void trace_start(TraceCall&, graft_device device, graft_emit_trace& emit, void*& context);
};
template <>
struct After<graft_profiler_table> {
  static void trace_start(TraceCall&, graft_status, graft_device device, graft_emit_trace emit,
                          void* context);
  static void trace_stop(TraceCall&, graft_status, graft_device device);
};

// The call queued a command of which the profiler is due to tell. REQUIRES: the mutex is held.
void expect_record(TraceCall& call);
// A wait for the stream said OK: the profiler has told of each command. REQUIRES: the mutex is
// held.
void check_records(TraceCall& call, StreamRecord& stream);

template <>
struct After<graft_programs_table> {
  static void program_build(TraceCall&, graft_status, graft_device device, const char* source,
                            size_t source_bytes, const char* options, graft_program* out_program);
};

template <>
struct Before<graft_graphs_table> {
  static void graph_create(TraceCall&, graft_device device, const graft_command*& commands,
                           uint32_t count, graft_graph* out_graph);
  static void graph_launch(TraceCall&, graft_stream stream, graft_graph graph,
                           const graft_address*& bases, uint32_t base_count);
  static void graph_destroy(TraceCall&, graft_graph graph);
};
template <>
struct After<graft_graphs_table> {
  static void graph_create(TraceCall&, graft_status, graft_device device,
                           const graft_command* commands, uint32_t count, graft_graph* out_graph);
};

template <>
struct Before<graft_collectives_table> {
  static void group_abort(TraceCall&, graft_group group);
  static void group_destroy(TraceCall&, graft_group group);
  static void all_reduce(TraceCall&, graft_stream stream, graft_group group, graft_address send,
                         graft_address receive, uint64_t count, uint32_t dtype, uint32_t reduction,
                         uint32_t tag);
  static void send(TraceCall&, graft_stream stream, graft_group group, graft_address address,
                   uint64_t count, uint32_t dtype, uint32_t peer, uint32_t tag);
  static void receive(TraceCall&, graft_stream stream, graft_group group, graft_address address,
                      uint64_t count, uint32_t dtype, uint32_t peer, uint32_t tag);
};
template <>
struct After<graft_collectives_table> {
  static void group_create(TraceCall&, graft_status, graft_device device, const uint8_t* id,
                           uint32_t rank, uint32_t size, int64_t timeout_ns,
                           graft_group* out_group);
  static void all_reduce(TraceCall&, graft_status, graft_stream stream, graft_group group,
                         graft_address send, graft_address receive, uint64_t count, uint32_t dtype,
                         uint32_t reduction, uint32_t tag);
  static void broadcast(TraceCall&, graft_status, graft_stream stream, graft_group group,
                        graft_address send, graft_address receive, uint64_t count, uint32_t dtype,
                        uint32_t root, uint32_t tag);
};

template <>
struct Before<graft_graph_compiler_table> {
  static void executable_run(TraceCall&, graft_stream stream, graft_executable executable,
                             const graft_graph_run* run);
  static void executable_destroy(TraceCall&, graft_executable executable);
};
template <>
struct After<graft_graph_compiler_table> {
  static void executable_load(TraceCall&, graft_status, graft_device device, const void* blob,
                              size_t bytes, graft_executable* out_executable);
};

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_RULES_EXTENSION_H_
