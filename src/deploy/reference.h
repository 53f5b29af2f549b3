// src/deploy/reference.h: tensors of a deployed model that are in files beside its own.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "deploy/safetensors.h"
#include "runtime/driver/export.h"

namespace graft::deploy {

// Where a tensor is, and what it is there.
struct Reference {
  std::string file;    // of tensors, in the folder of the model's file or in one below it
  std::string tensor;  // its name in that file
  graft_dtype dtype = GRAFT_FLOAT32;
  std::vector<int64_t> sizes;
  std::string hash;  // of its bytes

  bool operator==(const Reference&) const = default;
};
using References = std::map<std::string, Reference>;  // by the model's name of the tensor

// The files that a model's references name, open for reading. Any thread.
class BesideFiles {
 public:
  // Opens each file once and checks dtype and sizes of each tensor. model: the path of its file.
  // Throws Error INVALID_ARGUMENT, naming both files, for a file outside of the folder and for a
  // tensor that is missing or another one; what TensorFile throws, naming the model's file also.
  BesideFiles(const std::string& model, const References& references);

  // The tensor under the model's name of it, null where it has no reference.
  const StoredTensor* find(const std::string& name) const;

  // Copies the elements to memory of tensor.bytes bytes. False where find does not know it. Throws
  // Error IO, and INVALID_ARGUMENT, naming both files, for elements whose hash differs.
  bool read(const StoredTensor& tensor, void* to) const;

 private:
  struct Tensor {
    StoredTensor stored;
    const TensorFile* file;
    std::string hash;
  };

  const std::string model_;
  std::map<std::string, TensorFile> files_;
  std::map<std::string, Tensor> tensors_;
};

// How a model's file names another file. Both are paths as open() takes them, of files that need
// not exist. Throws Error INVALID_ARGUMENT unless file is another one, in the model's folder or
// below it.
GRAFT_EXPORT std::string name_beside(const std::string& model, const std::string& file);

// References for the tensors that the files have, under the same name or with the same bytes
// under another one; the model keeps the others. files: as name_beside gave them. Throws Error
// INVALID_ARGUMENT for a tensor whose namesake in a file differs, and where no tensor is in any
// file; what TensorFile throws.
GRAFT_EXPORT References find_references(const std::string& model,
                                        std::span<const std::string> files,
                                        std::span<const TensorBytes> tensors);

}  // namespace graft::deploy
