// tests/compiler/graph/size_test.cpp: symbolic sizes: canonical forms, evaluation, equality.
#include "compiler/graph/size.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

const Size a = Size::symbol("a"), b = Size::symbol("b");

int64_t value(const Size& size, int64_t x, int64_t y) {
  return size.evaluate([&](std::string_view name) { return name == "a" ? x : y; });
}

TEST(Size, SumsOfProductsAreCanonical) {
  EXPECT_EQ((a * b + b * a).text(), "2*a*b");
  EXPECT_EQ(((a + 1) * (a - 1)).text(), "a*a - 1");
  EXPECT_EQ((Size(3) - a).text(), "-a + 3");
  EXPECT_EQ((a - a).text(), "0");
  EXPECT_EQ((b + a * Size(0) + 7).text(), "b + 7");
  EXPECT_TRUE((a + b) * (a + b) == a * a + Size(2) * a * b + b * b);
  EXPECT_FALSE(a == b);
}

TEST(Size, FunctionsAreComputedWhereTheyCan) {
  EXPECT_EQ(Size::floor_div(Size(-7), Size(2)).text(), "-4");
  EXPECT_EQ(Size::floor_div(a * 6 + 4, Size(2)).text(), "3*a + 2");
  EXPECT_EQ(Size::floor_div(a * 4 + b, Size(2)).text(), "2*a + floordiv(b, 2)");
  EXPECT_EQ(Size::mod(Size(-7), Size(3)).text(), "2");
  EXPECT_EQ(Size::mod(a * 4 + 9, Size(4)).text(), "1");
  EXPECT_EQ(Size::max(a + 1, a).text(), "a + 1");
  EXPECT_EQ(Size::min(a + 1, a).text(), "a");
  EXPECT_TRUE(Size::max(a, b) == Size::max(b, a));
}

TEST(Size, RefusesWhatHasNoValue) {
  EXPECT_THROW(Size::floor_div(a, Size(0)), Error);
  EXPECT_THROW(value(Size::mod(a, b), 3, 0), Error);
  EXPECT_THROW(Size(INT64_MAX) * Size(2), Error);
  EXPECT_THROW(value(a * a, INT64_MAX, 0), Error);
  EXPECT_EQ(Size(INT64_MIN).text(), "-9223372036854775808");
}

// Whatever is simplified has the value that the plain arithmetic has.
// Sixteen such sizes in one type would be a row-major stride of 43 million terms.
TEST(Size, RefusesWhatWouldGrowWithoutEnd) {
  Size product = 1, power = 1;
  const auto grow = [&] {
    for (int i = 0; i < 16; ++i) {
      const std::string n = std::to_string(i);
      product = product * (a + Size::symbol("b" + n) + Size::symbol("c" + n));
    }
  };
  EXPECT_TRUE(test::has(test::message(grow), "more than 1024 terms"));
  EXPECT_TRUE(test::has(test::message([&] {
                          for (int i = 0; i < 65; ++i) power = power * a;
                        }),
                        "64 factors"));
  EXPECT_EQ(power.terms()[0].factors.size(), 64u);
}

TEST(Size, SimplifiedExpressionsKeepTheirValues) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const int64_t x = static_cast<int64_t>(random() % 41) - 20,
                  y = static_cast<int64_t>(random() % 30) + 1;
    std::vector<std::pair<Size, int64_t>> pool{{a, x}, {b, y}, {Size(3), 3}, {Size(-2), -2}};
    for (int step = 0; step < 6; ++step) {
      const auto& [s, v] = pool[random() % pool.size()];
      const auto& [t, w] = pool[random() % pool.size()];
      const int64_t divisor = static_cast<int64_t>(random() % 5) + 1;
      std::pair<Size, int64_t> made;
      switch (random() % 7) {
        case 0:
          made = {s + t, v + w};
          break;
        case 1:
          made = {s - t, v - w};
          break;
        case 2:
          made = {s * t, v * w};
          break;
        case 3:
          made = {Size::floor_div(s, divisor), floor_div(v, divisor)};
          break;
        case 4:
          made = {Size::mod(s, divisor), floor_mod(v, divisor)};
          break;
        case 5:
          made = {Size::max(s, t), std::max(v, w)};
          break;
        default:
          made = {Size::min(s, t), std::min(v, w)};
      }
      if (std::abs(made.second) > 1000000) break;
      pool.push_back(made);
      ASSERT_EQ(value(made.first, x, y), made.second) << made.first.text();
    }
  }
}

}  // namespace
}  // namespace graft::compiler
