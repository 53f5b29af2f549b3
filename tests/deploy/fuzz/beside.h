// tests/deploy/fuzz/beside.h: the files of weights beside an artefact of the fuzzer.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "codegen/cache/toolchain.h"
#include "tests/deploy/small_model.h"

namespace graft::deploy::test {

// Names in the folder: the artefact's own, a whole file of weights, and its first half.
inline const std::string kModelFile = "model.graft", kWeightsFile = "weights.safetensors",
                         kCutFile = "cut.safetensors";

// The small model's weights, and others that fit no graph.
inline std::string weights_bytes() {
  static const std::vector<char> zeros(64);
  std::vector<TensorBytes> tensors = small_weights();
  tensors.push_back({"half", GRAFT_FLOAT16, {4, 8}, zeros});
  tensors.push_back({"none", GRAFT_FLOAT32, {0, 3}, {}});
  const Folder folder;
  write_tensors(folder.file(kWeightsFile), tensors);
  return bytes_of(folder.file(kWeightsFile));
}

// A manifest whose first weight is in the other file.
inline Manifest beside_manifest() {
  Manifest manifest = small_manifest();
  const std::string hash = hash_text({raw(kWeight).data(), raw(kWeight).size()});
  manifest.references["fc.weight"] = {kWeightsFile, "fc.weight", GRAFT_FLOAT32, {2, 3}, hash};
  return manifest;
}

// The folder of all artefacts of the process.
inline const Folder& beside_folder() {
  static const Folder folder;
  static const bool filled = [] {
    const std::string bytes = weights_bytes();
    write_bytes(folder.file(kWeightsFile), bytes);
    write_bytes(folder.file(kCutFile), bytes.substr(0, bytes.size() / 2));
    return true;
  }();
  static_cast<void>(filled);
  return folder;
}

}  // namespace graft::deploy::test
