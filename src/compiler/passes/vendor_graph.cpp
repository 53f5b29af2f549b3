// src/compiler/passes/vendor_graph.cpp: gives parts of a graph to the compiler of the device's
// vendor.
#include "compiler/passes/vendor_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "codegen/cache/toolchain.h"
#include "compiler/analysis/effects.h"
#include "compiler/analysis/verifier.h"
#include "compiler/graph/subgraph.h"
#include "compiler/graph/text.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/region.h"
#include "runtime/driver/error.h"
#include "runtime/driver/readable_text.h"

namespace graft::compiler {

namespace {

bool can_go(const Graph& graph, const Node& node) {
  if (node.has_effect() || !node.op->name.starts_with("aten.")) return false;
  bool on_device = true;
  each_value(node.arguments, [&](ValueId value) {
    on_device = on_device && (graph.values[value].origin != Origin::kInput ||
                              graph.values[value].kind != InputKind::kScalar);
  });
  return on_device;
}

// By node, what the compiler's answer names and what can be given away. False, and the line that
// names nothing, for an answer that makes no sense.
bool read_answer(const Graph& graph, const std::string& answer, std::vector<bool>* taken,
                 std::string* wrong) {
  std::unordered_map<std::string, NodeId> named;
  for (NodeId id : graph.order) {
    for (ValueId result : graph.nodes[id].results) {
      if (result == kNone) continue;
      named.emplace(graph.values[result].name, id);
      break;
    }
  }
  for (size_t begin = 0; begin < answer.size();) {
    const size_t end = std::min(answer.find('\n', begin), answer.size());
    std::string line = answer.substr(begin, end - begin);
    begin = end + 1;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    if (line == "*") {
      for (const auto& [name, id] : named) (*taken)[id] = can_go(graph, graph.nodes[id]);
      continue;
    }
    const auto found = named.find(line[0] == '%' ? line.substr(1) : line);
    if (found == named.end()) {
      *wrong = readable(line.substr(0, 60));
      return false;
    }
    (*taken)[found->second] = can_go(graph, graph.nodes[found->second]);
  }
  return true;
}

class Giver {
 public:
  Giver(Graph* graph, OpenDevice& device)
      : graph_(*graph),
        device_(device),
        effects_(*graph),
        taken_(graph->nodes.size(), false),
        region_of_(graph->nodes.size(), kNone),
        needed_(graph->values.size(), false) {}

  VendorGraphs run() {
    if (!offer()) return std::move(given_);
    found_ = find_regions(graph_, effects_, taken_);
    find_needed();
    for (uint32_t i = 0; i < found_.regions.size(); ++i) compile(i);
    if (!made_.empty()) replace();
    return std::move(given_);
  }

 private:
  struct Made {
    NodeId node;
    int64_t moment;
  };

  bool offer() {
    const std::string text = print(graph_);
    const auto& table = *device_.driver().extension<graft_graph_compiler_table>();
    std::string answer, wrong;
    const graft_status status = Driver::call(table.graph_offer, device_.handle(), text.data(),
                                             text.size(), sink_into(&answer));
    if (status == GRAFT_UNSUPPORTED) return false;
    try {
      device_.check(status, "graph_offer");
    } catch (const Error& error) {
      tell(error, "it");
      return false;
    }
    if (read_answer(graph_, answer, &taken_, &wrong)) return true;
    given_.problems.push_back(fmt::format(
        "{}: the graph compiler answered the offer of graph {} with \"{}\", which names none of "
        "its nodes: the graph runs without it. Ask its vendor",
        device_.label(), graph_.name, wrong));
    return false;
  }

  void tell(const Error& error, std::string_view what) {
    if (device_.lost()) throw error;
    given_.problems.push_back(fmt::format("graph {}: {}: {} runs without the vendor's compiler",
                                          graph_.name, error.what(), what));
  }

  void need_operands(const Node& node) {
    each_value(node.arguments, [&](ValueId value) { needed_[value] = true; });
  }

  bool is_needed(const Node& node) const {
    return std::ranges::any_of(node.results,
                               [&](ValueId id) { return id != kNone && needed_[id]; });
  }

  // What is used outside of the region that makes it, and by what stays.
  void find_needed() {
    for (uint32_t i = 0; i < found_.regions.size(); ++i) {
      for (NodeId id : found_.regions[i]) region_of_[id] = i;
    }
    for (const Output& output : graph_.outputs) {
      if (output.value != kNone) needed_[output.value] = true;
    }
    for (size_t i = graph_.order.size(); i-- > 0;) {
      const NodeId id = graph_.order[i];
      const Node& node = graph_.nodes[id];
      if (region_of_[id] != kNone) {
        each_base(graph_, taken_, node, [&](ValueId value) {
          const NodeId maker = graph_.values[value].node;
          if (maker == kNone || region_of_[maker] != region_of_[id]) needed_[value] = true;
        });
      } else if (!taken_[id] || is_needed(node)) {
        need_operands(node);
      }
    }
  }

