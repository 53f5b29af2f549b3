// tests/runtime/driver/fake_graphs.h: graft.graphs of the fake driver.
#pragma once

#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "graft/extensions.h"
#include "tests/runtime/driver/fake_driver.h"

// Calls of the driver's own slots.
struct graft_graph_s {
  std::vector<std::function<graft_status(graft_stream, const graft_address*)>> commands;
};

namespace graft::fake {

// One per process, reset by add_graphs().
struct Graphs {
  graft_status refuses = GRAFT_OK;  // what graph_create returns
  std::vector<size_t> made;         // the commands of each graph
  // The driver's operation_execute; null: a graph that holds an operation is refused.
  graft_status (*operate)(graft_stream, graft_plan, const graft_launch*) = nullptr;
  int live = 0, launches = 0;
};
inline Graphs& graphs() {
  static auto* const the_graphs = new Graphs();
  return *the_graphs;
}

// Keeps a command as a call at the addresses of its places.
inline std::function<graft_status(graft_stream, const graft_address*)> kept(
    const graft_command& one) {
  const std::vector<graft_place> places(one.places, one.places + one.place_count);
  const auto address = [places](size_t i, const graft_address* bases) {
    return places[i].offset + (places[i].base == GRAFT_NO_BASE ? 0 : bases[places[i].base]);
  };
  if (one.kind == GRAFT_COMMAND_COPY) {
    return [=](graft_stream stream, const graft_address* bases) {
      return table().copy(stream, address(0, bases), address(1, bases), one.bytes,
                          GRAFT_DEVICE_TO_DEVICE, one.tag);
    };
  }
  if (one.kind == GRAFT_COMMAND_FILL) {
    const std::string pattern(static_cast<const char*>(one.pattern), one.pattern_bytes);
    return [=](graft_stream stream, const graft_address* bases) {
      return table().fill(stream, address(0, bases), one.bytes, pattern.data(),
                          static_cast<uint32_t>(pattern.size()), one.tag);
    };
  }
  std::vector<graft_argument> arguments(one.launch->arguments,
                                        one.launch->arguments + one.launch->argument_count);
  return [=, launch = *one.launch](graft_stream stream, const graft_address* bases) {
    std::vector<graft_argument> placed = arguments;
    size_t next = 0;
    for (graft_argument& argument : placed) {
      if (argument.kind == GRAFT_ARGUMENT_ADDRESS) argument.value = address(next++, bases);
    }
    graft_launch at = launch;
    at.arguments = placed.data();
    if (one.kind == GRAFT_COMMAND_OPERATE) return graphs().operate(stream, one.plan, &at);
    return table().kernel_launch(stream, one.kernel, &at);
  };
}

// The driver has graphs from its next device on.
inline void add_graphs() {
  static const graft_graphs_table slots = {
      3, 0,
      [](graft_device, const graft_command* commands, uint32_t count, graft_graph* out) {
        if (graphs().refuses != GRAFT_OK) return graphs().refuses;
        for (uint32_t i = 0; i < count; ++i) {
          if (commands[i].kind == GRAFT_COMMAND_OPERATE && graphs().operate == nullptr) {
            return GRAFT_UNSUPPORTED;
          }
        }
        auto* graph = new graft_graph_s();
        for (uint32_t i = 0; i < count; ++i) graph->commands.push_back(kept(commands[i]));
        graphs().made.push_back(count);
        ++graphs().live;
        return *out = graph, GRAFT_OK;
      },
      [](graft_stream stream, graft_graph graph, const graft_address* bases, uint32_t) {
        ++graphs().launches;
        for (const auto& command : graph->commands) {
          if (const graft_status status = command(stream, bases); status != GRAFT_OK) return status;
        }
        return GRAFT_OK;
      },
      [](graft_graph graph) {
        --graphs().live;
        return delete graph, GRAFT_OK;
      }};
  graphs() = {};
  table().extension = [](const char* name, uint32_t, const void** out) {
    if (std::string_view(name) != "graft.graphs") return GRAFT_NOT_FOUND;
    return *out = &slots, GRAFT_OK;
  };
}

}  // namespace graft::fake
