// include/graft/driver_graph.h: checks and keeps the commands of graft.graphs for a driver written
// in C++, which then queues them; optional, inline only.
//
// graph_create reads its commands into a list that the graph owns:
//
//   graft_status status = graft::keep_commands(commands, count, &graph->commands, &graph->bases);
//   if (status != GRAFT_OK) return status;
//
// Do all work there that does not depend on the bases. graph_launch then asks each command for its
// addresses and queues the command:
//
//   status = graft::check_graph_launch(stream, graph, graph->bases, bases, base_count);
//   for (const graft::KeptCommand& one : graph->commands) {
//     if (one.command.kind == GRAFT_COMMAND_COPY) {
//       copy(stream, one.address(0, bases), one.address(1, bases), one.command.bytes, ...);
//     }
//     ...
//   }
//
// If commands run after graph_launch returns, the driver copies the bases and keeps the graph's
// list until the last launch has read it, which may be after graph_destroy.
//
// Launches do not change a kept command, so any number of threads may read it at once.
// Functions report failures as slots do (driver_slot.h).
//
// All functions are safe for several threads, each with its own list.
// SPDX-License-Identifier: Apache-2.0
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

// Two drivers of one process must not share this code: each may be built with another release of
// the header.
#pragma GCC visibility push(hidden)

namespace graft {

// A command of a graph with copies of all that it points to, made by keep_commands. In command the
// pointers to places, pattern, launch and arguments are invalid; kernel, plan and execute are
// valid.
struct KeptCommand {
  graft_command command{};
  // In the number and order of the command's kind.
  std::vector<graft_place> places;
  // FILL: command.pattern_bytes of it; the driver checks that its fill takes so many.
  std::array<unsigned char, 16> pattern{};
  // LAUNCH: has the command's tag, not the caller's launch's.
  graft_launch launch{};
  // LAUNCH: with the addresses of places without a base; the others have no meaning.
  std::vector<graft_argument> arguments;
  // Whether a place names a base. The addresses of a command that does not move are those of
  // graph_create at every launch.
  bool moves = false;

  // The address of place i for a launch's bases: a device address, or 0 for none. The driver checks
  // that the address is inside an allocation, as its slots do. Any thread.
  // REQUIRES: there is a place i, and a base for each that the graph names.
  graft_address address(size_t i, const graft_address* bases) const {
    const graft_place& place = places[i];
    return place.base == GRAFT_NO_BASE ? place.offset : bases[place.base] + place.offset;
  }

  // The launch at its addresses. Its arguments are the command's own, if it does not move, or in
  // *room, which the caller owns, keeps while it reads the launch, and may use again for the next
  // launch. Any thread, each with another room.
  // REQUIRES: the command is a LAUNCH, and as for address().
  graft_launch launch_at(const graft_address* bases, std::vector<graft_argument>* room) const {
    graft_launch made = launch;
    made.arguments = arguments.data();
    if (!moves) return made;
    *room = arguments;
    size_t next = 0;
    for (graft_argument& argument : *room) {
      if (argument.kind == GRAFT_ARGUMENT_ADDRESS) argument.value = address(next++, bases);
    }
    made.arguments = room->data();
    return made;
  }
};

// INVALID_ARGUMENT, with a text that names the command by its index in the list; drivers may use it
// for their own checks. index: from 0 on.
inline graft_status wrong_command(uint32_t index, const std::string& what) {
  return fail(GRAFT_INVALID_ARGUMENT,
              "graph_create: command " + std::to_string(index) + ": " + what);
}

// Whether a command of graph_create has all that its kind needs: OK, INVALID_ARGUMENT, or
// UNSUPPORTED for a kind that this header does not know. The driver checks the values, such as
// arguments that the kernel does not take. index: of the command in its list. Any thread.
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
        return wrong_command(index, "the pattern is NULL or longer than 16 bytes");
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
                                         ", which this driver does not know");
  }
  return one.place_count == places ? GRAFT_OK
                                   : wrong_command(index, "place_count does not fit the kind");
}

// A copy of a command with all that it points to; the caller may then change or free the original.
// Any thread.
// REQUIRES: check_command passed it.
inline KeptCommand keep_command(const graft_command& one) {
  KeptCommand kept{one, {one.places, one.places + one.place_count}, {}, {}, {}, false};
  for (const graft_place& place : kept.places) kept.moves |= place.base != GRAFT_NO_BASE;
  if (one.kind == GRAFT_COMMAND_FILL) {
    std::memcpy(kept.pattern.data(), one.pattern, one.pattern_bytes);
  }
  if (one.kind == GRAFT_COMMAND_LAUNCH) {
    kept.launch = *one.launch;
    kept.launch.tag = one.tag;
    kept.arguments.assign(one.launch->arguments,
                          one.launch->arguments + one.launch->argument_count);
    size_t next = 0;
    for (graft_argument& argument : kept.arguments) {
      if (argument.kind == GRAFT_ARGUMENT_ADDRESS) argument.value = kept.places[next++].offset;
    }
  }
  return kept;
}

// Checks and copies graph_create's commands into out, an empty list; *out_bases becomes the number
// of bases that their places name. Returns the status of the first command that fails its check;
// out and *out_bases then have no meaning. 0 commands are valid: such a
// graph does nothing.
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

// Whether graph_launch was given all that it needs: OK or INVALID_ARGUMENT. named: the bases that
// the graph's places name, 0 if graph is NULL; more bases than named are valid. The driver checks
// that the stream belongs to the graph's device.
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
