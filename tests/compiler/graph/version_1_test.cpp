// tests/compiler/graph/version_1_test.cpp: graft-graph 1 is frozen: committed texts stay readable.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/analysis/verifier.h"
#include "compiler/graph/text.h"
#include "runtime/driver/error.h"

namespace graft::compiler {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The worked example of a page.
std::string example_of(const char* page) {
  const std::string text = content(std::string(GRAFT_TEST_SOURCE_DIR "/docs/") + page);
  const std::string open = "```graft-graph\n";
  const size_t begin = text.find(open) + open.size();
  return text.substr(begin, text.find("```", begin) - begin);
}

TEST(Version1, CommittedTextsComeBackAsTheyAre) {
  int texts = 0;
  const std::string folder = GRAFT_TEST_SOURCE_DIR "/tests/vendor/graph_text_1";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".txt") continue;
    ++texts;
    const std::string text = content(file.path());
    const Graph graph = parse(text);
    EXPECT_NO_THROW(verify(graph)) << file.path();
    EXPECT_EQ(print(graph), text) << file.path();
  }
  EXPECT_GE(texts, 3);
}

TEST(Version1, ThePagesShowThem) {
  EXPECT_EQ(print(parse(example_of("drivers/graph-text-1.md"))),
            content(GRAFT_TEST_SOURCE_DIR "/tests/vendor/graph_text_1/part.txt"));
  EXPECT_EQ(example_of("develop/compiler-ir.md"),
            content(GRAFT_TEST_SOURCE_DIR "/tests/vendor/graph_text_1/whole.txt"));
}

TEST(Version1, AnotherVersionIsRefused) {
  EXPECT_THROW(parse("graft-graph 2\ngraph g\nend\n"), Error);
}

}  // namespace
}  // namespace graft::compiler
