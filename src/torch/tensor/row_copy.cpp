// src/torch/tensor/row_copy.cpp: copies of tensors with gaps or of another order, row by row.
#include "torch/tensor/row_copy.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/platform/platform.h"
#include "torch/device/current.h"
#include "torch/device/pinned.h"
#include "torch/device/sync_debug.h"
#include "torch/tensor/copy.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

constexpr size_t kLevels = 3;  // strides of a graft_strided_copy

struct Level {
  uint64_t count, to, from;  // strides in bytes
};

bool ours(const at::Tensor& tensor) { return tensor.device().type() == kDeviceType; }

uint64_t place_of(const at::Tensor& tensor) {
  return ours(tensor) ? address_of(tensor) : reinterpret_cast<uint64_t>(tensor.const_data_ptr());
}

// Innermost first, neighbours that are one in both tensors joined.
std::vector<Level> levels_of(const at::Tensor& to, const at::Tensor& from) {
  const auto bytes = static_cast<int64_t>(to.element_size());
  std::vector<Level> all;
  for (int64_t d = 0; d < to.dim(); ++d) {
    if (to.size(d) == 1) continue;
    all.push_back({static_cast<uint64_t>(to.size(d)), static_cast<uint64_t>(to.stride(d) * bytes),
                   static_cast<uint64_t>(from.stride(d) * bytes)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Level& a, const Level& b) { return a.to < b.to; });
  std::vector<Level> joined;
  for (const Level& level : all) {
    if (!joined.empty()) {
      Level& inner = joined.back();
      if (level.to == inner.count * inner.to && level.from == inner.count * inner.from) {
        inner.count *= level.count;
        continue;
      }
    }
    joined.push_back(level);
  }
  return joined;
}

}  // namespace

std::optional<graft_strided_copy> rows_of(const at::Tensor& to, const at::Tensor& from,
                                          graft_copy_kind kind) {
  std::vector<Level> levels = levels_of(to, from);
  graft_strided_copy rows{};
  rows.struct_size = sizeof(rows);
  rows.kind = kind;
  rows.row_bytes = to.element_size();
  if (!levels.empty() && levels[0].to == rows.row_bytes && levels[0].from == rows.row_bytes) {
    rows.row_bytes *= levels[0].count;
    levels.erase(levels.begin());
  }
  if (levels.size() > kLevels) return std::nullopt;
  for (size_t i = 0; i < kLevels; ++i) {
    const Level level = i < levels.size() ? levels[i] : Level{1, 0, 0};
    rows.counts[i] = level.count;
    rows.to_strides[i] = level.to;
    rows.from_strides[i] = level.from;
  }
  rows.to = place_of(to);
  rows.from = place_of(from);
  return rows;
}

bool copy_rows(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const bool in = ours(to), out = ours(from);
  const auto kind = !out  ? GRAFT_HOST_TO_DEVICE
                    : !in ? GRAFT_DEVICE_TO_HOST
                          : GRAFT_DEVICE_TO_DEVICE;
  Stream& stream = current_stream((in ? to : from).device().index());
  if (stream.device().driver().table().copy_strided == nullptr) return false;
  const auto rows = rows_of(to, from, kind);
  if (!rows) return false;
  const at::Tensor& host = in ? from : to;
  const bool on_device = in && out;
  const void* const pointer = on_device ? nullptr : host.const_data_ptr();
  const bool behind = non_blocking && !on_device && is_pinned(pointer);
  const bool waits = !behind && !on_device;
  // Small ones are packed and staged: nobody waits for the stream's earlier work.
  if (waits && in && static_cast<size_t>(to.nbytes()) <= kStagedBytes) return false;
  if (waits) tell_of_wait("a large copy from host memory, or one to it, that blocks");
  if (behind) record_pinned(pointer, stream);
  if (!stream.copy_rows(*rows)) return false;
  if (!waits) return true;
  stream.synchronize([&] { return std::make_shared<const c10::Storage>(host.storage()); });
  return true;
}

}  // namespace graft::binding
