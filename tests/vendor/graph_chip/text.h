// tests/vendor/graph_chip/text.h: graphs in the form graft-graph 1, as a vendor reads them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chip {

using Symbols = std::map<std::string, int64_t, std::less<>>;

// A whole number of a text: its expression. Throws std::runtime_error for one with unknown names.
int64_t evaluate(std::string_view expression, const Symbols& symbols);

struct Type {
  std::string dtype;
  std::vector<std::string> sizes, strides;  // expressions; no strides: row-major
};

struct Literal {
  enum Kind { kNone, kValue, kInteger, kFloat, kBool, kString, kWord, kList };
  Kind kind = kNone;
  std::string name{};  // of the keyword
  std::string text{};  // value, expression, string or word
  double number = 0;   // kFloat, kBool
  std::vector<Literal> list{};
};

struct Node {
  std::vector<std::string> results;  // names; empty where there is none
  std::string op;
  std::vector<Literal> arguments;
  std::string views;  // whose memory the results lie in
};

struct Constant {
  std::string name;
  std::vector<double> elements;  // all, or one for all
};

struct Graph {
  std::string name;
  std::vector<std::string> symbols, inputs, outputs;
  std::vector<Constant> constants;
  std::vector<Node> nodes;
  std::map<std::string, Type> types;  // by value
};

// Throws std::runtime_error that names the line.
Graph parse(const std::string& text);

}  // namespace chip
