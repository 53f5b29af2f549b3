// src/runtime/stream/command_list.cpp: commands that a stream takes again and again.
#include "runtime/stream/command_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/driver/fork.h"
#include "runtime/driver/open_device.h"

namespace graft {
namespace {

bool is_fixed(const Command& command) {
  return std::visit([](const auto& one) { return one.fixed(); }, command);
}

}  // namespace

Command& CommandList::add(Command command) {
  std::visit([&](auto& one) { one.keep(), one.count(counts_); }, command);
  return commands_.emplace_back(std::move(command));
}

void CommandList::add(const Check& check) {
  if (std::ranges::find(checks_, check) == checks_.end()) checks_.push_back(check);
}

void CommandList::append(CommandList&& more) {
  std::ranges::move(more.commands_, std::back_inserter(commands_));
  for (const Check& check : more.checks_) add(check);
  counts_.add(more.counts_);
}

bool CommandList::make_relative(const Locate& locate) {
  std::vector<Relative> found;
  bool known = true;
  for (size_t i = 0; i < commands_.size() && known; ++i) {
    const auto visit = [&](uint64_t* field, bool) {
      if (*field == 0) return;
      const std::optional<graft_place> place = locate(i, *field);
      known = known && place.has_value();
      if (place && place->base != GRAFT_NO_BASE) found.push_back({field, *place});
    };
    std::visit([&](auto& one) { one.each_address(visit); }, commands_[i]);
  }
  if (known) relative_ = std::move(found);
  return known;
}

std::vector<std::vector<graft_place>> CommandList::places() {
  std::vector<std::vector<graft_place>> all(commands_.size());
  auto next = relative_.begin();
  for (size_t i = 0; i < commands_.size(); ++i) {
    const auto visit = [&](uint64_t* field, bool) {
      const bool relative = next != relative_.end() && next->field == field;
      all[i].push_back(relative ? next++->place : graft_place{*field, GRAFT_NO_BASE, 0});
    };
    std::visit([&](auto& one) { one.each_address(visit); }, commands_[i]);
  }
  return all;
}

void CommandList::make_graphs(OpenDevice& device) {
  if (forked_child() || !device.usable()) return;
  table_ = device.driver().extension<graft_graphs_table>();
  if (table_ == nullptr) return;
  const std::vector<std::vector<graft_place>> places = this->places();
  std::vector<graft_command> commands(commands_.size());
  for (size_t i = 0; i < commands.size(); ++i) {
    graft_command& made = commands[i];
    made.struct_size = sizeof(made);
    made.places = places[i].data(), made.place_count = static_cast<uint32_t>(places[i].size());
    std::visit([&](auto& one) { made.tag = one.tag(), one.describe(&made); }, commands_[i]);
  }
  for (size_t first = 0, end = 0; first < commands.size(); first = end + 1) {
    for (end = first; end < commands.size() && is_fixed(commands_[end]);) ++end;
    graft_graph made = nullptr;
    if (end < first + 2 ||
        Driver::call(table_->graph_create, device.handle(), &commands[first],
                     static_cast<uint32_t>(end - first), &made) != GRAFT_OK ||
        made == nullptr) {
      continue;
    }
    device.own(made, table_->graph_destroy);
    const auto destroy = [&device, slot = table_->graph_destroy](graft_graph graph) {
      if (!forked_child() && device.disown(graph, slot)) Driver::call(slot, graph);
    };
    graphs_.push_back({first, end, {made, destroy}});
    CommandCounts inside;
    for (size_t i = first; i < end; ++i) {
      std::visit([&](const auto& one) { one.count(inside); }, commands_[i]);
    }
    ++counts_.graphs;
    counts_.launches -= inside.launches, counts_.in_graphs += inside.launches;
  }
}

void CommandList::set_addresses() {
  for (const Relative& one : relative_) *one.field = bases_[one.place.base] + one.place.offset;
}

void CommandList::move_to(std::span<const graft_address> bases) {
  bases_.assign(bases.begin(), bases.end());
  if (!is_one_graph()) set_addresses();
}

graft_status CommandList::give(const graft_driver_table& table, graft_stream stream,
                               std::string_view* out_slot) {
  graft_status status = GRAFT_OK;
  auto graph = graphs_.begin();
  for (size_t i = 0; i < commands_.size() && status == GRAFT_OK;) {
    if (graph != graphs_.end() && graph->first == i) {
      *out_slot = "graph_launch";
      status = Driver::call_locked(table_->graph_launch, stream, graph->made.get(), bases_.data(),
                                   static_cast<uint32_t>(bases_.size()));
      i = graph++->end;
      continue;
    }
    const auto give = [&](const auto& one) {
      *out_slot = one.slot();
      return one.give(table, stream);
    };
    status = std::visit(give, commands_[i++]);
  }
  return status;
}

std::string CommandList::text() {
  std::string text;
  for (size_t i = 0; i < commands_.size(); ++i) {
    const auto line = [](auto& one) { return one.text() + ", " + op_name(one.tag()) + "\n"; };
    text += std::to_string(i) + ": " + std::visit(line, commands_[i]);
  }
  return text;
}

}  // namespace graft
