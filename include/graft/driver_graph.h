// include/graft/driver_graph.h: what graft.graphs needs of a driver written in C++, beside the
// enqueueing; optional, all of it inline.
//
// graph_create reads its commands into a list that the graph owns:
//
//   graft_status status = graft::keep_commands(commands, count, &graph->commands, &graph->bases);
//   if (status != GRAFT_OK) return status;
//
// What does not depend on the bases is best done there, too, once. graph_launch then asks each
// command for its addresses and enqueues it:
//
//   status = graft::check_graph_launch(stream, graph, graph->bases, bases, base_count);
//   for (const graft::KeptCommand& one : graph->commands) {
//     if (one.command.kind == GRAFT_COMMAND_COPY) {
//       copy(stream, one.address(0, bases), one.address(1, bases), one.command.bytes, ...);
//     }
//     ...
//   }
//
// A driver whose commands run later than graph_launch returns copies the bases, and keeps the
// graph's list until the last launch has read it: graph_destroy may come before.
//
// A kept command is not changed by its launches, so any number of threads may read it at once.
// Functions report failures as slots do (driver_slot.h).
#ifndef GRAFT_DRIVER_GRAPH_H_
#define GRAFT_DRIVER_GRAPH_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "graft/driver_slot.h"
#include "graft/extensions.h"

// Two drivers of one process must not share the code: each may be built with another release of
// this header.
#pragma GCC visibility push(hidden)

namespace graft {

// A command of a graph with copies of all that it points to, made by keep_commands. Its own
// pointers to places, pattern, launch and arguments are not valid any more; kernel, plan and
// execute are.
struct KeptCommand {
  graft_command command{};
  // As many as the command's kind has, in its order.
  std::vector<graft_place> places;
  // FILL: command.pattern_bytes of it; a driver checks that they are as many as its slot takes.
  std::array<unsigned char, 16> pattern{};
  // LAUNCH: with the command's tag, whatever the tag of the launch itself was.
  graft_launch launch{};
  // LAUNCH: with addresses of no meaning.
  std::vector<graft_argument> arguments;

  // The address of place i for a launch's bases: a device address, or 0 for none. Whether it lies
  // in an allocation is the driver's to check, as its slots do. Any thread.
  // REQUIRES: there is a place i, and a base for each that the graph names.
  graft_address address(size_t i, const graft_address* bases) const {
    const graft_place& place = places[i];
    return place.base == GRAFT_NO_BASE ? place.offset : bases[place.base] + place.offset;
  }

