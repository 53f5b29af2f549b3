// tests/vendor/graph_chip/executable.cpp: the chip's graph compiler, which interprets a text.
#include "executable.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

#include "call.h"

namespace chip {

namespace {

constexpr uint64_t kAlignment = 64;

// Views that begin where what they show begins.
const std::set<std::string> kWholeViews = {
    "aten.alias.default",     "aten.detach.default",  "aten.expand.default",
    "aten.permute.default",   "aten.reshape.default", "aten.squeeze.dim",
    "aten.squeeze.dims",      "aten.t.default",       "aten.transpose.int",
    "aten.unsqueeze.default", "aten.view.default",    "aten._unsafe_view.default"};
const std::set<std::string> kPartViews = {"aten.slice.Tensor", "aten.select.int",
                                          "aten.split.Tensor", "aten.split_with_sizes.default",
                                          "aten.unbind.int"};

Dtype dtype_of(const std::string& name) {
  if (name == "float32") return Dtype::kFloat32;
  if (name == "int64") return Dtype::kInt64;
  if (name == "bool") return Dtype::kBool;
  throw std::runtime_error("this chip computes float32, int64 and bool, not " + name);
}

Tensor shaped(const Type& type, const Symbols& symbols) {
  Tensor made;
  made.dtype = dtype_of(type.dtype);
  for (const std::string& size : type.sizes) made.sizes.push_back(evaluate(size, symbols));
  for (const std::string& stride : type.strides) made.strides.push_back(evaluate(stride, symbols));
  int64_t next = 1;
  for (size_t d = made.sizes.size(); type.strides.empty() && d-- > 0; next *= made.sizes[d]) {
    made.strides.insert(made.strides.begin(), next);
  }
  return made;
}

uint64_t bytes_of(const Tensor& tensor) {
  int64_t last = 1;
  for (size_t d = 0; d < tensor.sizes.size(); ++d) {
    if (tensor.sizes[d] == 0) return 0;
    last += (tensor.sizes[d] - 1) * tensor.strides[d];
  }
  return (static_cast<uint64_t>(last) * tensor.item() + kAlignment - 1) / kAlignment * kAlignment;
}

// Elements from the first one that the node shows to the first of a result.
int64_t offset_of(const Call& call, size_t result) {
  const std::string& op = call.node().op;
  if (kWholeViews.contains(op)) return 0;
  const Tensor& in = call[0];
  const bool second = op == "aten.split.Tensor" || op == "aten.split_with_sizes.default";
  int64_t dim = call.integer(second ? 2 : 1, "dim", 0);
  if (dim < 0) dim += in.rank();
  const auto d = static_cast<size_t>(dim);
  int64_t first = static_cast<int64_t>(result);  // unbind
  if (op == "aten.split.Tensor") first *= call.integer(1, "split_size", 1);
  if (op == "aten.split_with_sizes.default") {
    const Sizes sizes = call.integers(1, "split_sizes");
    first = 0;
    for (size_t i = 0; i < result; ++i) first += sizes[i];
  }
  if (op == "aten.slice.Tensor" || op == "aten.select.int") {
    first = call.integer(2, op == "aten.slice.Tensor" ? "start" : "index", 0);
    if (first < 0) first = std::max<int64_t>(first + in.sizes[d], 0);
    if (op == "aten.slice.Tensor") first = std::min(first, in.sizes[d]);
  }
  return first * in.strides[d];
}

bool takes_arguments(const Graph& graph, const Node& node) {
  const auto given = [&](size_t at, const char* name = "none") {
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const Literal& one = node.arguments[i];
      if (one.name.empty() ? i == at : one.name == name) return one;
    }
    return Literal{};
  };
  const auto rank = [&](size_t at) { return graph.types.at(given(at).text).sizes.size(); };
  const auto is_true = [](const Literal& one) {
    return one.kind == Literal::kBool && one.number != 0;
  };
  if (node.op == "aten.index.Tensor") {
    return std::ranges::all_of(given(1).list, [&](const Literal& one) {
      return one.kind == Literal::kValue && graph.types.at(one.text).dtype == "int64";
    });
  }
  if (node.op == "aten.convolution.default") return rank(0) == 4 && !is_true(given(6));
  if (node.op == "aten.convolution_backward.default") return rank(0) == 4 && !is_true(given(7));
  if (node.op.starts_with("aten.nll_loss_forward")) {
    return rank(0) == 2 && given(2).kind == Literal::kNone;
  }
  if (node.op.starts_with("aten.nll_loss_backward")) {
    return rank(1) == 2 && given(3).kind == Literal::kNone;
  }
  const bool backward = node.op.ends_with("overrideable_backward.default");
  if (backward || node.op.ends_with("attention_overrideable.default")) {
    return given(backward ? 12 : 4, "dropout_p").number == 0;
  }
  return true;
}

bool takes(const Graph& graph, const Node& node) {
  const auto known = [&](const std::string& value) {
    const std::string& dtype = graph.types.at(value).dtype;
    return dtype == "float32" || dtype == "int64" || dtype == "bool";
  };
  for (const std::string& result : node.results) {
    if (!result.empty() && !known(result)) return false;
  }
  for (const Literal& one : node.arguments) {
    if (one.kind == Literal::kValue && !known(one.text)) return false;
  }
  if (!node.views.empty()) return kWholeViews.contains(node.op) || kPartViews.contains(node.op);
  const char* leaves = std::getenv("GRAPH_CHIP_LEAVES");
  if (leaves != nullptr && node.op.find(leaves) != node.op.npos) return false;
  return all_kernels().contains(node.op) && takes_arguments(graph, node);
}

// Where everything lies in a run with certain symbols; without addresses while only bytes are
// asked.
struct Memory {
  std::map<std::string, Tensor> tensors;
  uint64_t bytes = 0;

