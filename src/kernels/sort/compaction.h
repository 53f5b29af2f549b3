// src/kernels/sort/compaction.h: finds the elements that are marked, in order.
#pragma once

#include "kernels/move/staging.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Numbers the elements of a view that are not 0 from front to back, in row-major order, with many
// work-items: first counts them in chunks, then visits them again. Only the device knows how many
// there are until the host has read count().
class GRAFT_EXPORT Compaction {
 public:
  // Enqueues the counting. marks: contiguous, not complex; it outlives the object and stays as it
  // is. A view without elements counts 0.
  Compaction(Stream& stream, const TensorView& marks);
  ~Compaction();
  Compaction(const Compaction&) = delete;
  Compaction& operator=(const Compaction&) = delete;

  // Writes the number of marked elements to an int64 of one element.
  void count(const TensorView& output);

  // output[k, d] = the position of the k-th marked element in dimension d of sizes; int64,
  // any strides. rank 1 with sizes {n} gives positions in the whole view. Only the first limit rows
  // are written.
  void positions(const TensorView& output, int rank, const int64_t* sizes, int64_t limit);

  // output[i] = the number of marked elements up to and with i, less one; int64, contiguous. With
  // places (int64, not null), output[places[i]] instead.
  void numbers(const TensorView& output, const TensorView* places);

 private:
  Stream& stream_;
  TensorView marks_;
  int64_t n_, chunk_, chunks_;
  ScratchTensor offsets_;  // int64 [chunks + 1]: marked elements before each chunk, and in all
};

// marks[i] = whether i starts a run of equal elements of one row: the first of its row, or
// different from the one before. Contiguous [rows, n]; marks is bool. NaN differs from everything.
GRAFT_EXPORT void mark_runs(Stream& stream, const TensorView& marks, const TensorView& input);

}  // namespace graft
