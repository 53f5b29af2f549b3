// src/deploy/artefact.cpp: the file that a deployed model is.
#include "deploy/artefact.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codegen/cache/toolchain.h"
#include "compiler/graph/text.h"
#include "runtime/driver/error.h"

namespace graft::deploy {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kManifestKey = "graft_model";
constexpr const char* kHashKey = "graft_hash";
constexpr const char* kBlobPrefix = "graft.blob.";
constexpr size_t kHashDigits = 32;

// The hash of a header whose own hash is zeros.
std::string header_hash(std::string header, const std::string& told) {
  const size_t at = header.find(fmt::format("\"{}\":\"{}\"", kHashKey, told));
  if (at == std::string::npos) return "";
  header.replace(at + std::string_view(kHashKey).size() + 4, told.size(),
                 std::string(told.size(), '0'));
  return hash_text(header);
}

Json to_json(const References& references) {
  Json all = Json::object();
  for (const auto& [name, one] : references) {
    all[name] = {{"file", one.file},
                 {"tensor", one.tensor},
                 {"dtype", dtype_word(one.dtype)},
                 {"sizes", one.sizes},
                 {"hash", one.hash}};
  }
  return all;
}

References references_of(const Json& json) {
  References references;
  for (const auto& [name, one] : json.items()) {
    references[name] = {one.at("file").get<std::string>(), one.at("tensor").get<std::string>(),
                        dtype_of_word(one.at("dtype").get<std::string>()),
                        one.at("sizes").get<std::vector<int64_t>>(),
                        one.at("hash").get<std::string>()};
  }
  return references;
}

Json to_json(const Manifest& manifest, const std::map<std::string, std::string>& hashes,
             Version own) {
  Json inputs = Json::array(), integers = Json::array();
  for (const Manifest::Input& one : manifest.inputs) {
    inputs.push_back({{one.weight ? "weight" : "argument", one.name}});
  }
  for (const Manifest::Integer& one : manifest.integers) {
    integers.push_back({one.argument, one.dim});
  }
  Json json = {{"version", {own.major, own.minor}},
               {"made_by", manifest.made_by},
               {"licence", manifest.licence},
               {"graph", manifest.graph},
               {"arguments", manifest.arguments},
               {"inputs", inputs},
               {"integers", integers},
               {"outputs", manifest.outputs},
               {"constants", manifest.constants},
               {"result", manifest.result},
               {"hashes", hashes}};
  if (!manifest.references.empty()) json["references"] = to_json(manifest.references);
  if (!manifest.settings.empty()) json["settings"] = manifest.settings;
  return json;
}

Manifest of_json(const Json& json) {
  Manifest manifest;
  json.at("made_by").get_to(manifest.made_by);
  json.at("licence").get_to(manifest.licence);
  json.at("graph").get_to(manifest.graph);
  json.at("arguments").get_to(manifest.arguments);
  for (const Json& one : json.at("inputs")) {
    const bool weight = one.contains("weight");
    manifest.inputs.push_back({one.at(weight ? "weight" : "argument").get<std::string>(), weight});
  }
  for (const Json& one : json.at("integers")) {
    manifest.integers.push_back({one.at(0).get<uint32_t>(), one.at(1).get<uint32_t>()});
  }
  json.at("outputs").get_to(manifest.outputs);
  json.at("constants").get_to(manifest.constants);
  if (json.contains("settings")) json.at("settings").get_to(manifest.settings);
  json.at("result").get_to(manifest.result);
  if (json.contains("references")) manifest.references = references_of(json.at("references"));
  return manifest;
}

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("{} is damaged: {}. Copy or deploy it again", path, what));
}

void check_version(const std::string& path, const Json& json) {
  const auto version = json.at("version").get<std::vector<int>>();
  if (version.size() == 2 && version[0] == Version().major) return;
  throw Error(
      GRAFT_VERSION_MISMATCH,
      fmt::format("{} has version {} of the format, this Graft reads version {}: deploy the "
                  "model again, or install the Graft that made it ({})",
                  path, version.empty() ? 0 : version[0], Version().major,
                  json.value("made_by", std::string("unknown"))));
}

}  // namespace

std::set<std::string> Manifest::tensors() const {
  std::set<std::string> names;
  for (const Input& one : inputs) {
    if (one.weight) names.insert(one.name);
  }
  for (const auto& [constant, tensor] : constants) names.insert(tensor);
  return names;
}

std::set<std::string> Manifest::own_tensors() const {
  std::set<std::string> names = tensors();
  std::erase_if(names, [&](const std::string& name) { return references.contains(name); });
  return names;
}

