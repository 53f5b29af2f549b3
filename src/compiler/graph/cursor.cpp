// src/compiler/graph/cursor.cpp: reads one line of the text form, word by word.
#include "compiler/graph/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/driver/error.h"

namespace graft::compiler {

namespace {

constexpr int kMaxDepth = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

void Cursor::skip() {
  while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
}

bool Cursor::at_end() {
  skip();
  return at_ == line_.size();
}

char Cursor::peek() { return at_end() ? '\0' : line_[at_]; }

bool Cursor::accept(std::string_view sign) {
  skip();
  if (line_.substr(at_, sign.size()) != sign) return false;
  at_ += sign.size();
  return true;
}

bool Cursor::accept_word(std::string_view word) {
  skip();
  if (line_.substr(at_, word.size()) != word) return false;
  const size_t end = at_ + word.size();
  if (end < line_.size() && (is_letter(line_[end]) || is_digit(line_[end]))) return false;
  at_ = end;
  return true;
}

void Cursor::expect(std::string_view sign, const char* where) {
  if (!accept(sign)) fail(fmt::format("\"{}\" {}", sign, where));
}

void Cursor::expect_end() {
  if (!at_end()) fail("the end of the line");
}

std::string Cursor::identifier(const char* what) {
  skip();
  size_t end = at_;
  while (end < line_.size() && (is_letter(line_[end]) || (end > at_ && is_digit(line_[end]))))
    ++end;
  if (end == at_) fail(what);
  std::string text{line_.substr(at_, end - at_)};
  at_ = end;
  return text;
}

std::string Cursor::name() {
  if (!accept("%")) fail("a value, such as %x");
  return identifier("a value's name after %");
}

std::string Cursor::path() {
  std::string text = identifier("an operator, such as aten.add.Tensor");
  while (at_ < line_.size() && line_[at_] == '.') {
    ++at_;
    text += '.' + identifier("a name after the dot");
  }
  return text;
}

std::string Cursor::word() {
  expect("@", "before a word");
  size_t end = at_;
  while (end < line_.size() &&
         (is_letter(line_[end]) || is_digit(line_[end]) || line_[end] == ':')) {
    ++end;
  }
  if (end == at_) fail("a word after @, such as @float32");
  std::string text{line_.substr(at_, end - at_)};
  at_ = end;
  return text;
}

std::string Cursor::quoted() {
  expect("\"", "before a string");
  std::string text;
  while (at_ < line_.size() && line_[at_] != '"') {
    char c = line_[at_++];
    if (c == '\\') {
      if (at_ == line_.size()) fail("a character after \\");
      c = line_[at_++];
      if (c == 'n')
        c = '\n';
      else if (c == 't')
        c = '\t';
      else if (c != '"' && c != '\\')
        fail("one of \\\" \\\\ \\n \\t");
    }
    text += c;
  }
  expect("\"", "after a string");
  return text;
}

int64_t Cursor::integer(const char* what) {
  skip();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(line_.data() + at_, line_.data() + line_.size(), value);
  if (error == std::errc::result_out_of_range) fail("an integer of 64 bits");
  if (error != std::errc()) fail(what);
  at_ = static_cast<size_t>(end - line_.data());
  return value;
}

// Characters of the float that begins here; 0 where none does.
size_t Cursor::float_length() const {
  size_t i = at_;
  if (i < line_.size() && line_[i] == '-') ++i;
  for (const std::string_view special : {"inf", "nan"}) {
    const size_t end = i + special.size();
    const bool whole = end >= line_.size() || !(is_letter(line_[end]) || is_digit(line_[end]));
    if (line_.substr(i, special.size()) == special && whole) return end - at_;
  }
  const size_t digits = i;
  bool real = false;
  while (i < line_.size() && is_digit(line_[i])) ++i;
  if (i == digits) return 0;
  if (i < line_.size() && line_[i] == '.') {
    real = true;
    for (++i; i < line_.size() && is_digit(line_[i]);) ++i;
  }
  if (i < line_.size() && line_[i] == 'e') {
    size_t j = i + 1;
    if (j < line_.size() && (line_[j] == '-' || line_[j] == '+')) ++j;
    if (j < line_.size() && is_digit(line_[j])) {
      real = true;
      for (i = j; i < line_.size() && is_digit(line_[i]);) ++i;
    }
  }
  return real ? i - at_ : 0;
}

bool Cursor::at_float() {
  skip();
  return float_length() > 0;
}

double Cursor::number() {
  skip();
  const std::string_view text = line_.substr(at_, float_length());
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc()) fail("a float that a double can hold");
  at_ += text.size();
  return value;
}

Size Cursor::size() {
  Size sum = accept("-") ? Size() - product() : product();
  while (true) {
    if (accept("+")) {
      sum = sum + product();
    } else if (accept("-")) {
      sum = sum - product();
    } else {
      return sum;
    }
  }
}

Size Cursor::product() {
  Size result = factor();
  while (accept("*")) result = result * factor();
  return result;
}

Size Cursor::factor() {
  if (++depth_ > kMaxDepth) fail("at most 64 nested parentheses");
  Size result;
  if (accept("(")) {
    result = size();
    expect(")", "after an expression");
  } else if (is_digit(peek())) {
    result = integer("an integer");
  } else {
    const std::string name = identifier("an integer or a symbol");
    if (accept("(")) {
      const Size a = size();
      expect(",", "between the two operands");
      const Size b = size();
      expect(")", "after the two operands");
      using Function = std::pair<std::string_view, Size (*)(const Size&, const Size&)>;
      static constexpr Function kFunctions[] = {{"floordiv", Size::floor_div},
                                                {"mod", Size::mod},
                                                {"max", Size::max},
                                                {"min", Size::min}};
      const auto* known = std::ranges::find(kFunctions, name, &Function::first);
      if (known == std::end(kFunctions)) {
        reject(fmt::format("expected floordiv, mod, max or min, found \"{}\"", name));
      }
      result = known->second(a, b);
    } else {
      result = Size::symbol(name);
    }
  }
  --depth_;
  return result;
}

void Cursor::fail(std::string_view expected) const {
  std::string found = "the end of the line";
  if (at_ < line_.size()) found = fmt::format("\"{}\"", line_.substr(at_, 24));
  reject(fmt::format("expected {}, found {}", expected, found));
}

void Cursor::reject(std::string_view text) const {
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("graft-graph line {}, column {}: {}", number_, at_ + 1, text));
}

}  // namespace graft::compiler