  char* more(const Tensor& tensor, char* workspace) {
    char* at = workspace == nullptr ? nullptr : workspace + bytes;
    bytes += bytes_of(tensor);
    return at;
  }
  Tensor& add(const Graph& graph, const std::string& name, const Symbols& symbols) {
    return tensors[name] = shaped(graph.types.at(name), symbols);
  }
};

void place(const Graph& graph, const Symbols& symbols, const graft_graph_run* run, Memory* memory) {
  char* workspace = run == nullptr ? nullptr : reinterpret_cast<char*>(run->workspace);
  std::map<std::string, char*> outputs;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    outputs[graph.outputs[i]] = run == nullptr ? nullptr : reinterpret_cast<char*>(run->outputs[i]);
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    Tensor& input = memory->add(graph, graph.inputs[i], symbols);
    if (run != nullptr) input.data = reinterpret_cast<char*>(run->inputs[i]);
  }
  for (const Constant& constant : graph.constants) {
    Tensor& made = memory->add(graph, constant.name, symbols);
    made.data = memory->more(made, workspace);
    size_t next = 0;
    if (made.data == nullptr) continue;
    each(made.sizes, [&](const Sizes& i) {
      made.set(made.at(i), constant.elements[constant.elements.size() == 1 ? 0 : next++]);
    });
  }
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i].empty()) continue;
      Tensor& made = memory->add(graph, node.results[i], symbols);
      if (node.views.empty()) {
        const auto output = outputs.find(node.results[i]);
        made.data = output != outputs.end() ? output->second : memory->more(made, workspace);
      } else if (char* base = memory->tensors.at(node.views).data; base != nullptr) {
        const Call call(node, memory->tensors, symbols);
        made.data = base + offset_of(call, i) * static_cast<int64_t>(made.item());
      }
    }
  }
}

}  // namespace

std::string offer(const Graph& graph) {
  std::string answer;
  for (const Node& node : graph.nodes) {
    if (!takes(graph, node)) continue;
    for (const std::string& result : node.results) {
      if (result.empty()) continue;
      answer += "%" + result + "\n";
      break;
    }
  }
  return answer;
}

Symbols Executable::named(const int64_t* symbols) const {
  Symbols all;
  for (size_t i = 0; i < graph_.symbols.size(); ++i) all[graph_.symbols[i]] = symbols[i];
  return all;
}

uint64_t Executable::workspace_bytes(const int64_t* symbols) const {
  Memory memory;
  place(graph_, named(symbols), nullptr, &memory);
  return memory.bytes;
}

void Executable::run(const graft_graph_run& run) const {
  const Symbols symbols = named(run.symbols);
  Memory memory;
  place(graph_, symbols, &run, &memory);
  for (const Node& node : graph_.nodes) {
    if (node.views.empty()) all_kernels().at(node.op)(Call(node, memory.tensors, symbols));
  }
}

}  // namespace chip
