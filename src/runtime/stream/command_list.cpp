// src/runtime/stream/command_list.cpp: commands as a driver takes them, kept to be given again.
#include "runtime/stream/command_list.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "runtime/driver/fork.h"
#include "runtime/driver/op_tag.h"
#include "runtime/memory/write_epochs.h"
#include "runtime/stream/device.h"

namespace graft {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

const char* kind_text(uint32_t kind) {
  if (kind == GRAFT_HOST_TO_DEVICE) return "from the host";
  return kind == GRAFT_DEVICE_TO_HOST ? "to the host" : "on the device";
}

}  // namespace

void CommandList::add_copy(uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
                           uint32_t tag) {
  commands_.emplace_back(Copy{to, from, bytes, kind, tag});
  ++counts_.copies;
  counts_.copied_bytes += bytes;
}

void CommandList::add_fill(graft_address to, uint64_t bytes, const void* pattern,
                           uint32_t pattern_bytes, uint32_t tag) {
  Fill fill{to, bytes, {}, pattern_bytes, tag};
  std::memcpy(fill.pattern.data(), pattern, std::min<size_t>(pattern_bytes, fill.pattern.size()));
  commands_.emplace_back(fill);
  ++counts_.fills;
  counts_.filled_bytes += bytes;
}

size_t CommandList::add_launch(graft_kernel kernel, const graft_launch& launch) {
  const size_t first = arguments_.size();
  arguments_.insert(arguments_.end(), launch.arguments, launch.arguments + launch.argument_count);
  commands_.emplace_back(Launch{kernel, launch, first});
  ++counts_.launches;
  return first;
}

void CommandList::add_library(LibraryCommand command) {
  commands_.emplace_back(std::move(command));
  ++counts_.launches;
}

void CommandList::append(CommandList&& more) {
  const size_t first = arguments_.size();
  for (Command& command : more.commands_) {
    if (auto* launch = std::get_if<Launch>(&command)) launch->first += first;
    commands_.push_back(std::move(command));
  }
  arguments_.insert(arguments_.end(), more.arguments_.begin(), more.arguments_.end());
  counts_ += more.counts_;
}

template <class Visit>
void CommandList::each_address(Command& command, Visit&& visit) {
  const Overloaded visitor{
      [&](Copy& copy) {
        if (copy.kind != GRAFT_DEVICE_TO_HOST) visit(&copy.to);
        if (copy.kind != GRAFT_HOST_TO_DEVICE) visit(&copy.from);
      },
      [&](Fill& fill) { visit(&fill.to); },
      [&](Launch& launch) {
        for (uint32_t i = 0; i < launch.launch.argument_count; ++i) {
          graft_argument& argument = arguments_[launch.first + i];
          if (argument.kind == GRAFT_ARGUMENT_ADDRESS) visit(&argument.value);
        }
      },
      [&](LibraryCommand& library) {
        for (graft_address& tensor : library.execution.tensors) visit(&tensor);
        for (graft_address& operand : library.execution.operands) visit(&operand);
        visit(&library.execution.workspace);
        visit(&library.written);
      },
  };
  std::visit(visitor, command);
}

bool CommandList::make_relative(const Locate& locate) {
  std::vector<Relative> found;
  bool known = true;
  for (size_t i = 0; i < commands_.size() && known; ++i) {
    each_address(commands_[i], [&](uint64_t* field) {
      if (*field == 0) return;
      const std::optional<RelativeAddress> address = locate(i, *field);
      known = known && address.has_value();
      if (address) found.push_back({field, *address});
    });
  }
  if (known) relative_ = std::move(found);
  return known;
}

std::vector<graft_place> CommandList::places() {
  std::vector<graft_place> all;
  auto next = relative_.begin();
  for (Command& command : commands_) {
    each_address(command, [&](uint64_t* field) {
      const bool relative = next != relative_.end() && next->field == field;
      all.push_back({relative ? next->address.offset : *field,
                     relative ? next->address.base : GRAFT_NO_BASE, 0});
      if (relative) ++next;
    });
    // Where a plan writes is for Graft alone.
    if (std::holds_alternative<LibraryCommand>(command)) all.pop_back();
  }
  return all;
}

graft_command CommandList::described(const Command& command, graft_launch* launch) const {
  graft_command made{};
  made.struct_size = sizeof(made);
  const Overloaded visitor{
      [&](const Copy& copy) {
        made.kind = GRAFT_COMMAND_COPY, made.tag = copy.tag, made.place_count = 2;
        made.bytes = copy.bytes;
      },
      [&](const Fill& fill) {
        made.kind = GRAFT_COMMAND_FILL, made.tag = fill.tag, made.place_count = 1;
        made.bytes = fill.bytes;
        made.pattern = fill.pattern.data(), made.pattern_bytes = fill.pattern_bytes;
      },
      [&](const Launch& kept) {
        made.kind = GRAFT_COMMAND_LAUNCH, made.tag = kept.launch.tag;
        *launch = kept.launch;
        launch->arguments = arguments_.data() + kept.first;
        made.kernel = kept.kernel, made.launch = launch;
        for (uint32_t i = 0; i < launch->argument_count; ++i) {
          if (launch->arguments[i].kind == GRAFT_ARGUMENT_ADDRESS) ++made.place_count;
        }
      },
      [&](const LibraryCommand& library) {
        made.kind = GRAFT_COMMAND_EXECUTE, made.tag = library.execution.tag;
        made.place_count =
            std::size(library.execution.tensors) + std::size(library.execution.operands) + 1;
        made.plan = library.plan, made.execute = library.run;
      },
  };
  std::visit(visitor, command);
  return made;
}

