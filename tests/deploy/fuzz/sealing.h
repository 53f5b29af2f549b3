// tests/deploy/fuzz/sealing.h: the parts of an artefact, and the file of changed parts with hashes
// that are right.
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/cache/toolchain.h"
#include "tests/deploy/fuzz/beside.h"

namespace graft::deploy::test {

using Json = nlohmann::ordered_json;

struct Parts {
  std::string header, elements;  // the header's text, the bytes behind it
};

// Nothing where the bytes end before their header.
inline std::optional<Parts> parts_of(std::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.remove_prefix(sizeof length);
  if (length > bytes.size()) return std::nullopt;
  return Parts{std::string(bytes.substr(0, length)), std::string(bytes.substr(length))};
}

inline std::string joined(const Parts& parts) {
  const uint64_t length = parts.header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + parts.header + parts.elements;
}

inline std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Puts the header's hash in its place, if it has that.
inline void seal_header(std::string* header) {
  static constexpr std::string_view kKey = "\"graft_hash\":\"";
  constexpr size_t kDigits = 32;
  const size_t key = header->find(kKey);
  if (key == std::string::npos || header->size() - key - kKey.size() < kDigits) return;
  header->replace(key + kKey.size(), kDigits, std::string(kDigits, '0'));
  header->replace(key + kKey.size(), kDigits, hash_text(*header));
}

// The hash of each tensor's bytes, as far as the header says where they are.
inline Json hashes_of(const Json& header, const std::string& elements) {
  Json hashes = Json::object();
  for (const auto& [name, tensor] : header.items()) {
    const auto offsets = tensor.is_object() ? tensor.find("data_offsets") : tensor.end();
    if (name == "__metadata__" || offsets == tensor.end() || !offsets->is_array() ||
        offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
        !(*offsets)[1].is_number_unsigned()) {
      continue;
    }
    const auto begin = (*offsets)[0].get<uint64_t>(), end = (*offsets)[1].get<uint64_t>();
    if (begin > end || end > elements.size()) continue;
    hashes[name] = hash_text(std::string_view(elements).substr(begin, end - begin));
  }
  return hashes;
}

// Makes the hashes of references right whose file and tensor there are. own: the artefact's.
inline void seal_references(Json* manifest, const Json& own) {
  static const Json beside = [] {
    const Parts parts = *parts_of(weights_bytes());
    return hashes_of(Json::parse(parts.header), parts.elements);
  }();
  const auto references = manifest->find("references");
  if (references == manifest->end() || !references->is_object()) return;
  for (Json& one : *references) {
    if (!one.is_object() || !one.contains("file") || !one.contains("tensor")) continue;
    const Json& hashes = one["file"] == kModelFile ? own : beside;
    if (!one["tensor"].is_string()) continue;
    const auto hash = hashes.find(one["tensor"].get<std::string>());
    if (hash != hashes.end()) one["hash"] = *hash;
  }
}

inline Json* manifest_text(Json* header) {
  if (!header->is_object()) return nullptr;
  const auto metadata = header->find("__metadata__");
  if (metadata == header->end() || !metadata->is_object()) return nullptr;
  const auto text = metadata->find("graft_model");
  return text != metadata->end() && text->is_string() ? &*text : nullptr;
}

// The file of these parts. Every hash that can be made right is, so that a reader goes on behind
// it. change: of the manifest, where it is an object of JSON.
template <class Change>
std::string sealed(Parts parts, Change&& change) {
  Json header = Json::parse(parts.header, nullptr, false);
  Json* const text = manifest_text(&header);
  if (text != nullptr) {
    Json manifest = Json::parse(text->get<std::string>(), nullptr, false);
    if (manifest.is_object()) {
      change(&manifest);
      if (manifest.is_object()) {
        manifest["hashes"] = hashes_of(header, parts.elements);
        seal_references(&manifest, manifest["hashes"]);
      }
      *text = text_of(manifest);
    }
    parts.header = text_of(header);
  }
  seal_header(&parts.header);
  return joined(parts);
}

inline std::string sealed(Parts parts) {
  return sealed(std::move(parts), [](Json*) {});
}

}  // namespace graft::deploy::test