  // The region's nodes with the taken views that they read through, in program order.
  std::vector<NodeId> with_views(const std::vector<NodeId>& region) const {
    std::vector<bool> seen(graph_.nodes.size(), false);
    std::vector<NodeId> nodes = region;
    for (size_t i = 0; i < nodes.size(); ++i) {
      each_value(graph_.nodes[nodes[i]].arguments, [&](ValueId value) {
        const NodeId maker = graph_.values[value].node;
        const bool view = maker != kNone && taken_[maker] && region_of_[maker] == kNone;
        if (view && !seen[maker]) seen[maker] = true, nodes.push_back(maker);
      });
    }
    std::ranges::sort(nodes, {}, [&](NodeId id) { return effects_.place[id]; });
    return nodes;
  }

  void compile(uint32_t number) {
    const std::vector<NodeId>& region = found_.regions[number];
    std::vector<ValueId> outputs;
    for (NodeId id : region) {
      for (ValueId result : graph_.nodes[id].results) {
        if (result != kNone && needed_[result]) outputs.push_back(result);
      }
    }
    if (outputs.empty()) return;
    const bool alone = found_.regions.size() == 1;
    const std::string name = alone ? graph_.name : fmt::format("{}_{}", graph_.name, number);
    const Subgraph part = cut_out(graph_, with_views(region), outputs, name);
    std::string text = print(part.graph);
    try {
      auto executable = get_executable(device_, text);
      if (executable == nullptr) return;
      given_.kept.push_back(std::move(executable));
    } catch (const Error& error) {
      return tell(error, fmt::format("this part of {} nodes", region.size()));
    }
    made_.push_back(
        {add_node(region, part, std::move(text), outputs), found_.moments[region.front()]});
    for (NodeId id : region) gone_.push_back(id);
  }

  NodeId add_node(const std::vector<NodeId>& region, const Subgraph& part, std::string text,
                  const std::vector<ValueId>& outputs) {
    std::vector<Argument> tensors, symbols;
    for (ValueId id : part.inputs) tensors.push_back(Argument::of(id));
    for (const Symbol& symbol : part.graph.symbols) {
      symbols.push_back(Argument::of_integer(Size::symbol(symbol.name)));
    }
    Node node;
    node.op = find_operator(kVendorGraph);
    node.arguments = {Argument::of_string(std::move(text)), Argument::of_list(std::move(tensors)),
                      Argument::of_list(std::move(symbols))};
    node.results = outputs;
    node.source = graph_.nodes[region.front()].source;
    added_.push_back(std::move(node));
    return static_cast<NodeId>(graph_.nodes.size() + added_.size() - 1);
  }

  // Nodes of regions that were refused read their views again.
  void need_views(const std::vector<bool>& leaves) {
    for (size_t i = graph_.order.size(); i-- > 0;) {
      const NodeId id = graph_.order[i];
      const bool stays = region_of_[id] != kNone && !leaves[id];
      const bool view = taken_[id] && region_of_[id] == kNone && is_needed(graph_.nodes[id]);
      if (stays || view) need_operands(graph_.nodes[id]);
    }
  }

  void replace() {
    std::vector<bool> leaves(graph_.nodes.size(), false);
    for (NodeId id : gone_) leaves[id] = true;
    need_views(leaves);
    struct Place {
      NodeId node;
      int64_t moment;
      bool after;
    };
    std::vector<Place> places;
    for (const Made& one : made_) places.push_back({one.node, one.moment, false});
    for (NodeId id : graph_.order) {
      const bool unused_view =
          taken_[id] && region_of_[id] == kNone && !is_needed(graph_.nodes[id]);
      if (!leaves[id] && !unused_view) places.push_back({id, found_.moments[id], true});
    }
    std::ranges::stable_sort(places, [](const Place& a, const Place& b) {
      return std::pair(a.moment, a.after) < std::pair(b.moment, b.after);
    });
    for (Node& node : added_) {
      for (ValueId result : node.results) {
        graph_.values[result].node = static_cast<NodeId>(graph_.nodes.size());
      }
      graph_.nodes.push_back(std::move(node));
    }
    graph_.order.clear();
    for (const Place& place : places) graph_.order.push_back(place.node);
    graph_.compact();
  }

  Graph& graph_;
  OpenDevice& device_;
  const Effects effects_;
  std::vector<bool> taken_;          // by node
  std::vector<uint32_t> region_of_;  // by node; kNone: in none
  std::vector<bool> needed_;         // by value: of what stays, of another region or of the caller
  Regions found_;
  std::vector<Node> added_;
  std::vector<Made> made_;
  std::vector<NodeId> gone_;
  VendorGraphs given_;
};

}  // namespace

VendorGraphs take_vendor_graphs(Graph* graph, OpenDevice& device) {
  if (!has_graph_compiler(device)) return {};
  for (const Symbol& symbol : graph->symbols) {
    if (symbol.value != kNone && graph->values[symbol.value].node != kNone) return {};
  }
  run_passes(*graph, cleaning_passes());
  VendorGraphs given = Giver(graph, device).run();
  verify(*graph);
  return given;
}

}  // namespace graft::compiler
