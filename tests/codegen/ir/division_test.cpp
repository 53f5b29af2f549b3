// tests/codegen/ir/division_test.cpp: integer division by what a loop does not change.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "codegen/ir/builder.h"
#include "codegen/print/printer.h"
#include "tests/codegen/compiled.h"

namespace graft::ir {
namespace {

// quotients[i] = in[i] / divisor, remainders[i] = in[i] % divisor
Kernel divide() {
  Builder b("divide");
  const Address quotients = b.write(GRAFT_INT64), remainders = b.write(GRAFT_INT64);
  const Address in = b.read(GRAFT_INT64);
  const Value divisor = b.index(), count = b.index();
  b.vector_loop(b.i64(0), count, [&](Value i) {
    const Value x = in.load(i);
    quotients.store(i, x / divisor);
    remainders.store(i, x % divisor);
  });
  return b.finish();
}

int64_t any(std::mt19937_64& random) {
  constexpr int64_t kEdges[] = {0, 1, 2, 3, 7, INT64_MAX, INT64_MIN, int64_t{1} << 62, 1ll << 53};
  const int64_t bits = static_cast<int64_t>(random());
  if (random() % 3 != 0) return bits >> random() % 64;
  const uint64_t edge = static_cast<uint64_t>(kEdges[random() % 9]) + random() % 5 - 2;
  return static_cast<int64_t>(random() % 2 == 0 ? edge : 0 - edge);
}

class Division : public ::testing::TestWithParam<const char*> {};

TEST_P(Division, ByALoopsInvariantIsExact) {
  const Kernel kernel = divide();
  const std::string text = print(kernel, *find_dialect("c"));
  EXPECT_NE(text.find("= graft_quotient_i64("), std::string::npos);
  EXPECT_NE(text.find("= graft_remainder_i64("), std::string::npos);
  const Compiled compiled(kernel, GetParam());
  std::mt19937_64 random(7);
  std::vector<int64_t> in(256), quotients(256), remainders(256);
  for (int round = 0; round < 2000; ++round) {
    const int64_t divisor = any(random);
    for (int64_t& x : in) x = any(random);
    graft_kernel_argument arguments[5];
    arguments[0].address = quotients.data();
    arguments[1].address = remainders.data();
    arguments[2].address = in.data();
    arguments[3].bits = static_cast<uint64_t>(divisor);
    arguments[4].bits = in.size();
    compiled(arguments);
    for (size_t i = 0; i < in.size(); ++i) {
      const bool special = divisor == 0 || divisor == -1;
      const int64_t negated = static_cast<int64_t>(0 - static_cast<uint64_t>(in[i]));
      const int64_t quotient = divisor == 0 ? 0 : special ? negated : in[i] / divisor;
      ASSERT_EQ(quotients[i], quotient) << in[i] << " / " << divisor;
      ASSERT_EQ(remainders[i], special ? 0 : in[i] % divisor) << in[i] << " % " << divisor;
    }
  }
}

// With the processor's high half of a product, and as a Vector Engine's program computes it.
INSTANTIATE_TEST_SUITE_P(HighHalf, Division, ::testing::Values("", "-D__ve__"));

}  // namespace
}  // namespace graft::ir
