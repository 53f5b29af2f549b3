// src/kernels/sort/rows.h: the sorts of contiguous rows that sort() chooses from.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft {

// A row of kLongRow elements is worth many work-items; kManyRows rows keep the device busy with one
// work-item each.
inline constexpr int64_t kLongRow = 65536;
inline constexpr int64_t kManyRows = 16;

// Contiguous views of rows lines of n elements each.
struct SortRows {
  TensorView values, indices, input;
  int64_t rows, n;
  bool descending;
};

// Counts for every element how many come before it; for short rows.
inline constexpr int64_t kRankedLength = 48;
void sort_rows_by_rank(Stream& stream, const SortRows& rows);

// Radix sort, 8 bits at a time, a row in one work-item.
void sort_rows_by_digits(Stream& stream, const SortRows& rows);

// Radix sort with many work-items on one row, row after row.
void sort_long_rows(Stream& stream, const SortRows& rows);

}  // namespace graft
