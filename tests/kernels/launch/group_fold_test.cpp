// tests/kernels/launch/group_fold_test.cpp: how a group's values meet; their sums are
// reduce_test's.
#include "kernels/launch/group_fold.h"

#include <gtest/gtest.h>

#include <string_view>

#include "codegen/print/dialect.h"
#include "codegen/print/printer.h"

namespace graft {
namespace {

std::string program(WorkMapping deal, int folds) {
  ir::Builder b("folds", ir::Family::kGpuLike);
  const ir::Address values = b.update(GRAFT_FLOAT32);
  GroupFold fold(b, {ir::Type::kF32}, deal);
  for (int i = 0; i < folds; ++i) {
    const auto add = [](const GroupFold::Values& x, const GroupFold::Values& y) {
      return GroupFold::Values{x[0] + y[0]};
    };
    values.store(b.item(), fold.fold({values.load(b.item())}, add)[0]);
  }
  const std::string text = ir::print(b.finish(), *ir::find_dialect("opencl-c"));
  return text.substr(text.find("__kernel"));
}

int count(const std::string& text, std::string_view word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(GroupFold, ClimbsATreeInLocalMemory) {
  const std::string text = program(WorkMapping::kLanes, 1);
  EXPECT_EQ(count(text, "barrier("), 7) << text;
  EXPECT_EQ(count(text, "graft_shuffle("), 0) << text;
}

TEST(GroupFold, MeetsOnceWhereSubGroupsExchangeValues) {
  const std::string text = program(WorkMapping::kShuffles, 1);
  EXPECT_EQ(count(text, "barrier("), 1) << text;
  EXPECT_EQ(count(text, "graft_shuffle("), 6) << text;
}

TEST(GroupFold, TheNextOneWaitsForReadersOfTheLast) {
  EXPECT_EQ(count(program(WorkMapping::kLanes, 2), "barrier("), 15);
  EXPECT_EQ(count(program(WorkMapping::kShuffles, 2), "barrier("), 3);
}

}  // namespace
}  // namespace graft
