// drivers/trace/call/arguments.cpp: arguments of any slot: shown, and watched where the slot writes
// them.
#include "call/arguments.h"

namespace graft::trace {
namespace {

constexpr uint64_t kSmall = uint64_t{1}
                            << 32;  // below it a number is a size rather than an address
constexpr size_t kShown = 60;       // characters of a text

std::string printed(const char* format, uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::vector<std::string> names_of(const char* parameters) {
  std::vector<std::string> names;
  std::string word, last;
  int depth = 0;  // of parentheses: a function's parameters have names, and its name is in some
  for (const char* at = parameters; *at != '\0'; ++at) {
    const char letter = *at;
    const bool named = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
    if (letter == '(') ++depth;
    if (named && depth <= 2) {
      word += letter;
      continue;
    }
    if (!word.empty()) last = std::exchange(word, "");
    if (letter == '(' && depth == 2 && last == "void") last.clear();
    if (letter == ')') --depth;
    const bool ends = (letter == ',' && depth == 1) || (letter == ')' && depth == 0);
    if (ends && !last.empty()) names.push_back(std::exchange(last, ""));
  }
  return names;
}

std::string shown(uint64_t value) {
  return value < kSmall ? std::to_string(value) : printed("0x%" PRIx64, value);
}

std::string shown(int64_t value) { return std::to_string(value); }

std::string shown_pointer(const void* pointer) {
  return pointer == nullptr ? "null" : printed("0x%" PRIx64, reinterpret_cast<uint64_t>(pointer));
}

std::string shown_text(const char* text) {
  if (text == nullptr) return "null";
  const size_t bytes = ::strnlen(text, kShown + 1);
  std::string cut = "'" + std::string(text, std::min(bytes, kShown));
  for (char& letter : cut) letter = letter == '\n' ? ' ' : letter;
  return cut + (bytes > kShown ? "...'" : "'");
}

std::string shown_launch(const graft_launch* launch) {
  if (launch == nullptr) return "null";
  std::string text = "{tag " + std::to_string(launch->tag) + ", grid";
  for (const uint64_t groups : launch->grid) text += " " + std::to_string(groups);
  text += ", group";
  for (const uint32_t items : launch->group) text += " " + std::to_string(items);
  return text + ", " + std::to_string(launch->argument_count) + " arguments}";
}

}  // namespace graft::trace