void CommandList::make_graph(const Device& device) {
  graphs_ = device.driver().extension<graft_graphs_table>();
  if (graphs_ == nullptr || commands_.size() < 2) return;
  const std::vector<graft_place> all = places();
  std::vector<graft_launch> launches(commands_.size());
  std::vector<graft_command> commands;
  size_t next = 0;
  for (size_t i = 0; i < commands_.size(); ++i) {
    commands.push_back(described(commands_[i], &launches[i]));
    commands.back().places = all.data() + next;
    next += commands.back().place_count;
  }
  graft_graph graph = nullptr;
  const graft_status status = Driver::call(graphs_->graph_create, device.handle(), commands.data(),
                                           static_cast<uint32_t>(commands.size()), &graph);
  if (status != GRAFT_OK || graph == nullptr) return;
  graph_.reset(graph, [destroy = graphs_->graph_destroy](graft_graph made) {
    if (!forked_child()) Driver::call(destroy, made);
  });
  counts_.graphs = 1, counts_.in_graphs = std::exchange(counts_.launches, 0);
}

void CommandList::set_addresses() {
  for (const Relative& one : relative_) {
    *one.field = bases_[one.address.base] + one.address.offset;
  }
}

void CommandList::move_to(std::span<const graft_address> bases) {
  bases_.assign(bases.begin(), bases.end());
  if (graph_ == nullptr) set_addresses();
}

graft_status CommandList::give_one(const graft_driver_table& table, graft_stream stream,
                                   const Command& command, std::string_view* out_slot) const {
  const Overloaded visitor{
      [&](const Copy& copy) {
        *out_slot = "copy";
        return Driver::call_locked(table.copy, stream, copy.to, copy.from, copy.bytes, copy.kind,
                                   copy.tag);
      },
      [&](const Fill& fill) {
        *out_slot = "fill";
        return Driver::call_locked(table.fill, stream, fill.to, fill.bytes, fill.pattern.data(),
                                   fill.pattern_bytes, fill.tag);
      },
      [&](const Launch& kept) {
        *out_slot = "kernel_launch";
        graft_launch launch = kept.launch;
        launch.arguments = arguments_.data() + kept.first;
        return Driver::call_locked(table.kernel_launch, stream, kept.kernel, &launch);
      },
      [&](const LibraryCommand& library) {
        *out_slot = "plan_execute";
        return Driver::call_locked(library.run, stream, library.plan, &library.execution);
      },
  };
  return std::visit(visitor, command);
}

void CommandList::note_writes(const Device& device, const Command& command) const {
  const Overloaded visitor{
      [&](const Copy& copy) {
        if (copy.kind != GRAFT_DEVICE_TO_HOST) note_write(device, copy.to);
      },
      [&](const Fill& fill) { note_write(device, fill.to); },
      [&](const Launch& kept) {
        graft_launch launch = kept.launch;
        launch.arguments = arguments_.data() + kept.first;
        note_launch(device, launch);
      },
      [&](const LibraryCommand& library) { note_write(device, library.written); },
  };
  std::visit(visitor, command);
}

graft_status CommandList::give(const graft_driver_table& table, const Device& device,
                               graft_stream stream, std::string_view* out_slot) {
  graft_status status = GRAFT_OK;
  if (graph_ != nullptr) {
    *out_slot = "graph_launch";
    status = Driver::call_locked(graphs_->graph_launch, stream, graph_.get(), bases_.data(),
                                 static_cast<uint32_t>(bases_.size()));
    if (!writes_are_watched()) return status;
    set_addresses();
    for (const Command& command : commands_) note_writes(device, command);
    return status;
  }
  for (const Command& command : commands_) {
    status = give_one(table, stream, command, out_slot);
    if (writes_are_watched()) note_writes(device, command);
    if (status != GRAFT_OK) break;
  }
  return status;
}

std::string CommandList::text() const {
  std::string text;
  const Overloaded visitor{
      [&](const Copy& copy) {
        text += "copy of " + std::to_string(copy.bytes) + " bytes " + kind_text(copy.kind) + ", " +
                op_name(copy.tag);
      },
      [&](const Fill& fill) {
        text += "fill of " + std::to_string(fill.bytes) + " bytes, " + op_name(fill.tag);
      },
      [&](const Launch& launch) {
        text += "launch over " + std::to_string(launch.launch.grid[0]) + " items, " +
                op_name(launch.launch.tag);
      },
      [&](const LibraryCommand& library) {
        text += "plan_execute, " + op_name(library.execution.tag);
      },
  };
  for (size_t i = 0; i < commands_.size(); ++i) {
    text += std::to_string(i) + ": ";
    std::visit(visitor, commands_[i]);
    text += "\n";
  }
  return text;
}

}  // namespace graft
