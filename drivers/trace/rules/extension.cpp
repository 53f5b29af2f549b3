// drivers/trace/rules/extension.cpp: the rules of the extensions' slots.
#include "rules/extension.h"

#include <array>
#include <string_view>
#include <utility>

#include "objects/guard.h"
#include "objects/results.h"
#include "rules/checks.h"

namespace graft::trace {
namespace {

#define GRAFT_TRACE_BYTES(name, value, bytes, text) bytes,
constexpr std::array<uint64_t, 12> kDtypeBytes = {GRAFT_DTYPES(GRAFT_TRACE_BYTES)};

// The driver's own slot for a plan in a graph: the driver may call it, or know it by its address.
auto own_execute(TraceLayer& layer, decltype(graft_command::execute) execute) {
  if (execute == layer.in_front<graft_blas_table>().plan_execute) {
    return layer.behind<graft_blas_table>().plan_execute;
  }
  if (execute == layer.in_front<graft_dnn_table>().plan_execute) {
    return layer.behind<graft_dnn_table>().plan_execute;
  }
  return execute;
}

void check_dtype(TraceCall& call, uint32_t dtype) {
  if (dtype < kDtypeBytes.size()) return;
  call.caller_broke("dtype", "the dtype is unknown", "Use a graft_dtype.");
}

void use_elements(TraceCall& call, graft_group group, graft_address address, uint64_t count,
                  uint32_t dtype, const char* name) {
  check_other(call, group, "group");
  check_dtype(call, dtype);
  if (count == 0 || address == 0 || dtype >= kDtypeBytes.size()) return;
  use_range(call, call.device, address, count * kDtypeBytes.at(dtype), name);
}

// Each rank gets the same.
void expect_elements(TraceCall& call, graft_status status, graft_group group, graft_address receive,
                     uint64_t count, uint32_t dtype) {
  if (status != GRAFT_OK || receive == 0 || dtype >= kDtypeBytes.size()) return;
  expect_same(call, group, receive, count * kDtypeBytes.at(dtype));
}

}  // namespace

void PlanBefore::plan_execute(TraceCall& call, graft_stream, graft_plan plan,
                              const graft_execution* execution) {
  use_execution(call, plan, execution);
}

void PlanBefore::plan_destroy(TraceCall& call, graft_plan plan) {
  remove_other(call, plan, "plan");
}

void After<graft_blas_table>::matmul_plan(TraceCall& call, graft_status status, graft_device,
                                          const graft_matmul*, graft_plan_needs* out_needs,
                                          graft_plan* out_plan) {
  if (status == GRAFT_OK) add_other(call, *out_plan, "plan", out_needs->workspace_bytes);
}

void After<graft_dnn_table>::convolution_plan(TraceCall& call, graft_status status, graft_device,
                                              const graft_convolution*, graft_plan_needs* out_needs,
                                              graft_plan* out_plan) {
  if (status == GRAFT_OK) add_other(call, *out_plan, "plan", out_needs->workspace_bytes);
}

void Before<graft_ops_table>::operation_known(TraceCall&, graft_device, const char*) {}

void After<graft_ops_table>::operation_known(TraceCall& call, graft_status, graft_device handle,
                                             const char*) {
  {
    const std::lock_guard lock(call.layer.mutex);
    const auto device = call.layer.ledger.devices.find(handle);
    if (device == call.layer.ledger.devices.end()) return;
    if (std::exchange(device->second.asked_operations, true)) return;
  }
  const auto known = call.layer.behind<graft_ops_table>().operation_known;
  if (known(handle, "graft_trace_asks_for_no_operator") == GRAFT_OK) {
    call.driver_broke("any-name", "OK for the name graft_trace_asks_for_no_operator",
                      "Return UNSUPPORTED for a name that the driver does not know.");
  }
}

void After<graft_ops_table>::operation_plan(TraceCall& call, graft_status status, graft_device,
                                            const graft_operation*, graft_plan_needs* out_needs,
                                            graft_plan* out_plan) {
  if (status == GRAFT_OK) add_other(call, *out_plan, "plan", out_needs->workspace_bytes);
}

void Before<graft_ops_table>::operation_execute(TraceCall& call, graft_stream, graft_plan plan,
                                                const graft_launch*& launch) {
  check_other(call, plan, "plan");
  for (uint32_t i = 0; i < launch->argument_count; ++i) {
    const graft_argument& one = launch->arguments[i];
    if (one.kind != GRAFT_ARGUMENT_ADDRESS || one.bytes == 0) continue;
    use_range(call, call.device, one.value, one.bytes, "argument");
  }
  launch = guarded_launch(call, launch);
}

void Before<graft_ops_table>::plan_destroy(TraceCall& call, graft_plan plan) {
  remove_other(call, plan, "plan");
}

void After<graft_programs_table>::program_build(TraceCall& call, graft_status status,
                                                graft_device device, const char* source,
                                                size_t source_bytes, const char*,
                                                graft_program* out_program) {
  if (status != GRAFT_OK) return;
  add_program(call, device, *out_program, std::hash<std::string_view>{}({source, source_bytes}));
}

void Before<graft_graphs_table>::graph_create(TraceCall& call, graft_device,
                                              const graft_command*& commands, uint32_t count,
                                              graft_graph*) {
  const auto copies = std::make_shared<std::vector<graft_command>>(commands, commands + count);
  for (graft_command& one : *copies) {
    if (one.struct_size < sizeof one) return;
    if (one.kind == GRAFT_COMMAND_EXECUTE) {
      check_other(call, one.plan, "plan");
      one.execute = own_execute(call.layer, one.execute);
    } else if (one.kind == GRAFT_COMMAND_OPERATE) {
      check_other(call, one.plan, "plan");
    }
  }
  commands = copies->data();
  call.kept.push_back(copies);
}

void After<graft_graphs_table>::graph_create(TraceCall& call, graft_status status, graft_device,
                                             const graft_command*, uint32_t,
                                             graft_graph* out_graph) {
  if (status == GRAFT_OK) add_other(call, *out_graph, "graph", 0);
}

void Before<graft_graphs_table>::graph_launch(TraceCall& call, graft_stream, graft_graph graph,
                                              const graft_address*& bases, uint32_t base_count) {
  check_other(call, graph, "graph");
  for (uint32_t i = 0; i < base_count; ++i) {
    if (bases[i] != 0) use_range(call, call.device, bases[i], 0, "base");
  }
  bases = static_cast<const graft_address*>(
      guarded_bytes(call, bases, base_count * sizeof(graft_address)));
}

void Before<graft_graphs_table>::graph_destroy(TraceCall& call, graft_graph graph) {
  remove_other(call, graph, "graph");
}

void Before<graft_collectives_table>::group_abort(TraceCall& call, graft_group group) {
  check_other(call, group, "group");
}

void Before<graft_collectives_table>::group_destroy(TraceCall& call, graft_group group) {
  remove_other(call, group, "group");
}

void Before<graft_collectives_table>::all_reduce(TraceCall& call, graft_stream, graft_group group,
                                                 graft_address send, graft_address receive,
                                                 uint64_t count, uint32_t dtype, uint32_t,
                                                 uint32_t) {
  use_elements(call, group, send, count, dtype, "send");
  use_elements(call, group, receive, count, dtype, "receive");
}

void Before<graft_collectives_table>::send(TraceCall& call, graft_stream, graft_group group,
                                           graft_address address, uint64_t count, uint32_t dtype,
                                           uint32_t, uint32_t) {
  use_elements(call, group, address, count, dtype, "address");
}

void Before<graft_collectives_table>::receive(TraceCall& call, graft_stream, graft_group group,
                                              graft_address address, uint64_t count, uint32_t dtype,
                                              uint32_t, uint32_t) {
  use_elements(call, group, address, count, dtype, "address");
}

void After<graft_collectives_table>::group_create(TraceCall& call, graft_status status,
                                                  graft_device, const uint8_t* id, uint32_t rank,
                                                  uint32_t, int64_t, graft_group* out_group) {
  if (status != GRAFT_OK) return;
  add_other(call, *out_group, "group", 0);
  const std::string_view bytes(reinterpret_cast<const char*>(id), GRAFT_GROUP_ID_BYTES);
  const std::lock_guard lock(call.layer.mutex);
  const auto group = call.layer.ledger.others.find(*out_group);
  if (group == call.layer.ledger.others.end()) return;
  group->second.name =
      std::to_string(std::hash<std::string_view>{}(bytes)) + "." + std::to_string(rank);
}

void After<graft_collectives_table>::all_reduce(TraceCall& call, graft_status status, graft_stream,
                                                graft_group group, graft_address,
                                                graft_address receive, uint64_t count,
                                                uint32_t dtype, uint32_t, uint32_t) {
  expect_elements(call, status, group, receive, count, dtype);
}

void After<graft_collectives_table>::broadcast(TraceCall& call, graft_status status, graft_stream,
                                               graft_group group, graft_address,
                                               graft_address receive, uint64_t count,
                                               uint32_t dtype, uint32_t, uint32_t) {
  expect_elements(call, status, group, receive, count, dtype);
}

void Before<graft_graph_compiler_table>::executable_run(TraceCall& call, graft_stream,
                                                        graft_executable executable,
                                                        const graft_graph_run* run) {
  check_other(call, executable, "executable");
  for (uint32_t i = 0; i < run->input_count; ++i) {
    if (run->inputs[i] != 0) use_range(call, call.device, run->inputs[i], 0, "input");
  }
  for (uint32_t i = 0; i < run->output_count; ++i) {
    if (run->outputs[i] != 0) use_range(call, call.device, run->outputs[i], 0, "output");
  }
}

void Before<graft_graph_compiler_table>::executable_destroy(TraceCall& call,
                                                            graft_executable executable) {
  remove_other(call, executable, "executable");
}

void After<graft_graph_compiler_table>::executable_load(TraceCall& call, graft_status status,
                                                        graft_device, const void*, size_t,
                                                        graft_executable* out_executable) {
  if (status == GRAFT_OK) add_other(call, *out_executable, "executable", 0);
}

}  // namespace graft::trace
