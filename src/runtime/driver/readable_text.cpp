// src/runtime/driver/readable_text.cpp: makes text of a driver fit to be shown.
#include "runtime/driver/readable_text.h"

#include <algorithm>
#include <cstdint>

namespace graft {
namespace {

// Bytes of the UTF-8 character at the beginning of text, 0 where there is none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  uint32_t code = first & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return overlong || surrogate || code > 0x10FFFF ? 0 : size;
}

bool is_control(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return (byte < 0x20 && letter != '\n' && letter != '\t') || byte == 0x7F;
}

}  // namespace

std::string readable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t size = character_bytes(text);
    if (size == 0 || is_control(text[0])) {
      shown += '?';
    } else {
      shown += text.substr(0, size);
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return shown;
}

}  // namespace graft
