// tests/compiler/passes/reinplacing_test.cpp: when a state that is copied over an input is written
// in place.
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::after;

const std::string kInputs =
    "input %c: float32[8, 4] buffer mutated\ninput %i: int64[2] activation\n"
    "input %v: float32[2, 4] activation\n";
const std::string kPut = "node %p: float32[8, 4] = aten.index_put.default(%c, [%i], %v)\n";
const std::string kCopy =
    "node %w: float32[8, 4] = aten.copy_.default(%c, %p) writes %c views %c\n";
const std::string kRead = "node %y: float32[8, 4] = aten.neg.default(%p)\n";
const std::string kWritten =
    "node %p: float32[8, 4] = aten.index_put_.default(%c, [%i], %v) writes %c views %c\n";

TEST(Reinplacing, WritesTheInputAndReadsItAfterwards) {
  EXPECT_EQ(after(reinplace_writes, kInputs + kPut + kRead + kCopy + "output %y\n"),
            kInputs + kWritten + kRead + "output %y\n");
}

TEST(Reinplacing, OldStatesMayBeReadBefore) {
  const std::string old = "node %o: float32[8, 4] = aten.neg.default(%c)\n";
  EXPECT_EQ(
      after(reinplace_writes, kInputs + old + kPut + kRead + kCopy + "output %y\noutput %o\n"),
      kInputs + old + kWritten + kRead + "output %y\noutput %o\n");
}

TEST(Reinplacing, FollowsSeveralWrites) {
  const std::string again = "node %q: float32[8, 4] = aten.index_put.default(%p, [%i], %v, true)\n";
  const std::string copy =
      "node %w: float32[8, 4] = aten.copy_.default(%c, %q) writes %c views %c\n";
  EXPECT_EQ(after(reinplace_writes, kInputs + kPut + again + copy + "output none\n"),
            kInputs + kWritten +
                "node %q: float32[8, 4] = aten.index_put_.default(%p, [%i], %v, true) writes %p "
                "views %p\n"
                "output none\n");
}

TEST(Reinplacing, UsersOfTheCopySeeTheInput) {
  const std::string read = "node %y: float32[8, 4] = aten.neg.default(";
  EXPECT_EQ(after(reinplace_writes, kInputs + kPut + kCopy + read + "%w)\noutput %y\n"),
            kInputs + kWritten + read + "%p)\noutput %y\n");
}

TEST(Reinplacing, LeavesWhatSomebodyNeedsAsItIs) {
  const std::string old = "node %o: float32[8, 4] = aten.neg.default(%c)\n";
  const std::string rows = "node %r: float32[2, 4] = aten.slice.Tensor(%c, 0, 0, 2) views %c\n";
  const std::string itself = "node %p: float32[8, 4] = aten.index_put.default(%c, [%i], %r)\n";
  const std::string other = "node %p: float32[8, 4] = aten.mul.Tensor(%c, %c)\n";
  const std::string twice =
      "node %x: float32[8, 4] = aten.copy_.default(%c, %y) writes %c views %c\n";
  for (const std::string& body : {
           kPut + old + kCopy + "output %o\n",             // the old state is read later
           kPut + kCopy + "output %p\n",                   // the result has memory of its own
           rows + itself + kCopy + "output none\n",        // the values lie in the old state
           other + kCopy + "output none\n",                // no write of some elements
           kPut + kRead + kCopy + twice + "output none\n"  // another writer
       }) {
    EXPECT_EQ(after(reinplace_writes, kInputs + body), kInputs + body);
  }
}

}  // namespace
}  // namespace graft::compiler
