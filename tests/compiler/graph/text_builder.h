// tests/compiler/graph/text_builder.h: graphs of a test, written without first and last lines.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "compiler/analysis/verifier.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/text.h"
#include "compiler/passes/pass.h"
#include "runtime/driver/error.h"

namespace graft::compiler::test {

inline constexpr std::string_view kHead = "graft-graph 1\ngraph t\n", kEnd = "end\n";

inline Graph graph_of(const std::string& body) {
  Graph graph = parse(std::string(kHead) + body + std::string(kEnd));
  verify(graph);
  return graph;
}

inline std::string body_of(const Graph& graph) {
  const std::string text = print(graph);
  return text.substr(kHead.size(), text.size() - kHead.size() - kEnd.size());
}

// The graph after a pass, in its text form; the pass runs twice and changes nothing more.
inline std::string after(int (*pass)(Graph&), const std::string& body) {
  Graph graph = graph_of(body);
  pass(graph);
  verify(graph);
  const std::string once = body_of(graph);
  pass(graph);
  verify(graph);
  EXPECT_EQ(body_of(graph), once) << "the pass is not done after one run";
  return once;
}

// What a call throws, "" for nothing.
template <class Call>
std::string message(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace graft::compiler::test
