// src/deploy/safetensors.h: files of named tensors in the format safetensors.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "graft/driver.h"
#include "runtime/driver/export.h"

namespace graft::deploy {

// The format: huggingface.co/docs/safetensors, "Format". A header of JSON that says where in the
// file each tensor's row-major, little-endian elements lie.
struct StoredTensor {
  std::string name;
  graft_dtype dtype = GRAFT_FLOAT32;
  std::vector<int64_t> sizes;
  uint64_t begin = 0, bytes = 0;  // behind the header

  bool operator==(const StoredTensor&) const = default;
};

// The format's words for dtypes. Throw std::invalid_argument for one that Graft lacks, Error
// UNSUPPORTED for one that the format lacks.
graft_dtype dtype_of_word(const std::string& word);
const char* dtype_word(graft_dtype dtype);

// A file that is open for reading. Any thread.
class GRAFT_EXPORT TensorFile {
 public:
  // Reads the header and checks it: dtypes that graft/driver.h has, sizes that fit the bytes, no
  // overlap, no gap, nothing behind the file's end. Throws Error: NOT_FOUND for a path that does
  // not open, IO where reading fails, INVALID_ARGUMENT, naming the file, for anything else.
  explicit TensorFile(std::string path);
  ~TensorFile();
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& header() const { return header_; }  // JSON, as it stands in the file
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }

  // Throws Error INVALID_ARGUMENT, naming file and tensor, if there is none.
  const StoredTensor& at(const std::string& name) const;

  // Copies the elements to memory of tensor.bytes bytes. Throws Error IO.
  void read(const StoredTensor& tensor, void* to) const;

 private:
  void read_header();
  void add_tensors();

  const std::string path_;
  int file_ = -1;
  std::string header_;
  uint64_t data_ = 0, bytes_ = 0;  // where the elements begin, and how many bytes they are
  std::map<std::string, std::string> metadata_;
  std::map<std::string, StoredTensor> tensors_;
};

struct TensorBytes {
  std::string name;
  graft_dtype dtype = GRAFT_FLOAT32;
  std::vector<int64_t> sizes;
  std::span<const char> bytes;  // row-major
};

// The header of a file with these tensors, in this order: JSON, filled up with spaces so that the
// elements begin at a multiple of 64.
std::string tensor_header(const std::map<std::string, std::string>& metadata,
                          std::span<const TensorBytes> tensors);

// Writes a file under another name and renames it: path has the whole file or what it had before.
// Throws Error IO with the reason. The second makes the header.
GRAFT_EXPORT void write_tensors(const std::string& path, const std::string& header,
                                std::span<const TensorBytes> tensors);
GRAFT_EXPORT void write_tensors(const std::string& path, std::span<const TensorBytes> tensors);

}  // namespace graft::deploy
