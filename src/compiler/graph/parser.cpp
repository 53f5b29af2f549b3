// src/compiler/graph/parser.cpp: reads a graph from its text form.
#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "compiler/graph/cursor.h"
#include "compiler/graph/text.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

constexpr int kMaxListDepth = 16;
constexpr std::string_view kFirstLine = "graft-graph 1";

bool find_dtype(std::string_view name, graft_dtype* out) {
#define GRAFT_COMPARE(dtype, value, bytes, text) \
  if (name == text) {                            \
    *out = GRAFT_##dtype;                        \
    return true;                                 \
  }
  GRAFT_DTYPES(GRAFT_COMPARE)
#undef GRAFT_COMPARE
  return false;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Graph parse() {
    head();
    while (next_line()) {
      if (ended_) Cursor(line_, number_).fail("nothing after \"end\"");
      statement();
    }
    if (!ended_) Cursor("", number_ + 1).fail("\"end\" as the last line");
    bind_symbols();
    return std::move(graph_);
  }

 private:
  struct Binding {
    size_t symbol;
    std::string value;
    Cursor cursor;
  };

  bool next_line() {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      line_ = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++number_;
      if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
      const size_t first = line_.find_first_not_of(" \t");
      if (first != std::string_view::npos && line_[first] != '#') return true;
    }
    return false;
  }

  void head() {
    const bool any = next_line();
    Cursor cursor(any ? line_ : std::string_view(), number_);
    if (!any || line_.substr(0, 12) != kFirstLine.substr(0, 12)) {
      cursor.fail("\"graft-graph 1\" as the first line");
    }
    if (line_ != kFirstLine) {
      cursor.reject(
          fmt::format("the text form has version {}, but this Graft reads version 1: write the "
                      "text again, or use the Graft that wrote it",
                      line_.substr(12)));
    }
    if (!next_line()) Cursor("", number_ + 1).fail("\"graph\" and a name");
    Cursor graph(line_, number_);
    if (!graph.accept_word("graph")) graph.fail("\"graph\" and a name");
    graph_.name = graph.identifier("the graph's name");
    graph.expect_end();
  }

  void statement() {
    static constexpr const char* kOrder[] = {"symbol", "input",  "constant", "node",
                                             "group",  "output", "end"};
    static constexpr void (Parser::*kRead[])(Cursor&) = {
        &Parser::symbol, &Parser::input,  &Parser::constant, &Parser::node,
        &Parser::group,  &Parser::output, &Parser::end};
    Cursor cursor(line_, number_);
    for (int i = 0; i < 7; ++i) {
      if (!cursor.accept_word(kOrder[i])) continue;
      if (i < section_) {
        cursor.reject(
            fmt::format("\"{}\" comes after \"{}\": the order is symbol, input, constant, "
                        "node, group, output, end",
                        kOrder[i], kOrder[section_]));
      }
      section_ = i;
      (this->*kRead[i])(cursor);
      cursor.expect_end();
      return;
    }
    cursor.fail("symbol, input, constant, node, group, output or end");
  }

  void symbol(Cursor& c) {
    Symbol symbol;
    symbol.name = c.identifier("the symbol's name");
    if (!symbols_.insert(symbol.name).second) c.reject("the symbol is defined twice");
    if (!c.accept_word("range")) c.fail("\"range\"");
    symbol.low = c.integer("the range's lower end");
    c.expect("..", "between the range's ends");
    if (!c.accept_word("inf")) symbol.high = c.integer("the range's upper end, or inf");
    if (!c.accept_word("hint")) c.fail("\"hint\"");
    symbol.hint = c.integer("the hint");
    if (!c.accept_word("from")) c.fail("\"from\"");
    if (c.accept_word("integer")) {
      symbol.dim = c.integer("the number of the call's integer");
    } else {
      const std::string value = c.name();
      c.expect("[", "before the dimension");
      symbol.dim = c.integer("the dimension");
      c.expect("]", "after the dimension");
      bindings_.push_back({graph_.symbols.size(), value, c});
    }
    graph_.symbols.push_back(std::move(symbol));
  }

  // Symbols come before the values that they are the sizes of.
  void bind_symbols() {
    for (const Binding& binding : bindings_) {
      const auto found = names_.find(binding.value);
      if (found == names_.end()) {
        binding.cursor.reject(fmt::format("%{} is not defined anywhere", binding.value));
      }
      graph_.symbols[binding.symbol].value = found->second;
    }
  }

  ValueId define(Cursor& c, Origin origin) {
    const std::string name = c.name();
    const ValueId id = static_cast<ValueId>(graph_.values.size());
    if (!names_.emplace(name, id).second) c.reject(fmt::format("%{} is defined twice", name));
    c.expect(":", "after the value");
    GraphValue value;
    value.name = name;
    value.origin = origin;
    value.type = type(c);
    graph_.values.push_back(std::move(value));
    return id;
  }

  ValueId use(Cursor& c) {
    const std::string name = c.name();
    const auto found = names_.find(name);
    if (found == names_.end()) c.reject(fmt::format("%{} is not defined before this", name));
    return found->second;
  }

  Size size(Cursor& c) {
    Size size = c.size();
    size.symbols([&](const std::string& name) {
      if (!symbols_.contains(name)) c.reject(fmt::format("the symbol {} is not defined", name));
    });
    return size;
  }

  // What stands up to a closing sign, separated by commas; read() takes one.
  template <class Read>
  static void each(Cursor& c, const char* close, const char* where, Read read) {
    if (c.accept(close)) return;
    do {
      read();
    } while (c.accept(","));
    c.expect(close, where);
  }

  // The first words are those of the kinds, in their order; false where none stands there.
  template <class Kind>
  static bool kind(Cursor& c, int count, Kind* out) {
    for (int i = 0; i < count; ++i) {
      *out = static_cast<Kind>(i);
      if (c.accept_word(name_of(*out))) return true;
    }
    return false;
  }

  std::vector<Size> sizes(Cursor& c, const char* close) {
    std::vector<Size> sizes;
    each(c, close, "after the sizes", [&] { sizes.push_back(size(c)); });
    return sizes;
  }

  TensorType type(Cursor& c) {
    TensorType type;
    const std::string name = c.identifier("a dtype, such as float32");
    if (!find_dtype(name, &type.dtype)) c.reject(fmt::format("\"{}\" is not a dtype", name));
    c.expect("[", "after the dtype");
    type.sizes = sizes(c, "]");
    type.strides = c.accept("(") ? sizes(c, ")") : row_major_strides(type.sizes);
    if (type.strides.size() != type.sizes.size()) {
      c.reject(fmt::format("{} sizes, but {} strides", type.sizes.size(), type.strides.size()));
    }
    return type;
  }

  void input(Cursor& c) {
    const ValueId id = define(c, Origin::kInput);
    if (!kind(c, 5, &graph_.values[id].kind))
      c.fail("parameter, buffer, activation, tangent or scalar");
    graph_.values[id].mutated = c.accept_word("mutated");
    if (c.accept_word("alias")) graph_.values[id].alias = use(c);
    graph_.inputs.push_back(id);
  }

  void constant(Cursor& c) {
    const ValueId id = define(c, Origin::kConstant);
    graph_.constants.push_back(id);
    if (c.accept_word("external")) {
      graph_.values[id].external = c.quoted();
      if (graph_.values[id].external.empty()) c.reject("an external constant needs a name");
      return;
    }
    c.expect("=", "or external, after the type");
    c.expect("[", "before the elements");
    const graft_dtype dtype = graph_.values[id].type.dtype;
    each(c, "]", "after the elements", [&] {
      if (dtype == GRAFT_BOOL) {
        const bool truth = c.accept_word("true");
        if (!truth && !c.accept_word("false")) c.fail("true or false");
        graph_.values[id].data.push_back(truth);
      } else if (is_integral(dtype)) {
        graph_.values[id].whole.push_back(c.integer("an integer"));
      } else {
        if (!c.at_float()) c.fail("a float, such as 1.0");
        graph_.values[id].data.push_back(c.number());
      }
    });
  }

  Argument literal(Cursor& c, int depth) {
    if (depth > kMaxListDepth) c.reject("lists are nested more than 16 deep");
    if (c.peek() == '%') return Argument::of(use(c));
    if (c.peek() == '@') return Argument::of_word(c.word());
    if (c.peek() == '"') return Argument::of_string(c.quoted());
    if (c.accept("[")) {
      std::vector<Argument> list;
      each(c, "]", "after the list", [&] { list.push_back(literal(c, depth + 1)); });
      return Argument::of_list(std::move(list));
    }
    if (c.at_float()) return Argument::of_number(c.number());
    if (c.accept_word("true")) return Argument::of_truth(true);
    if (c.accept_word("false")) return Argument::of_truth(false);
    if (c.accept_word("none")) return {};
    return Argument::of_integer(size(c));
  }

  Argument argument(Cursor& c) {
    Cursor ahead = c;
    std::string name;
    const char first = c.peek();
    if (first == '_' || (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z')) {
      name = ahead.identifier("a keyword");
      if (ahead.accept("=")) {
        c = ahead;
      } else {
        name.clear();
      }
    }
    Argument argument = literal(c, 0);
    argument.name = std::move(name);
    return argument;
  }

  void node(Cursor& c) {
    const NodeId id = static_cast<NodeId>(graph_.nodes.size());
    // The results are defined after the arguments are read: a node does not use its own.
    Node node;
    std::vector<std::pair<std::string, TensorType>> results;
    while (!c.accept("=")) {
      if (!results.empty()) c.expect(",", "between results, or \"=\"");
      if (c.accept_word("none")) {
        results.push_back({});
      } else {
        const std::string name = c.name();
        c.expect(":", "after the value");
        results.emplace_back(name, type(c));
      }
    }
    node.op = find_operator(c.path());
    c.expect("(", "after the operator");
    each(c, ")", "after the arguments", [&] { node.arguments.push_back(argument(c)); });
    marks(c, &node);
    if (node.note("kernel") != nullptr) node.op = find_user_operator(node.op->name);
    for (auto& [name, type] : results) {
      node.results.push_back(name.empty() ? kNone : static_cast<ValueId>(graph_.values.size()));
      if (name.empty()) continue;
      if (!names_.emplace(name, node.results.back()).second) {
        c.reject(fmt::format("%{} is defined twice", name));
      }
      GraphValue value;
      value.name = name;
      value.type = std::move(type);
      value.node = id;
      graph_.values.push_back(std::move(value));
    }
    graph_.nodes.push_back(std::move(node));
    graph_.order.push_back(id);
  }

  void marks(Cursor& c, Node* node) {
    while (!c.at_end()) {
      if (c.accept_word("writes")) {
        do {
          node->writes.push_back(use(c));
        } while (c.accept(","));
      } else if (c.accept_word("views")) {
        node->views = use(c);
      } else if (c.accept_word("random")) {
        node->random = true;
      } else if (c.accept_word("opaque")) {
        node->opaque = true;
      } else if (c.accept_word("at")) {
        node->source = c.quoted();
      } else if (c.accept_word("note")) {
        std::string key = c.identifier("the note's name");
        c.expect("=", "after the note's name");
        node->notes.emplace_back(std::move(key), c.quoted());
      } else {
        c.fail("writes, views, random, opaque, at, note or the end of the line");
      }
    }
  }

  void group(Cursor& c) {
    Group group;
    group.name = c.identifier("the group's name");
    if (!kind(c, 4, &group.kind)) c.fail("pointwise, reduction, matmul or convolution");
    while (!c.at_end()) {
      const GraphValue& value = graph_.values[use(c)];
      if (value.node == kNone) c.reject(fmt::format("%{} is not a node's result", value.name));
      group.nodes.push_back(value.node);
    }
    if (group.nodes.empty()) c.fail("the results of the group's nodes");
    graph_.groups.push_back(std::move(group));
  }

  void output(Cursor& c) {
    Output output;
    if (c.accept_word("none")) {
      output.kind = Output::Kind::kNone;
    } else if (c.peek() == '%') {
      output.value = use(c);
    } else {
      output.kind = Output::Kind::kInteger;
      output.integer = size(c);
    }
    output.saved = c.accept_word("saved");
    if (c.accept_word("alias")) output.alias = use(c);
    if (c.accept_word("mutation")) output.mutation = use(c);
    graph_.outputs.push_back(std::move(output));
  }

  void end(Cursor&) { ended_ = true; }

  std::string_view text_, line_;
  int64_t number_ = 0;
  int section_ = 0;
  bool ended_ = false;
  Graph graph_;
  std::set<std::string> symbols_;
  std::unordered_map<std::string, ValueId> names_;
  std::vector<Binding> bindings_;
};

}  // namespace

Graph parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace graft::compiler
