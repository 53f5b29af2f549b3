// src/kernels/operation/vocabulary.cpp: the operators that a vendor may bring kernels for.
#include "kernels/operation/vocabulary.h"

#include <fmt/format.h>

#include <span>

namespace graft {
namespace {

using Words = std::vector<Signature::Word>;

Words words_of(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    Signature::Word word;
    for (const char letter : text.substr(0, end)) {
      if (letter == '?') {
        word.optional = true;
      } else if (letter == '+') {
        word.updated = true;
      } else if (letter == '*') {
        word.repeated = true;
      } else {
        word.name += letter;
      }
    }
    words.push_back(std::move(word));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

Words numbered(const char* name, int count, bool optional) {
  Words words;
  for (int i = 0; i < count; ++i) {
    words.push_back(
        {name + (count > 1 ? std::to_string(i) : std::string()), optional, false, false});
  }
  return words;
}

// An input that is a number is missing, and its number stands before the row's scalars.
Signature signature_of(const Op& row) {
  Signature made;
  made.name = row.name;
  made.written = numbered("output", row.outputs, false);
  made.read = numbered("input", row.inputs, true);
  made.integers = words_of("compute");
  made.scalars = words_of("input_number*");
  if (row.scalars != 0) {
    for (Signature::Word& word : numbered("scalar", row.scalars, false)) {
      word.repeated = (row.types & kComplexTypes) != 0;
      made.scalars.push_back(std::move(word));
    }
  }
  return made;
}

std::string list_json(const Words& words) {
  std::string text;
  for (const Signature::Word& word : words) {
    text +=
        fmt::format("{}\"{}{}{}{}\"", text.empty() ? "" : ", ", word.name, word.optional ? "?" : "",
                    word.updated ? "+" : "", word.repeated ? "*" : "");
  }
  return "[" + text + "]";
}

}  // namespace

const std::vector<Signature>& vocabulary() {
  // Never destroyed: streams may run while the process ends.
  static const auto& all = *[] {
    auto* made = new std::vector<Signature>();
#define GRAFT_SIGNATURE(name, written, read, integers, numbers, scalars, header) \
  made->push_back({#name, words_of(written), words_of(read), words_of(integers), \
                   words_of(numbers), words_of(scalars), header});
    GRAFT_OPERATIONS(GRAFT_SIGNATURE)
#undef GRAFT_SIGNATURE
    for (const Op& row : op_table()) made->push_back(signature_of(row));
    return made;
  }();
  return all;
}

std::string vocabulary_json() {
  std::string text;
  for (const Signature& one : vocabulary()) {
    text += fmt::format(
        "{}{{\"name\": \"{}\", \"written\": {}, \"read\": {}, \"integers\": {}, \"numbers\": {}, "
        "\"scalars\": {}, \"header\": \"{}\"}}",
        text.empty() ? "" : ",\n", one.name, list_json(one.written), list_json(one.read),
        list_json(one.integers), list_json(one.numbers), list_json(one.scalars), one.header);
  }
  return "[" + text + "]\n";
}

}  // namespace graft
