// drivers/host/graph.cpp: lists of commands that are launched as one.
#include "graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "failure.h"
#include "graft/driver_slot.h"
#include "kernel.h"
#include "stream.h"
#include "transfer.h"

namespace {

constexpr size_t kTensors = 3, kPlacesOfExecution = kTensors + GRAFT_MAX_EPILOGUES + 1;

// A command with all that it points to.
struct Item {
  graft_command command;
  std::vector<graft_place> places;
  std::array<unsigned char, 16> pattern{};
  graft_launch launch{};
  std::vector<graft_argument> arguments;
};

}  // namespace

struct graft_graph_s {
  graft_device device = nullptr;
  uint32_t base_count = 0;  // that its places name
  std::vector<Item> items;
};

namespace graft::host {
namespace {

graft_status wrong(uint32_t index, const char* what) {
  return fail(GRAFT_INVALID_ARGUMENT,
              "graph_create: command " + std::to_string(index) + ": " + what);
}

size_t addresses(const graft_launch& launch) {
  return static_cast<size_t>(
      std::count_if(launch.arguments, launch.arguments + launch.argument_count,
                    [](const graft_argument& a) { return a.kind == GRAFT_ARGUMENT_ADDRESS; }));
}

graft_status check(uint32_t index, const graft_command& one) {
  if (one.struct_size < sizeof one) return wrong(index, "struct_size is too small");
  if (one.place_count != 0 && one.places == nullptr) return wrong(index, "places missing");
  size_t places = 0;
  switch (one.kind) {
    case GRAFT_COMMAND_COPY:
      places = 2;
      break;
    case GRAFT_COMMAND_FILL:
      if (one.pattern == nullptr || one.pattern_bytes > 16) return wrong(index, "no such pattern");
      places = 1;
      break;
    case GRAFT_COMMAND_LAUNCH:
      if (one.kernel == nullptr || one.launch == nullptr ||
          (one.launch->argument_count != 0 && one.launch->arguments == nullptr)) {
        return wrong(index, "kernel, launch or arguments missing");
      }
      places = addresses(*one.launch);
      break;
    case GRAFT_COMMAND_EXECUTE:
      if (one.plan == nullptr || one.execute == nullptr) return wrong(index, "plan missing");
      places = kPlacesOfExecution;
      break;
    default:
      return fail(GRAFT_UNSUPPORTED, "graph_create: command " + std::to_string(index) +
                                         " is of kind " + std::to_string(one.kind) +
                                         ", which is not known");
  }
  if (one.place_count != places) return wrong(index, "another number of places");
  return GRAFT_OK;
}

Item kept(const graft_command& one) {
  Item item{one, {one.places, one.places + one.place_count}, {}, {}, {}};
  if (one.kind == GRAFT_COMMAND_FILL) {
    std::memcpy(item.pattern.data(), one.pattern, one.pattern_bytes);
  }
  if (one.kind == GRAFT_COMMAND_LAUNCH) {
    item.launch = *one.launch;
    item.launch.tag = one.tag;
    item.arguments.assign(one.launch->arguments,
                          one.launch->arguments + one.launch->argument_count);
  }
  return item;
}

graft_status graph_create(graft_device device, const graft_command* commands, uint32_t count,
                          graft_graph* out_graph) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if ((commands == nullptr && count != 0) || out_graph == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "graph_create: commands or place missing");
  }
  auto graph = std::make_unique<graft_graph_s>();
  graph->device = device;
  for (uint32_t i = 0; i < count; ++i) {
    if (graft_status status = check(i, commands[i]); status != GRAFT_OK) return status;
    for (const graft_place& place : graph->items.emplace_back(kept(commands[i])).places) {
      if (place.base != GRAFT_NO_BASE) {
        graph->base_count = std::max(graph->base_count, place.base + 1);
      }
    }
  }
  *out_graph = graph.release();
  return GRAFT_OK;
}

graft_status give(graft_stream stream, const Item& item, const graft_address* bases) {
  const graft_command& one = item.command;
  const auto address = [&](size_t i) {
    const graft_place& place = item.places[i];
    return place.base == GRAFT_NO_BASE ? place.offset : bases[place.base] + place.offset;
  };
  if (one.kind == GRAFT_COMMAND_COPY) {
    return copy(stream, address(0), address(1), one.bytes, GRAFT_DEVICE_TO_DEVICE, one.tag);
  }
  if (one.kind == GRAFT_COMMAND_FILL) {
    return fill(stream, address(0), one.bytes, item.pattern.data(),
                static_cast<uint32_t>(one.pattern_bytes), one.tag);
  }
  size_t next = 0;
  if (one.kind == GRAFT_COMMAND_LAUNCH) {
    thread_local std::vector<graft_argument> arguments;
    arguments = item.arguments;
    for (graft_argument& argument : arguments) {
      if (argument.kind == GRAFT_ARGUMENT_ADDRESS) argument.value = address(next++);
    }
    graft_launch launch = item.launch;
    launch.arguments = arguments.data();
    return kernel_launch(stream, one.kernel, &launch);
  }
  graft_execution execution{};
  execution.struct_size = sizeof execution;
  execution.tag = one.tag;
  for (graft_address& tensor : execution.tensors) tensor = address(next++);
  for (graft_address& operand : execution.operands) operand = address(next++);
  execution.workspace = address(next);
  return one.execute(stream, one.plan, &execution);
}

graft_status graph_launch(graft_stream stream, graft_graph graph, const graft_address* bases,
                          uint32_t base_count) {
  if (stream == nullptr || graph == nullptr || (bases == nullptr && base_count != 0)) {
    return fail(GRAFT_INVALID_ARGUMENT, "graph_launch: stream, graph or bases missing");
  }
  if (base_count < graph->base_count || stream->device != graph->device) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "graph_launch: fewer bases than the graph names, or another device's stream");
  }
  for (const Item& item : graph->items) {
    if (graft_status status = give(stream, item, bases); status != GRAFT_OK) return status;
  }
  return GRAFT_OK;
}

graft_status graph_destroy(graft_graph graph) {
  if (graph == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "graph_destroy: no graph given");
  delete graph;
  return GRAFT_OK;
}

}  // namespace

const graft_graphs_table kGraphs = {3, 0, &Guarded<&graph_create>::call,
                                    &Guarded<&graph_launch>::call, &Guarded<&graph_destroy>::call};

}  // namespace graft::host
