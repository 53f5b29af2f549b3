// tests/vendor/graph_chip/executable.h: the chip's graph compiler, which interprets a text.
#pragma once

#include <string>

#include "graft/extensions.h"
#include "text.h"

namespace chip {

// The first results of the nodes that the chip computes, a line each.
std::string offer(const Graph& graph);

class Executable {
 public:
  explicit Executable(const std::string& text) : graph_(parse(text)) {}

  const std::string& name() const { return graph_.name; }
  uint64_t workspace_bytes(const int64_t* symbols) const;
  // Throws std::exception.
  void run(const graft_graph_run& run) const;

 private:
  Symbols named(const int64_t* symbols) const;

  const Graph graph_;
};

}  // namespace chip
