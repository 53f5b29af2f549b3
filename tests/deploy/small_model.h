// tests/deploy/small_model.h: a small model in a folder of its own.
#pragma once

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "deploy/artefact.h"

namespace graft::deploy::test {

// A folder that goes with its test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "graft-deploy-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// relu(x @ w.T + b) of x [n, 3], with a copy of w that a prologue makes.
inline const char* const kGraph =
    "graft-graph 1\n"
    "graph small\n"
    "symbol s0 range 1..64 hint 4 from %x[0]\n"
    "input %w: float32[2, 3] parameter\n"
    "input %x: float32[s0, 3] activation\n"
    "input %b: float32[2] parameter\n"
    "node %double: float32[2, 3] = aten.mul.Tensor(%w, 2.0)\n"
    "node %wt: float32[3, 2](1, 3) = aten.t.default(%double) views %double\n"
    "node %y: float32[s0, 2] = aten.addmm.default(%b, %x, %wt)\n"
    "node %r: float32[s0, 2] = aten.relu.default(%y) at \"model.py:4\"\n"
    "output %r\n"
    "end\n";

inline const std::vector<float> kWeight = {1, -2, 3, -4, 5, 6}, kBias = {0.5f, -0.25f};

inline Manifest small_manifest() {
  Manifest manifest;
  manifest.graph = kGraph;
  manifest.arguments = {"x"};
  manifest.inputs = {{"fc.weight", true}, {"x", false}, {"fc.bias", true}};
  manifest.outputs = {"result"};
  manifest.made_by = "a test";
  return manifest;
}

inline std::span<const char> raw(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

inline std::vector<TensorBytes> small_weights() {
  return {{"fc.weight", GRAFT_FLOAT32, {2, 3}, raw(kWeight)},
          {"fc.bias", GRAFT_FLOAT32, {2}, raw(kBias)}};
}

// What the model gives for rows of x.
inline std::vector<float> expected(const std::vector<float>& x) {
  std::vector<float> all;
  for (size_t row = 0; row < x.size() / 3; ++row) {
    for (size_t j = 0; j < 2; ++j) {
      float sum = kBias[j];
      for (size_t k = 0; k < 3; ++k) sum += x[row * 3 + k] * 2 * kWeight[j * 3 + k];
      all.push_back(std::max(sum, 0.0f));
    }
  }
  return all;
}

}  // namespace graft::deploy::test
