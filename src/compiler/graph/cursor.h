// src/compiler/graph/cursor.h: reads one line of the text form, word by word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/graph/size.h"

namespace graft::compiler {

// A place in a line. Every reading function skips blanks first and throws Error INVALID_ARGUMENT
// with line, column, what was expected and what was found when the text is not that.
class Cursor {
 public:
  Cursor(std::string_view line, int64_t number) : line_(line), number_(number) {}

  bool at_end();
  char peek();                              // 0 at the end
  bool accept(std::string_view sign);       // steps over a sign, if it is there
  bool accept_word(std::string_view word);  // the same for a whole identifier
  void expect(std::string_view sign, const char* where);
  void expect_end();

  std::string identifier(const char* what);
  std::string name();  // of a value: "%x" gives "x"
  std::string path();  // identifiers joined by dots
  std::string word();  // after the '@'
  std::string quoted();
  int64_t integer(const char* what);  // with a sign

  // Whether a float stands here (its form, or inf and nan); reads it.
  bool at_float();
  double number();

  // A symbolic whole number, made canonical. At most 64 parentheses deep.
  Size size();

  [[noreturn]] void fail(std::string_view expected) const;
  // The same for what is well formed and still wrong.
  [[noreturn]] void reject(std::string_view text) const;

 private:
  void skip();
  Size product();
  Size factor();
  size_t float_length() const;

  std::string_view line_;
  int64_t number_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace graft::compiler
