// tests/runtime/driver/version_test.cpp: the version has the form that others parse.
#include "runtime/driver/version.h"

#include <gtest/gtest.h>

#include <regex>

namespace graft {
namespace {

TEST(Version, HasThreeNumbers) {
  EXPECT_TRUE(std::regex_match(version(), std::regex(R"(\d+\.\d+\.\d+)")));
}

}  // namespace
}  // namespace graft
