// tests/runtime/driver/op_tag_test.cpp: names become numbers and back.
#include "runtime/driver/op_tag.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace graft {
namespace {

TEST(OpTagTest, SameNameSameNumber) {
  EXPECT_EQ(op_tag(""), 0u);
  const uint32_t add = op_tag("aten::add");
  EXPECT_NE(add, 0u);
  EXPECT_EQ(op_tag(std::string("aten::") + "add"), add);
  EXPECT_NE(op_tag("aten::sub"), add);
  EXPECT_EQ(op_name(add), "aten::add");
  EXPECT_EQ(op_name(0), "");
  EXPECT_EQ(op_name(1u << 30), "");
}

TEST(OpTagTest, ScopesNest) {
  EXPECT_EQ(current_tag(), 0u);
  {
    const OpScope outer("outer op");
    EXPECT_EQ(op_name(current_tag()), "outer op");
    {
      const OpScope inner(op_tag("inner op"));
      EXPECT_EQ(op_name(current_tag()), "inner op");
      const OpScope none(0u);
      EXPECT_EQ(current_tag(), 0u);
    }
    EXPECT_EQ(op_name(current_tag()), "outer op");
    std::thread([] { EXPECT_EQ(current_tag(), 0u); }).join();
  }
  EXPECT_EQ(current_tag(), 0u);
}

TEST(OpTagTest, ThreadsAgree) {
  std::vector<std::thread> threads;
  std::vector<std::vector<uint32_t>> tags(4, std::vector<uint32_t>(200));
  for (auto& mine : tags) {
    threads.emplace_back([&mine] {
      for (size_t i = 0; i < mine.size(); ++i) mine[i] = op_tag("op " + std::to_string(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : tags) EXPECT_EQ(mine, tags[0]);
}

}  // namespace
}  // namespace graft