  // The launch at its addresses. Its arguments lie in *room, which the caller owns, keeps for as
  // long as it reads the launch, and may use again for the next one. Any thread, each with room of
  // its own. REQUIRES: the command is a LAUNCH, and as for address().
  graft_launch launch_at(const graft_address* bases, std::vector<graft_argument>* room) const {
    *room = arguments;
    size_t next = 0;
    for (graft_argument& argument : *room) {
      if (argument.kind == GRAFT_ARGUMENT_ADDRESS) argument.value = address(next++, bases);
    }
    graft_launch made = launch;
    made.arguments = room->data();
    return made;
  }
};

// INVALID_ARGUMENT with a text that names the command by its place in the list, for what a driver
// finds of its own as well. index: from 0 on.
inline graft_status wrong_command(uint32_t index, const std::string& what) {
  return fail(GRAFT_INVALID_ARGUMENT,
              "graph_create: command " + std::to_string(index) + ": " + what);
}

// Whether a command of graph_create says all that its kind needs: OK, INVALID_ARGUMENT, or
// UNSUPPORTED for a kind that this header does not know. What is wrong with the values, such as
// arguments that the kernel does not take, is the driver's to find. index: of the command in its
// list. Any thread.
inline graft_status check_command(uint32_t index, const graft_command& one) {
  if (one.struct_size < sizeof one) return wrong_command(index, "struct_size is too small");
  if (one.place_count != 0 && one.places == nullptr) return wrong_command(index, "places missing");
  size_t places = 0;
  switch (one.kind) {
    case GRAFT_COMMAND_COPY:
      // To, and from.
      places = 2;
      break;
    case GRAFT_COMMAND_FILL:
      // To; the pattern is no place.
      if (one.pattern == nullptr || one.pattern_bytes > sizeof KeptCommand::pattern) {
        return wrong_command(index, "no such pattern");
      }
      places = 1;
      break;
    case GRAFT_COMMAND_LAUNCH:
      if (one.kernel == nullptr || one.launch == nullptr ||
          (one.launch->argument_count != 0 && one.launch->arguments == nullptr)) {
        return wrong_command(index, "kernel, launch or arguments missing");
      }
      // Of the other kinds of arguments none names memory.
      for (uint32_t i = 0; i < one.launch->argument_count; ++i) {
        if (one.launch->arguments[i].kind == GRAFT_ARGUMENT_ADDRESS) ++places;
      }
      break;
    case GRAFT_COMMAND_EXECUTE:
      if (one.plan == nullptr || one.execute == nullptr) {
        return wrong_command(index, "plan missing");
      }
      // Tensors, operands of epilogues and the workspace.
      places = sizeof graft_execution::tensors / sizeof(graft_address) + GRAFT_MAX_EPILOGUES + 1;
      break;
    default:
      return fail(GRAFT_UNSUPPORTED, "graph_create: command " + std::to_string(index) +
                                         " is of kind " + std::to_string(one.kind) +
                                         ", which is not known");
  }
  return one.place_count == places ? GRAFT_OK : wrong_command(index, "another number of places");
}

// A copy of a command with all that it points to; the caller's may change or go afterwards.
// REQUIRES: check_command passed it.
inline KeptCommand keep_command(const graft_command& one) {
  KeptCommand kept{one, {one.places, one.places + one.place_count}, {}, {}, {}};
  if (one.kind == GRAFT_COMMAND_FILL) {
    std::memcpy(kept.pattern.data(), one.pattern, one.pattern_bytes);
  }
  if (one.kind == GRAFT_COMMAND_LAUNCH) {
    kept.launch = *one.launch;
    kept.launch.tag = one.tag;
    kept.arguments.assign(one.launch->arguments,
                          one.launch->arguments + one.launch->argument_count);
  }
  return kept;
}

// Checks and copies all commands of graph_create, whose commands and count the first two are, into
// a list that is empty; *out_bases becomes how many bases their places name. At the first command
// that does not pass its status is returned, and what was written is of no use. No commands at all
// are fine: such a graph does nothing.
inline graft_status keep_commands(const graft_command* commands, uint32_t count,
                                  std::vector<KeptCommand>* out, uint32_t* out_bases) {
  if (commands == nullptr && count != 0) {
    return fail(GRAFT_INVALID_ARGUMENT, "graph_create: commands missing");
  }
  *out_bases = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (graft_status status = check_command(i, commands[i]); status != GRAFT_OK) return status;
    for (const graft_place& place : out->emplace_back(keep_command(commands[i])).places) {
      if (place.base != GRAFT_NO_BASE) *out_bases = std::max(*out_bases, place.base + 1);
    }
  }
  return GRAFT_OK;
}

// Whether graph_launch was given all that it needs, for a graph whose places name that many bases:
// OK or INVALID_ARGUMENT. More bases than named are fine. That the stream is of the graph's device
// is the driver's to check: it knows its own handles alone. named: 0 where graph is NULL.
inline graft_status check_graph_launch(const void* stream, const void* graph, uint32_t named,
                                       const graft_address* bases, uint32_t base_count) {
  if (stream == nullptr || graph == nullptr || (bases == nullptr && base_count != 0)) {
    return fail(GRAFT_INVALID_ARGUMENT, "graph_launch: stream, graph or bases missing");
  }
  if (base_count >= named) return GRAFT_OK;
  return fail(GRAFT_INVALID_ARGUMENT, "graph_launch: " + std::to_string(base_count) +
                                          " bases, but the graph names " + std::to_string(named));
}

}  // namespace graft

#pragma GCC visibility pop

#endif  // GRAFT_DRIVER_GRAPH_H_
