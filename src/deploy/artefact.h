// src/deploy/artefact.h: the file that a deployed model is.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cache/carried_blobs.h"
#include "deploy/reference.h"
#include "deploy/safetensors.h"
#include "runtime/driver/export.h"

namespace graft::deploy {

// A reader of one major refuses every other one. A newer minor only adds members: an older reader
// may leave them out, or lacks a tensor without them and refuses the file for that. A file says the
// smallest minor that has its members.
struct Version {
  int major = 1, minor = 1;  // 1.1: references and settings
};

// What a model is besides its weights; docs/use/deploy/format.md has the form in the file.
struct Manifest {
  // An input of the graph: an argument of the call, or a tensor of the file.
  struct Input {
    std::string name;
    bool weight = false;
  };
  // An integer of the call: a size of an argument.
  struct Integer {
    uint32_t argument = 0, dim = 0;  // counted among the arguments
  };

  std::string graph;                             // a text of graft-graph 1, as traced
  std::vector<std::string> arguments;            // of a call, in their order
  std::vector<Input> inputs;                     // of the graph, in its order
  std::vector<Integer> integers;                 // of the call, in their order
  std::vector<std::string> outputs;              // names, in the graph's order
  std::map<std::string, std::string> constants;  // external ones: which tensor each is
  References references;                         // tensors that are in other files
  std::vector<std::string> settings;             // weights that programs may set between calls
  std::string result;                            // how a caller puts the outputs together; opaque
  std::string made_by;                           // program and versions
  std::string licence;                           // of the model; may be empty

  // Names of all weights and constants, and of those that the model's file has itself.
  GRAFT_EXPORT std::set<std::string> tensors() const;
  GRAFT_EXPORT std::set<std::string> own_tensors() const;

  // 1.0 unless a member needs a newer one.
  Version version() const { return {1, references.empty() && settings.empty() ? 0 : 1}; }

  // Names of the weights that the graph writes, and of the settings that it takes. Throws Error:
  // what compiler::parse throws.
  GRAFT_EXPORT std::vector<std::string> state() const;

  bool is_setting(const Input& input) const;
};

// An artefact that is open for reading; all that is in it has been checked against its hashes but
// for the weights, which read() checks. Any thread.
class GRAFT_EXPORT Artefact {
 public:
  // Opens the files of its references, too. Throws Error: what TensorFile and BesideFiles throw,
  // VERSION_MISMATCH for another major, INVALID_ARGUMENT, naming the file, for a header whose hash
  // differs or a manifest that is none.
  explicit Artefact(const std::string& path);

  const Manifest& manifest() const { return manifest_; }
  const std::string& path() const { return file_.path(); }
  const StoredTensor& weight(const std::string& name) const;
  std::vector<CarriedBlob> blobs() const;

  // Copies a weight's elements to memory of weight.bytes bytes. Throws Error IO, and
  // INVALID_ARGUMENT for elements whose hash differs.
  void read(const StoredTensor& weight, void* to) const;

 private:
  TensorFile file_;
  Manifest manifest_;
  std::map<std::string, std::string> hashes_;  // by tensor
  std::unique_ptr<const BesideFiles> beside_;
};

// Writes an artefact, wholly or not at all. weights: the manifest's own tensors. Throws Error: IO,
// UNSUPPORTED for a dtype that safetensors lacks, INVALID_ARGUMENT for a manifest that names other
// tensors. The second says another version of itself.
GRAFT_EXPORT void write_artefact(const std::string& path, const Manifest& manifest,
                                 std::span<const TensorBytes> weights,
                                 std::span<const CarriedBlob> blobs);
GRAFT_EXPORT void write_artefact(const std::string& path, const Manifest& manifest,
                                 std::span<const TensorBytes> weights,
                                 std::span<const CarriedBlob> blobs, Version version);

}  // namespace graft::deploy
