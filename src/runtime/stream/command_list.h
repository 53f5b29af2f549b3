// src/runtime/stream/command_list.h: commands as a driver takes them, kept to be given again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graft/extensions.h"
#include "runtime/driver/export.h"
#include "runtime/stream/command_counts.h"

namespace graft {

class Device;

// A call of a plan of an extension's table.
struct LibraryCommand {
  graft_status (*run)(graft_stream, graft_plan, const graft_execution*) = nullptr;
  graft_plan plan = nullptr;
  graft_execution execution{};
  std::shared_ptr<const void> owner;  // keeps the plan
  graft_address written = 0;          // where the result begins
};

// An address as what a caller names at each run, and the bytes behind it.
struct RelativeAddress {
  uint32_t base = 0;
  uint64_t offset = 0;
};

// Commands in the order in which one stream takes them. Not thread-safe.
class GRAFT_EXPORT CommandList {
 public:
  void add_copy(uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind, uint32_t tag);
  // pattern_bytes: at most 16.
  void add_fill(graft_address to, uint64_t bytes, const void* pattern, uint32_t pattern_bytes,
                uint32_t tag);
  // Copies the arguments; returns the place of the first among all that the list has.
  size_t add_launch(graft_kernel kernel, const graft_launch& launch);
  void add_library(LibraryCommand command);
  void append(CommandList&& more);

  size_t size() const { return commands_.size(); }
  // Of what give() queues.
  const CommandCounts& counts() const { return counts_; }
  graft_argument& argument(size_t place) { return arguments_[place]; }

  // Makes every device address of the commands relative: locate says to what, given the command's
  // place and the address. False when it does not know one; the list is as before then. Nothing is
  // added afterwards.
  using Locate = std::function<std::optional<RelativeAddress>(size_t command, graft_address)>;
  bool make_relative(const Locate& locate);

  // From now on the device takes all commands as one, where its driver has graphs (graft.graphs);
  // nothing changes otherwise. REQUIRES: make_relative() was true; copies stay on the device.
  void make_graph(const Device& device);

  // Sets the addresses that were made relative. bases: those that locate named.
  void move_to(std::span<const graft_address> bases);

  // Gives the commands to the driver's stream until one is refused: its status, with the name of
  // its slot. REQUIRES: the stream's lock is held.
  graft_status give(const graft_driver_table& table, const Device& device, graft_stream stream,
                    std::string_view* out_slot);

  // A line per command: its kind, its op and its figures. For reading, in no stable form.
  std::string text() const;

 private:
  struct Copy {
    uint64_t to, from, bytes;
    uint32_t kind, tag;
  };
  struct Fill {
    graft_address to;
    uint64_t bytes;
    std::array<unsigned char, 16> pattern;
    uint32_t pattern_bytes, tag;
  };
  struct Launch {
    graft_kernel kernel;
    graft_launch launch;  // its arguments lie in arguments_ from first on
    size_t first;
  };
  using Command = std::variant<Copy, Fill, Launch, LibraryCommand>;
  struct Relative {
    uint64_t* field;  // of a command or an argument
    RelativeAddress address;
  };

  template <class Visit>
  void each_address(Command& command, Visit&& visit);
  std::vector<graft_place> places();  // of all commands, one after the other
  graft_command described(const Command& command, graft_launch* launch) const;
  graft_status give_one(const graft_driver_table& table, graft_stream stream,
                        const Command& command, std::string_view* out_slot) const;
  void note_writes(const Device& device, const Command& command) const;
  void set_addresses();

  std::vector<Command> commands_;
  std::vector<graft_argument> arguments_;
  std::vector<Relative> relative_;
  std::vector<graft_address> bases_;  // of the next give(), for a graph
  std::shared_ptr<graft_graph_s> graph_;
  const graft_graphs_table* graphs_ = nullptr;
  CommandCounts counts_;
};

}  // namespace graft
