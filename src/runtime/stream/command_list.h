// src/runtime/stream/command_list.h: commands that a stream takes again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/extensions.h"
#include "runtime/driver/export.h"
#include "runtime/stream/command.h"
#include "runtime/stream/command_counts.h"

namespace graft {

class OpenDevice;
class Stream;

// Commands in the order in which one stream takes them, and what to ask after them. Not
// thread-safe.
class GRAFT_EXPORT CommandList {
 public:
  // Armed with each replay: Stream::arm. The check reads memory, which outlives the list.
  struct Check {
    void (*ask)(Stream& stream, void* context) = nullptr;
    void* context = nullptr;
    graft_address memory = 0;
    uint64_t bytes = 0;
    bool operator==(const Check&) const = default;
  };

  // Copies what the command points to. The result is valid until the next change.
  Command& add(Command command);
  // A check that the list has stays as it is.
  void add(const Check& check);
  void append(CommandList&& more);

  size_t size() const { return commands_.size(); }
  std::span<const Check> checks() const { return checks_; }

  // Makes device addresses of the commands relative: locate says to which base, given the command's
  // place and the address; GRAFT_NO_BASE leaves it as it is. False when locate does not know one;
  // the list is as before then. Nothing is added afterwards.
  using Locate = std::function<std::optional<graft_place>(size_t command, graft_address)>;
  bool make_relative(const Locate& locate);

  // From now on the device takes fixed commands that follow each other as one, if its driver has
  // graphs (graft.graphs) and makes one of them. Nothing is added afterwards.
  void make_graphs(OpenDevice& device);

  // Sets the addresses that were made relative. bases: those that locate named.
  void move_to(std::span<const graft_address> bases);

  // A line per command: its kind, its op and its figures. For reading, in no stable form.
  std::string text();

  // Of one replay.
  const CommandCounts& counts() const { return counts_; }
  // Gives the commands to the driver's stream until one is refused: its status, with the name of
  // its slot. REQUIRES: the stream's lock is held.
  graft_status give(const graft_driver_table& table, graft_stream stream,
                    std::string_view* out_slot);
  // Calls visit(command) for each command in its order; visit takes every kind.
  void each(auto&& visit) {
    for (Command& command : commands_) std::visit(visit, command);
  }
  // Calls visit for each device address of the next replay, as commands do.
  void each_address(auto&& visit) {
    if (is_one_graph()) set_addresses();
    each([&](auto& one) { one.each_address(visit); });
  }

 private:
  struct Relative {
    uint64_t* field;  // of a command or an argument
    graft_place place;
  };
  struct Graph {
    size_t first, end;  // commands
    std::shared_ptr<graft_graph_s> made;
  };

  std::vector<std::vector<graft_place>> places();  // by command
  bool is_one_graph() const {
    return graphs_.size() == 1 && graphs_[0].end - graphs_[0].first == commands_.size();
  }
  void set_addresses();

  std::vector<Command> commands_;
  std::vector<Check> checks_;
  std::vector<Relative> relative_;
  std::vector<graft_address> bases_;  // of the next replay
  std::vector<Graph> graphs_;         // in the order of their commands
  const graft_graphs_table* table_ = nullptr;
  CommandCounts counts_;  // of one replay
};

// For a stream (command.h): all commands of a list. No list keeps it.
struct ReplayCommand {
  // Called under the stream's lock: sets what differs from replay to replay. The list is given
  // under the lock that it returns.
  using Before = std::function<std::unique_lock<std::mutex>()>;

  CommandList& list;
  Before before;
  uint32_t op = current_tag();
  std::string_view called = "replaying a graph";

  uint32_t& tag() { return op; }
  std::string_view slot() const { return called; }
  TracedCall::What traced() const { return {TracedKind::kReplay}; }
  graft_status give(const graft_driver_table& table, graft_stream stream) {
    const auto lock = before ? before() : std::unique_lock<std::mutex>();
    return list.give(table, stream, &called);
  }
  void count(auto& counts) const { counts.add(list.counts()); }
  void each_address(auto&& visit) { list.each_address(visit); }
};

}  // namespace graft
