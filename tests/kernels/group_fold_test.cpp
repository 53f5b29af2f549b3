// tests/kernels/group_fold_test.cpp: how a group's values meet; their sums are reduce_test's.
#include "kernels/group_fold.h"

#include <gtest/gtest.h>

#include <string_view>

#include "codegen/dialect.h"
#include "codegen/printer.h"

namespace graft {
namespace {

std::string program(Deal deal, int folds) {
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
  const std::string text = program(Deal::kLanes, 1);
  EXPECT_EQ(count(text, "barrier("), 7) << text;
  EXPECT_EQ(count(text, "graft_shuffle("), 0) << text;
}

TEST(GroupFold, MeetsOnceWhereSubGroupsExchangeValues) {
  const std::string text = program(Deal::kShuffles, 1);
  EXPECT_EQ(count(text, "barrier("), 1) << text;
  EXPECT_EQ(count(text, "graft_shuffle("), 6) << text;
}

TEST(GroupFold, TheNextOneWaitsForReadersOfTheLast) {
  EXPECT_EQ(count(program(Deal::kLanes, 2), "barrier("), 15);
  EXPECT_EQ(count(program(Deal::kShuffles, 2), "barrier("), 3);
}

}  // namespace
}  // namespace graft
