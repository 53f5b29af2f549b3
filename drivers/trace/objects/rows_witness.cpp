// drivers/trace/objects/rows_witness.cpp: reads back what a copy of rows wrote.
#include "objects/rows_witness.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "objects/readback.h"

namespace graft::trace {
namespace {

constexpr uint64_t kMostBytes = 4 << 20;  // of an extent
constexpr uint8_t kCanary = 0xa5;

// Calls f(offset in to, offset in from) for each row.
template <class Function>
void each_row(const graft_strided_copy& copy, const Function& f) {
  for (uint64_t k = 0; k < copy.counts[2]; ++k) {
    for (uint64_t j = 0; j < copy.counts[1]; ++j) {
      for (uint64_t i = 0; i < copy.counts[0]; ++i) {
        f(i * copy.to_strides[0] + j * copy.to_strides[1] + k * copy.to_strides[2],
          i * copy.from_strides[0] + j * copy.from_strides[1] + k * copy.from_strides[2]);
      }
    }
  }
}

}  // namespace

uint64_t extent_of(const graft_strided_copy& copy, const uint64_t (&strides)[3]) {
  uint64_t bytes = copy.row_bytes;
  for (size_t i = 0; i < 3; ++i) bytes += (copy.counts[i] - 1) * strides[i];
  return bytes;
}

RowsWitness::RowsWitness(TraceCall& call, const graft_strided_copy& copy) : copy_(copy) {
  const uint64_t to = extent_of(copy, copy.to_strides), from = extent_of(copy, copy.from_strides);
  if (to > kMostBytes || from > kMostBytes || call.stream == nullptr || !is_quiet(call)) return;
  commands_ = commands_so_far(call);
  rows_.resize(from);
  if (copy.kind != GRAFT_HOST_TO_DEVICE) {
    looks_ = read_back(call, rows_.data(), copy.from, from);
  } else {
    std::memcpy(rows_.data(), reinterpret_cast<const void*>(copy.from), from);
    looks_ = true;
  }
  const Margin margin = copy.kind == GRAFT_DEVICE_TO_HOST ? Margin{kMostMargin, kMostMargin}
                                                          : margin_around(call, copy.to, to);
  before_ = margin.before;
  expected_.assign(margin.before + to + margin.after, kCanary);
  if (copy.kind != GRAFT_DEVICE_TO_HOST) {
    looks_ = looks_ && read_back(call, expected_.data(), copy.to - margin.before, expected_.size());
  }
  each_row(copy_, [&](uint64_t to_row, uint64_t from_row) {
    std::memcpy(&expected_[before_ + to_row], &rows_[from_row], copy_.row_bytes);
  });
}

void RowsWitness::compare(TraceCall& call) {
  if (!looks_) return;
  std::vector<uint8_t> got(expected_.size(), kCanary);
  if (copy_.kind == GRAFT_DEVICE_TO_HOST) {
    // What is beside the caller's rows is the caller's: the same rows go to memory of the layer's.
    graft_strided_copy own = copy_;
    own.to = reinterpret_cast<uint64_t>(got.data() + before_);
    if (call.layer.driver().copy_strided(call.stream_handle, &own, 0) != GRAFT_OK ||
        !read_back(call, rows_.data(), copy_.from, 1)) {
      return;
    }
  } else if (!read_back(call, got.data(), copy_.to - before_, got.size())) {
    return;
  }
  if (commands_so_far(call) != commands_ || !is_quiet(call)) return;
  if (copy_.kind == GRAFT_DEVICE_TO_HOST) compare_given(call);
  report(call, std::move(got));
}

void RowsWitness::compare_given(TraceCall& call) {
  const auto* const given = reinterpret_cast<const uint8_t*>(copy_.to);
  bool same = true;
  each_row(copy_, [&](uint64_t row, uint64_t) {
    same = same && std::memcmp(given + row, &expected_[before_ + row], copy_.row_bytes) == 0;
  });
  if (!same) report_wrong_byte(call, 0, expected_.size());
}

void RowsWitness::report(TraceCall& call, std::vector<uint8_t> got) {
  uint64_t wrong = UINT64_MAX;
  each_row(copy_, [&](uint64_t row, uint64_t) {
    for (uint64_t i = before_ + row; i < before_ + row + copy_.row_bytes; ++i) {
      if (got[i] != expected_[i]) wrong = std::min(wrong, i - before_);
      got[i] = expected_[i];
    }
  });
  if (wrong != UINT64_MAX) report_wrong_byte(call, wrong, expected_.size());
  if (got != expected_) report_overrun(call, "beside the rows");
}

}  // namespace graft::trace
