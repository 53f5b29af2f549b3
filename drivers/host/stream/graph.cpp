// drivers/host/stream/graph.cpp: lists of commands that are launched as one.
#include "graph.h"

#include <memory>
#include <vector>

#include "device.h"
#include "graft/driver_graph.h"
#include "kernel/kernel.h"
#include "memory/transfer.h"
#include "stream.h"

struct graft_graph_s {
  graft_device device = nullptr;
  uint32_t base_count = 0;  // that its places name
  std::vector<graft::KeptCommand> commands;
};

namespace graft::host {
namespace {

graft_status give(graft_stream stream, const KeptCommand& kept, const graft_address* bases,
                  std::vector<graft_argument>* room) {
  const graft_command& one = kept.command;
  const auto address = [&](size_t i) { return kept.address(i, bases); };
  if (one.kind == GRAFT_COMMAND_COPY) {
    return TransferSlots::copy(stream, address(0), address(1), one.bytes, GRAFT_DEVICE_TO_DEVICE,
                               one.tag);
  }
  if (one.kind == GRAFT_COMMAND_FILL) {
    return TransferSlots::fill(stream, address(0), one.bytes, kept.pattern.data(),
                               static_cast<uint32_t>(one.pattern_bytes), one.tag);
  }
  if (one.kind == GRAFT_COMMAND_LAUNCH) {
    const graft_launch launch = kept.launch_at(bases, room);
    return KernelSlots::kernel_launch(stream, one.kernel, &launch);
  }
  size_t next = 0;
  graft_execution execution{};
  execution.struct_size = sizeof execution;
  execution.tag = one.tag;
  for (graft_address& tensor : execution.tensors) tensor = address(next++);
  for (graft_address& operand : execution.operands) operand = address(next++);
  execution.workspace = address(next);
  return one.execute(stream, one.plan, &execution);
}

}  // namespace

graft_status GraphSlots::graph_create(graft_device device, const graft_command* commands,
                                      uint32_t count, graft_graph* out_graph) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out_graph == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "graph_create: no out pointer given");
  auto graph = std::make_unique<graft_graph_s>();
  graph->device = device;
  const graft_status status = keep_commands(commands, count, &graph->commands, &graph->base_count);
  if (status == GRAFT_OK) *out_graph = graph.release();
  return status;
}

graft_status GraphSlots::graph_launch(graft_stream stream, graft_graph graph,
                                      const graft_address* bases, uint32_t base_count) {
  const uint32_t named = graph == nullptr ? 0 : graph->base_count;
  graft_status status = check_graph_launch(stream, graph, named, bases, base_count);
  if (status != GRAFT_OK) return status;
  if (stream->device != graph->device) {
    return fail(GRAFT_INVALID_ARGUMENT, "graph_launch: the stream belongs to another device");
  }
  thread_local std::vector<graft_argument> arguments;
  std::vector<graft_argument>* const room = &arguments;
  for (const KeptCommand& kept : graph->commands) {
    if (status = give(stream, kept, bases, room); status != GRAFT_OK) return status;
  }
  return GRAFT_OK;
}

graft_status GraphSlots::graph_destroy(graft_graph graph) {
  if (graph == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "graph_destroy: no graph given");
  delete graph;
  return GRAFT_OK;
}

}  // namespace graft::host
