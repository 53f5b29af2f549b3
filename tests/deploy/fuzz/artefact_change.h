// tests/deploy/fuzz/artefact_change.h: another file from the bytes of one, most with hashes that
// are right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/deploy/fuzz/graph_change.h"
#include "tests/deploy/fuzz/sealing.h"

namespace graft::deploy::test {

inline void collect(Json* json, std::vector<Json*>* all) {
  all->push_back(json);
  if (!json->is_structured()) return;
  for (Json& one : *json) collect(&one, all);
}

// What references say: files, some outside of the folder or no files, and tensors.
inline const std::vector<std::string> kPlaces = {kWeightsFile,
                                                 kModelFile,
                                                 kCutFile,
                                                 "nowhere",
                                                 "../" + kWeightsFile,
                                                 "./" + kWeightsFile,
                                                 "/dev/zero",
                                                 "/",
                                                 "",
                                                 "..",
                                                 "sub/../" + kModelFile,
                                                 "fc.weight",
                                                 "fc.bias",
                                                 "half",
                                                 "none",
                                                 "F32",
                                                 "BF16",
                                                 "F16"};

// One value becomes another, goes or comes twice.
inline void change_json(Json* json, Draw* draw, const ChangeBytes& bytes) {
  static constexpr int64_t kNumbers[] = {0, 1, -1, 2, 3, 16, 17, 64, 1 << 20, INT64_MAX, INT64_MIN};
  std::vector<Json*> all;
  collect(json, &all);
  Json* const one = drawn(all, draw);
  switch ((*draw)() % 9) {
    case 8:
      *one = drawn(kPlaces, draw);
      break;
    case 0:
      *one = Json(*drawn(all, draw));
      break;
    case 1:
      if (one->is_structured() && !one->empty()) {
        one->erase(std::next(one->begin(), static_cast<ptrdiff_t>((*draw)() % one->size())));
      }
      break;
    case 2:
      if (one->is_array() && !one->empty()) one->push_back(Json(one->back()));
      break;
    case 3:
      if (one->is_string()) *one = bytes(one->get<std::string>());
      break;
    case 4:
      if (one->is_array()) one->push_back(drawn(kNumbers, draw));
      break;
    case 5:
      *one = Json(drawn(words(), draw));
      break;
    default:
      if (!one->is_structured()) *one = drawn(kNumbers, draw);
  }
}

inline std::string changed_header(Parts parts, Draw* draw, const ChangeBytes& bytes) {
  Json header = Json::parse(parts.header, nullptr, false);
  if (header.is_discarded()) return joined({bytes(parts.header), parts.elements});
  change_json(&header, draw, bytes);
  parts.header = text_of(header);
  return sealed(std::move(parts));
}

inline std::string changed_manifest_text(Parts parts, const ChangeBytes& bytes) {
  Json header = Json::parse(parts.header, nullptr, false);
  if (Json* const text = manifest_text(&header)) *text = bytes(text->get<std::string>());
  parts.header = text_of(header);
  seal_header(&parts.header);
  return joined(parts);
}

inline std::string changed_artefact(std::string_view file, Draw* draw, const ChangeBytes& bytes) {
  std::optional<Parts> parts = parts_of(file);
  const uint32_t what = (*draw)() % 20;
  if (!parts || what == 0) return bytes(std::string(file));
  if (what == 1) {
    parts->header = bytes(parts->header);
    seal_header(&parts->header);
    return joined(*parts);
  }
  if (what == 2) return changed_manifest_text(*std::move(parts), bytes);
  if (what == 3) {
    parts->elements = bytes(parts->elements);
    return sealed(*std::move(parts));
  }
  if (what < 6) return changed_header(*std::move(parts), draw, bytes);
  return sealed(*std::move(parts), [&](Json* manifest) {
    const auto graph = manifest->find("graph");
    const bool text = graph != manifest->end() && graph->is_string();
    const auto references = manifest->find("references");
    if (what == 8 && references != manifest->end()) return change_json(&*references, draw, bytes);
    if (what < 8 || !text) return change_json(manifest, draw, bytes);
    for (uint32_t left = 1 + (*draw)() % 3; left > 0; --left) {
      const auto now = graph->get<std::string>();
      if (!now.empty()) *graph = changed_graph(now, draw, bytes);
    }
  });
}

// One file with a line of another's graph.
inline std::string crossed(std::string_view file, std::string_view other, Draw* draw) {
  std::vector<std::string> lines;
  const std::optional<Parts> parts = parts_of(file), others = parts_of(other);
  if (!parts || !others) return std::string(file);
  sealed(*others, [&](Json* manifest) {
    const auto graph = manifest->find("graph");
    if (graph != manifest->end() && graph->is_string())
      lines = split_lines(graph->get<std::string>());
  });
  return sealed(*parts, [&](Json* manifest) {
    const auto graph = manifest->find("graph");
    if (lines.empty() || graph == manifest->end() || !graph->is_string()) return;
    std::vector<std::string> own = split_lines(graph->get<std::string>());
    if (own.empty()) return;
    const auto at = own.begin() + static_cast<ptrdiff_t>((*draw)() % own.size());
    if ((*draw)() % 2 == 0)
      *at = drawn(lines, draw);
    else
      own.insert(at, drawn(lines, draw));
    *graph = join_lines(own);
  });
}

}  // namespace graft::deploy::test
