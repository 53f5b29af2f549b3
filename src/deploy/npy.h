// src/deploy/npy.h: NumPy's files of one array.
#pragma once

#include <memory>
#include <string>

#include "graft/deploy.h"

namespace graft::infer {

// A row-major tensor and its memory.
struct Array {
  graft_array tensor{};
  std::shared_ptr<char[]> memory;
};

// A tensor of these sizes, whose elements are zeros.
Array zeros(graft_dtype dtype, const int64_t* sizes, uint16_t rank);

// The array of a file in the format of numpy.lib.format, versions 1 to 3, little-endian. Throws
// std::runtime_error, naming the file and what it has, for others and for dtypes that
// graft/driver.h lacks.
Array read_npy(const std::string& path);

// Writes a row-major tensor. bfloat16, which NumPy lacks, becomes float32. Throws
// std::runtime_error with the reason.
void write_npy(const std::string& path, const graft_array& tensor);

}  // namespace graft::infer
