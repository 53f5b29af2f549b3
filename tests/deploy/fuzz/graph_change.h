// tests/deploy/fuzz/graph_change.h: small changes of a graph's text that mostly leave it one.
#pragma once

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/operators.h"

namespace graft::deploy::test {

using Draw = std::minstd_rand;
using ChangeBytes = std::function<std::string(std::string)>;  // the fuzzer's own

template <class List>
auto& drawn(List& list, Draw* draw) {
  return list[(*draw)() % std::size(list)];
}

inline constexpr const char* kWords[] = {"0",
                                         "1",
                                         "-1",
                                         "2",
                                         "3",
                                         "16",
                                         "17",
                                         "65",
                                         "4096",
                                         "2147483648",
                                         "1048576",
                                         "inf",
                                         "-inf",
                                         "nan",
                                         "1e-05",
                                         "0.5",
                                         "true",
                                         "false",
                                         "none",
                                         "mutated",
                                         "alias",
                                         "random",
                                         "opaque",
                                         "saved",
                                         "mutation",
                                         "views",
                                         "writes",
                                         "external",
                                         "s0",
                                         "s0*s0",
                                         "s0 + 1",
                                         "-s0",
                                         "scalar",
                                         "float32",
                                         "float16",
                                         "int64",
                                         "bool",
                                         "complex64",
                                         "bfloat16",
                                         "float64",
                                         "uint8",
                                         "[]",
                                         "[0]",
                                         "[-1]",
                                         "[1, 1]",
                                         "[0, 0]",
                                         "@int64",
                                         "@float16",
                                         "floordiv(s0, 2)",
                                         "(0, 0)",
                                         "(1, 2)",
                                         "[0, 1, 2]",
                                         "pointwise",
                                         "matmul",
                                         "group",
                                         "reduction",
                                         "mod(s0,",
                                         "max(s0,",
                                         "convolution",
                                         "integer",
                                         "hint",
                                         "buffer",
                                         "activation",
                                         "4611686018427387904",
                                         "9223372036854775807",
                                         "-9223372036854775808"};

inline const std::vector<std::string>& words() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made(std::begin(kWords), std::end(kWords));
#define GRAFT_WORD(id, cls, text) \
  made.push_back("aten." + std::string(text).substr(0, std::string_view(text).find('(')));
    GRAFT_OPERATORS(GRAFT_WORD)
#undef GRAFT_WORD
    return made;
  }();
  return all;
}

inline std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

inline std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Begin and length of each word, number, name or sign of a line.
inline std::vector<std::pair<size_t, size_t>> tokens_of(const std::string& line) {
  const auto inside = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '%' ||
           c == '@';
  };
  std::vector<std::pair<size_t, size_t>> tokens;
  for (size_t at = 0; at < line.size();) {
    size_t end = at + 1;
    while (inside(line[at]) && end < line.size() && inside(line[end])) ++end;
    if (line[at] != ' ') tokens.emplace_back(at, end - at);
    at = end;
  }
  return tokens;
}

inline std::string random_token(const std::vector<std::string>& lines, Draw* draw) {
  const std::string& line = drawn(lines, draw);
  const auto tokens = tokens_of(line);
  if ((*draw)() % 3 == 0 || tokens.empty()) return drawn(words(), draw);
  const auto [at, length] = drawn(tokens, draw);
  return line.substr(at, length);
}

// A node behind the others, on values that the graph has, and an output of it.
inline void add_node(std::vector<std::string>* lines, Draw* draw) {
  std::vector<std::string> names, types;
  size_t behind = lines->size();
  for (size_t i = 0; i < lines->size(); ++i) {
    const std::string& line = (*lines)[i];
    const size_t name = line.find('%'), colon = line.find(": ");
    if (line.rfind("output", 0) == 0) behind = std::min(behind, i);
    if (name == std::string::npos || colon == std::string::npos || colon < name) continue;
    const size_t end = line.find_first_of(")]", colon);
    if (end == std::string::npos) continue;
    names.push_back(line.substr(name, colon - name));
    types.push_back(line.substr(colon + 2, end - colon - 1));
  }
  if (names.empty() || behind == lines->size()) return;
  const std::string made = "%n" + std::to_string((*draw)() % 100000);
  const size_t first = std::size(kWords), operators = words().size() - first;
  std::string node = "node " + made + ": " + drawn(types, draw) + " = " +
                     words()[first + (*draw)() % operators] + "(" + drawn(names, draw);
  for (uint32_t i = (*draw)() % 4; i > 0; --i) {
    node += ", " + ((*draw)() % 2 == 0 ? drawn(names, draw) : drawn(words(), draw));
  }
  lines->insert(lines->begin() + static_cast<ptrdiff_t>(behind), node + ")");
  (*lines)[behind + 1] = "output " + made;
}

// REQUIRES: the text has a line.
inline std::string changed_graph(const std::string& text, Draw* draw, const ChangeBytes& bytes) {
  std::vector<std::string> lines = split_lines(text);
  std::string& line = drawn(lines, draw);
  const auto tokens = tokens_of(line);
  switch ((*draw)() % 8) {
    case 0:
      line = bytes(line);
      break;
    case 1:
      lines.erase(lines.begin() + (&line - lines.data()));
      break;
    case 2:
      std::swap(line, drawn(lines, draw));
      break;
    case 3:
      lines.insert(lines.begin() + (&line - lines.data()), std::string(line));
      break;
    case 4:
      add_node(&lines, draw);
      break;
    default:
      if (tokens.empty()) break;
      const auto [at, length] = drawn(tokens, draw);
      const bool inserts = (*draw)() % 6 == 0;
      line.replace(at, inserts ? 0 : length, random_token(lines, draw) + (inserts ? " " : ""));
  }
  return join_lines(lines);
}

}  // namespace graft::deploy::test