std::vector<std::string> Manifest::state() const {
  const compiler::Graph parsed = compiler::parse(graph);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(parsed.inputs.size(), inputs.size()); ++i) {
    const bool written = inputs[i].weight && parsed.values[parsed.inputs[i]].mutated;
    if ((written || is_setting(inputs[i])) &&
        std::ranges::find(names, inputs[i].name) == names.end()) {
      names.push_back(inputs[i].name);
    }
  }
  return names;
}

bool Manifest::is_setting(const Input& input) const {
  return input.weight && std::ranges::find(settings, input.name) != settings.end();
}

Artefact::Artefact(const std::string& path) : file_(path) {
  const auto& metadata = file_.metadata();
  const auto manifest = metadata.find(kManifestKey), hash = metadata.find(kHashKey);
  if (manifest == metadata.end() || hash == metadata.end()) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("{} is a file of tensors, but no deployed model: make one by "
                            "torch_graft.deploy()",
                            path));
  }
  if (hash->second.size() != kHashDigits ||
      header_hash(file_.header(), hash->second) != hash->second) {
    damaged(path, "the hash of its header differs");
  }
  try {
    const Json json = Json::parse(manifest->second);
    check_version(path, json);
    manifest_ = of_json(json);
    json.at("hashes").get_to(hashes_);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    damaged(path, error.what());
  }
  const std::set<std::string> named = manifest_.tensors();
  for (const auto& [name, reference] : manifest_.references) {
    if (!named.contains(name) || file_.tensors().contains(name)) {
      damaged(path, fmt::format("\"{}\" is in another file and no tensor of the model, or in both",
                                name));
    }
  }
  for (const std::string& name : manifest_.own_tensors()) file_.at(name);
  beside_ = std::make_unique<const BesideFiles>(path, manifest_.references);
}

const StoredTensor& Artefact::weight(const std::string& name) const {
  const StoredTensor* const beside = beside_->find(name);
  return beside != nullptr ? *beside : file_.at(name);
}

void Artefact::read(const StoredTensor& weight, void* to) const {
  if (beside_->read(weight, to)) return;
  file_.read(weight, to);
  const auto told = hashes_.find(weight.name);
  if (told != hashes_.end() &&
      told->second == hash_text({static_cast<const char*>(to), weight.bytes}))
    return;
  damaged(path(), fmt::format("the hash of \"{}\" differs", weight.name));
}

std::vector<CarriedBlob> Artefact::blobs() const {
  std::vector<CarriedBlob> blobs;
  for (const auto& [name, tensor] : file_.tensors()) {
    if (!name.starts_with(kBlobPrefix)) continue;
    CarriedBlob& blob = blobs.emplace_back();
    const std::string told = name.substr(std::string_view(kBlobPrefix).size());
    blob.hash = told.substr(0, told.find('.'));
    blob.processor = told.substr(std::min(blob.hash.size() + 1, told.size()));
    blob.bytes.resize(tensor.bytes);
    read(tensor, blob.bytes.data());
  }
  return blobs;
}

void write_artefact(const std::string& path, const Manifest& manifest,
                    std::span<const TensorBytes> weights, std::span<const CarriedBlob> blobs) {
  write_artefact(path, manifest, weights, blobs, manifest.version());
}

void write_artefact(const std::string& path, const Manifest& manifest,
                    std::span<const TensorBytes> weights, std::span<const CarriedBlob> blobs,
                    Version version) {
  std::vector<TensorBytes> all(weights.begin(), weights.end());
  std::set<std::string> given;
  for (const TensorBytes& one : weights) given.insert(one.name);
  const std::set<std::string> own = manifest.own_tensors();
  if (given != own) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("a manifest of {} tensors came with {}: give each tensor that it names",
                            own.size(), given.size()));
  }
  for (const CarriedBlob& one : blobs) {
    const std::string level = one.processor.empty() ? "" : "." + one.processor;
    all.push_back({kBlobPrefix + one.hash + level,
                   GRAFT_UINT8,
                   {static_cast<int64_t>(one.bytes.size())},
                   one.bytes});
  }
  std::map<std::string, std::string> hashes;
  for (const TensorBytes& one : all) {
    hashes[one.name] = hash_text({one.bytes.data(), one.bytes.size()});
  }
  const std::string zeros(kHashDigits, '0');
  std::map<std::string, std::string> metadata = {
      {kManifestKey, to_json(manifest, hashes, version).dump()}, {kHashKey, zeros}};
  const std::string unsealed = tensor_header(metadata, all);
  metadata[kHashKey] = header_hash(unsealed, zeros);
  write_tensors(path, tensor_header(metadata, all), all);
}

}  // namespace graft::deploy
