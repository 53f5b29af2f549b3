// tests/vendor/graph_chip/text.cpp: graphs in the form graft-graph 1, as a vendor reads them.
#include "text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace chip {

namespace {

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

// Reads one line from left to right.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  bool take(std::string_view token) {
    pass_blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) fail("expected \"" + std::string(token) + "\" before " + std::string(rest_));
  }
  std::string word(std::string_view more = "") {
    pass_blanks();
    size_t end = 0;
    while (end < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[end])) != 0 ||
                                  rest_[end] == '_' || more.find(rest_[end]) != more.npos)) {
      ++end;
    }
    if (end == 0) fail("expected a name before " + std::string(rest_));
    return cut(end);
  }
  std::string value() {
    need("%");
    return word();
  }
  std::string quoted() {
    need("\"");
    std::string text;
    for (; !rest_.empty() && rest_[0] != '"'; rest_.remove_prefix(1)) {
      if (rest_[0] != '\\') {
        text += rest_[0];
        continue;
      }
      rest_.remove_prefix(1);
      text += rest_[0] == 'n' ? '\n' : rest_[0] == 't' ? '\t' : rest_[0];
    }
    need("\"");
    return text;
  }
  // Up to a comma or bracket that belongs to what is around.
  std::string expression() {
    pass_blanks();
    size_t end = 0;
    for (int depth = 0; end < rest_.size(); ++end) {
      const char c = rest_[end];
      if (c == '(') ++depth;
      if (depth == 0 && (c == ',' || c == ']' || c == ')')) break;
      if (c == ')') --depth;
    }
    return cut(end);
  }
  bool done() {
    pass_blanks();
    return rest_.empty();
  }
  char next() {
    pass_blanks();
    return rest_.empty() ? '\0' : rest_[0];
  }

 private:
  void pass_blanks() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
  }
  std::string cut(size_t end) {
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return text;
  }
  std::string_view rest_;
};

// The grammar's expression, term and factor.
class Sum {
 public:
  Sum(std::string_view text, const Symbols& symbols) : line_(text), symbols_(symbols) {}

  int64_t sum() {
    int64_t total = line_.take("-") ? -term() : term();
    for (;;) {
      if (line_.take("+"))
        total += term();
      else if (line_.take("-"))
        total -= term();
      else
        return total;
    }
  }

 private:
  int64_t term() {
    int64_t product = factor();
    while (line_.take("*")) product *= factor();
    return product;
  }
  int64_t factor() {
    if (line_.take("(")) {
      const int64_t inner = sum();
      line_.need(")");
      return inner;
    }
    const std::string word = line_.word();
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return std::atoll(word.c_str());
    if (line_.take("(")) {
      const int64_t a = sum();
      line_.need(",");
      const int64_t b = sum();
      line_.need(")");
      if (word == "max") return std::max(a, b);
      if (word == "min") return std::min(a, b);
      const int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0));
      return word == "floordiv" ? quotient : a - quotient * b;
    }
    const auto found = symbols_.find(word);
    if (found == symbols_.end()) fail("unknown symbol " + word);
    return found->second;
  }

  Line line_;
  const Symbols& symbols_;
};

std::vector<std::string> expressions(Line& line, std::string_view end) {
  std::vector<std::string> all;
  while (!line.take(end)) {
    all.push_back(line.expression());
    line.take(",");
  }
  return all;
}

Type type_of(Line& line) {
  Type type;
  type.dtype = line.word();
  line.need("[");
  type.sizes = expressions(line, "]");
  if (line.next() == '(') line.need("("), type.strides = expressions(line, ")");
  return type;
}

Literal literal(Line& line) {
  Literal made;
  if (line.next() == '%') return {Literal::kValue, "", line.value()};
  if (line.next() == '"') return {Literal::kString, "", line.quoted()};
  if (line.take("@")) return {Literal::kWord, "", line.word(":")};
  if (line.take("[")) {
    made.kind = Literal::kList;
    while (!line.take("]")) {
      made.list.push_back(literal(line));
      line.take(",");
    }
    return made;
  }
  made.text = line.expression();
  const std::string& text = made.text;
  if (text == "none") return {};
  if (text == "true" || text == "false") return {Literal::kBool, "", "", text == "true" ? 1. : 0.};
  char* end = nullptr;
  made.number = std::strtod(text.c_str(), &end);
  const bool integer = text.find_first_not_of("-0123456789") == text.npos;
  made.kind = *end == '\0' && !integer ? Literal::kFloat : Literal::kInteger;
  return made;
}

// name=literal or literal
Literal argument(Line& line) {
  const Line before = line;
  if (std::isalpha(static_cast<unsigned char>(line.next())) != 0 || line.next() == '_') {
    const std::string name = line.word();
    if (line.take("=")) {
      Literal made = literal(line);
      made.name = name;
      return made;
    }
    line = before;
  }
  return literal(line);
}

void read_node(Line& line, Graph* graph) {
  Node node;
  while (!line.take("=")) {
    if (line.next() == '%') {
      node.results.push_back(line.value());
      line.need(":");
      graph->types[node.results.back()] = type_of(line);
    } else {
      line.need("none");
      node.results.emplace_back();
    }
    line.take(",");
  }
  node.op = line.word(".");
  line.need("(");
  while (!line.take(")")) {
    node.arguments.push_back(argument(line));
    line.take(",");
  }
  if (line.take("views")) node.views = line.value();
  graph->nodes.push_back(std::move(node));  // the other marks say nothing that this chip needs
}

void read_constant(Line& line, Graph* graph) {
  Constant constant{line.value(), {}};
  line.need(":");
  graph->types[constant.name] = type_of(line);
  line.need("=");
  for (const Literal& one : literal(line).list) {
    const bool integer = one.kind == Literal::kInteger;
    constant.elements.push_back(integer ? static_cast<double>(evaluate(one.text, {})) : one.number);
  }
  graph->constants.push_back(std::move(constant));
}

void read_statement(Line& line, Graph* graph) {
  const std::string kind = line.word();
  if (kind == "graph") graph->name = line.word();
  if (kind == "symbol") graph->symbols.push_back(line.word());
  if (kind == "input") {
    graph->inputs.push_back(line.value());
    line.need(":");
    graph->types[graph->inputs.back()] = type_of(line);
  }
  if (kind == "constant") read_constant(line, graph);
  if (kind == "node") read_node(line, graph);
  if (kind == "output" && line.next() == '%') graph->outputs.push_back(line.value());
}

}  // namespace

int64_t evaluate(std::string_view expression, const Symbols& symbols) {
  return Sum(expression, symbols).sum();
}

Graph parse(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  Graph graph;
  if (!std::getline(lines, line) || line != "graft-graph 1") {
    fail("this compiler reads graft-graph 1, not \"" + line + "\"");
  }
  for (int number = 2; std::getline(lines, line) && line != "end"; ++number) {
    if (line.empty() || line[0] == '#') continue;
    Line rest(line);
    try {
      read_statement(rest, &graph);
    } catch (const std::exception& error) {
      fail("line " + std::to_string(number) + ": " + error.what());
    }
  }
  return graph;
}

}  // namespace chip
