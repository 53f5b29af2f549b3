// src/codegen/cache/toolchain.cpp: what blobs of a device depend on, and how they are named.
#include "codegen/cache/toolchain.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace graft {

graft_sink sink_into(std::string* text) {
  return {text, [](void* context, const void* data, size_t bytes) {
            static_cast<std::string*>(context)->append(static_cast<const char*>(data), bytes);
          }};
}

std::string toolchain_of(OpenDevice& device) {
  const auto slot = device.driver().table().toolchain_fingerprint;
  std::string text;
  if (slot == nullptr || Driver::call(slot, device.handle(), sink_into(&text)) != GRAFT_OK) {
    return "";
  }
  return device.driver().name() + "\n" + text;
}

std::string hash_text(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string first_lines(const std::string& text, const char* more) {
  size_t end = 0;
  for (int line = 0; line < 8 && end != std::string::npos; ++line) {
    end = text.find('\n', end == 0 ? 0 : end + 1);
  }
  end = std::min({end, text.size(), size_t{1500}});
  if (end == text.size()) return text;
  return fmt::format("{}\n... ({})", text.substr(0, end), more);
}

}  // namespace graft
