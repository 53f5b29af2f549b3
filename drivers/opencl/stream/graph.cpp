// drivers/opencl/stream/graph.cpp: lists of commands that take one call (graft.graphs).
#include "graph.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "graft/driver_graph.h"
#include "kernel/kernel.h"
#include "memory/transfer.h"
#include "platform/device.h"
#include "stream.h"

struct graft_graph_s {
  graft_device device = nullptr;
  uint32_t base_count = 0;  // that its places name
  std::vector<graft::KeptCommand> commands;
  std::vector<std::unique_ptr<graft_kernel_s>> kernels;  // by command; null for none of its own
  std::atomic<uint32_t> users{1};                        // the caller, and launches not given yet
};

namespace graft::opencl {
namespace {

// How many commands of a graph start an idle device, while its thread wakes up for the rest.
constexpr size_t kAhead = 8;

// The head of a task, whose tail are the bases: a graph's commands from first to end.
struct GraphLaunch {
  graft_graph graph;
  uint64_t first, end;
};

void let_go(graft_graph graph) {
  if (graph->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete graph;
}

graft_status check_kept(uint32_t index, const KeptCommand& kept) {
  const graft_command& one = kept.command;
  if (one.kind == GRAFT_COMMAND_EXECUTE) {
    return fail(GRAFT_UNSUPPORTED, "graph_create: command " + std::to_string(index) +
                                       " executes a plan, but this driver has no plans");
  }
  if (one.kind == GRAFT_COMMAND_FILL) return check_pattern(kept.pattern.data(), one.pattern_bytes);
  if (one.kind != GRAFT_COMMAND_LAUNCH || kept.launch.grid[0] == 0) return GRAFT_OK;
  graft_launch launch = kept.launch;
  launch.arguments = kept.arguments.data();
  return one.kernel->check(launch);
}

// What can be said against the bases without OpenCL.
graft_status check_addresses(graft_device device, const KeptCommand& kept,
                             const graft_address* bases) {
  graft_status status = GRAFT_OK;
  if (kept.command.kind == GRAFT_COMMAND_LAUNCH) return status;
  for (size_t i = 0; i < kept.places.size() && status == GRAFT_OK; ++i) {
    status = check_range(device, kept.address(i, bases), kept.command.bytes);
  }
  return status;
}

graft_status enqueue(Queue& queue, graft_graph graph, size_t i, const graft_address* bases,
                     std::vector<graft_argument>* room) {
  const KeptCommand& kept = graph->commands[i];
  const graft_command& one = kept.command;
  if (one.kind == GRAFT_COMMAND_COPY) {
    return enqueue_copy(queue, kept.address(0, bases), kept.address(1, bases), one.bytes, one.tag);
  }
  if (one.kind == GRAFT_COMMAND_FILL) {
    return enqueue_fill(queue, kept.address(0, bases), one.bytes, kept.pattern.data(),
                        uint32_t(one.pattern_bytes), one.tag);
  }
  if (kept.launch.grid[0] == 0) return GRAFT_OK;
  graft_kernel own = graph->kernels[i].get();
  return (own != nullptr ? own : one.kernel)->launch(queue, kept.launch_at(bases, room));
}

graft_status run_graph(Queue& queue, uint32_t& tag, const void* head, const void* tail) {
  GraphLaunch task;
  std::memcpy(&task, head, sizeof task);
  const auto* bases = static_cast<const graft_address*>(tail);
  std::vector<graft_argument> room;
  for (size_t i = task.first; i < task.end; ++i) {
    tag = task.graph->commands[i].command.tag;
    const graft_status status = enqueue(queue, task.graph, i, bases, &room);
    if (status != GRAFT_OK) return status;
  }
  return GRAFT_OK;
}

void graph_done(const void* head) {
  GraphLaunch task;
  std::memcpy(&task, head, sizeof task);
  let_go(task.graph);
}

graft_status enter(graft_stream stream, const GraphLaunch& task, const graft_address* bases,
                   uint32_t tail_bytes) {
  if (task.first == task.end) return GRAFT_OK;
  task.graph->users.fetch_add(1, std::memory_order_relaxed);
  const uint32_t tag = task.graph->commands[task.first].command.tag;
  return stream->queue->backlog.enter({run_graph, graph_done, tag, task.first != 0 ? 1u : 0u,
                                       sizeof task, tail_bytes, &task, bases});
}

}  // namespace

graft_status GraphSlots::graph_create(graft_device device, const graft_command* commands,
                                      uint32_t count, graft_graph* out_graph) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out_graph == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "graph_create: no out pointer given");
  auto graph = std::make_unique<graft_graph_s>();
  graph->device = device;
  graft_status status = keep_commands(commands, count, &graph->commands, &graph->base_count);
  for (uint32_t i = 0; status == GRAFT_OK && i < count; ++i) {
    const KeptCommand& kept = graph->commands[i];
    status = check_kept(i, kept);
    const bool launches = status == GRAFT_OK && kept.command.kind == GRAFT_COMMAND_LAUNCH;
    graph->kernels.push_back(launches ? kept.command.kernel->again() : nullptr);
  }
  if (status == GRAFT_OK) *out_graph = graph.release();
  return status;
}

graft_status GraphSlots::graph_launch(graft_stream stream, graft_graph graph,
                                      const graft_address* bases, uint32_t base_count) {
  const uint32_t named = graph == nullptr ? 0 : graph->base_count;
  graft_status status = check_graph_launch(stream, graph, named, bases, base_count);
  if (status == GRAFT_OK) status = check_stream(stream);
  if (status != GRAFT_OK) return status;
  if (stream->device != graph->device) {
    return fail(GRAFT_INVALID_ARGUMENT, "graph_launch: the stream belongs to another device");
  }
  const std::vector<KeptCommand>& commands = graph->commands;
  size_t end = 0;
  while (end < commands.size() &&
         check_addresses(graph->device, commands[end], bases) == GRAFT_OK) {
    ++end;
  }
  const size_t ahead = std::min(end, kAhead);
  const uint64_t tail = base_count * sizeof *bases;
  status = enter(stream, {graph, 0, ahead}, bases, uint32_t(tail));
  if (status == GRAFT_OK) status = enter(stream, {graph, ahead, end}, bases, uint32_t(tail));
  if (status != GRAFT_OK || end == commands.size()) return status;
  return check_addresses(graph->device, commands[end], bases);  // for its text
}

graft_status GraphSlots::graph_destroy(graft_graph graph) {
  if (graph == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "graph_destroy: no graph given");
  if (!forked()) let_go(graph);
  return GRAFT_OK;
}

}  // namespace graft::opencl
