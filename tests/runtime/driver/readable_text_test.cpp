// tests/runtime/driver/readable_text_test.cpp: what is no UTF-8 becomes '?', byte by byte.
#include "runtime/driver/readable_text.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(ReadableText, TextStaysAsItIs) {
  for (const char* text : {"", "plain", "two\nlines\tand a tab", "\xC3\xA9", "\xE2\x82\xAC",
                           "\xF0\x9F\x98\x80", "\xED\x9F\xBF\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(readable(text), text);
  }
}

TEST(ReadableText, EachWrongByteIsAMark) {
  EXPECT_EQ(readable("a\xFFz"), "a?z");
  EXPECT_EQ(readable("\xC3"), "?") << "cut off";
  EXPECT_EQ(readable("\xC3(z"), "?(z");
  EXPECT_EQ(readable("\xE2\x82"), "??");
  EXPECT_EQ(readable("\xC0\xAF"), "??") << "overlong";
  EXPECT_EQ(readable("\xE0\x80\x80"), "???") << "overlong";
  EXPECT_EQ(readable("\xED\xA0\x80"), "???") << "half of a pair";
  EXPECT_EQ(readable("\xF4\x90\x80\x80"), "????") << "beyond the last character";
  EXPECT_EQ(readable("\xF8\x88\x80\x80\x80"), "?????");
  EXPECT_EQ(readable("\x80"), "?");
}

TEST(ReadableText, ControlCharactersAreMarks) {
  EXPECT_EQ(readable("a\rb\x1b[31m\x7f"), "a?b?[31m?");
  EXPECT_EQ(readable(std::string_view("a\0b", 3)), "a?b");
}

}  // namespace
}  // namespace graft
