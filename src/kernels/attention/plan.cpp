// src/kernels/attention/plan.cpp: how attention is cut into blocks of rows and heads.
#include "kernels/attention/plan.h"

#include <algorithm>

#include "runtime/driver/dtype.h"

namespace graft {
namespace {

uint64_t bytes(const TensorView& view, int64_t elements) {
  return static_cast<uint64_t>(elements) * size_of(view.dtype);
}

}  // namespace

AttentionPlan::AttentionPlan(const Attention& call)
    : call_(call),
      members_(call.key.sizes[1] == 0 ? 1 : call.query.sizes[1] / call.key.sizes[1]),
      columns_(call.key.sizes[2]) {}

void AttentionPlan::each(bool whole, const std::function<void(const RowBlock&)>& visit) const {
  const TensorView& q = call_.query;
  uint64_t offset = call_.philox.offset;
  const int64_t batches = whole ? 1 : q.sizes[0], members = whole ? 1 : members_;
  for (int64_t batch = 0; batch < batches; ++batch) {
    for (int64_t member = 0; member < members; ++member) {
      const int64_t heads = whole ? q.sizes[0] * q.sizes[1] : call_.key.sizes[1];
      each_block({batch, member, heads, whole}, &offset, visit);
    }
  }
}

bool AttentionPlan::collapses(const TensorView& view) {
  return view.sizes[0] == 1 || view.sizes[1] == 1 ||
         view.strides[0] == view.sizes[1] * view.strides[1];
}

bool AttentionPlan::whole(std::initializer_list<const TensorView*> views) const {
  if (members_ != 1) return false;
  for (const TensorView* view : {&call_.query, &call_.key, &call_.value, call_.bias}) {
    if (view != nullptr && !collapses(*view)) return false;
  }
  return call_.dropout > 0 || std::all_of(views.begin(), views.end(),
                                          [](const TensorView* view) { return collapses(*view); });
}

TensorView AttentionPlan::rows_of(const TensorView& view, const RowBlock& block) const {
  TensorView part = heads_of(view, block, members_, block.slab.member);
  part.address += bytes(view, block.row * view.strides[2]);
  part.sizes[1] = block.rows;
  return part;
}

TensorView AttentionPlan::columns_of(const TensorView& view, const RowBlock& block) const {
  TensorView part = heads_of(view, block, 1, 0);
  part.sizes[1] = block.columns;
  return part;
}

int64_t AttentionPlan::block_rows() const {
  return std::clamp<int64_t>(kAttentionBlockElements / std::max<int64_t>(1, columns_), 16, 256);
}

int64_t AttentionPlan::block_heads() const {
  const int64_t rows = std::min(block_rows(), call_.query.sizes[2]);
  return std::max<int64_t>(1, kAttentionBlockElements / (std::max<int64_t>(1, columns_) * rows));
}

uint64_t AttentionPlan::draws(int64_t heads) const {
  uint64_t sum = 0;
  const int64_t all = call_.query.sizes[2], step = block_rows();
  for (int64_t row = 0; row < all; row += step) {
    const int64_t rows = std::min(step, all - row);
    sum += philox_increment(static_cast<uint64_t>(heads * rows * columns_at(row, rows)));
  }
  return sum;
}

int64_t AttentionPlan::columns_at(int64_t row, int64_t rows) const {
  return call_.causal ? std::min(columns_, row + rows) : columns_;
}

void AttentionPlan::each_block(const Slab& slab, uint64_t* offset,
                               const std::function<void(const RowBlock&)>& visit) const {
  const int64_t all = call_.query.sizes[2];
  if (all == 0) return;
  const int64_t rows = block_rows(), heads = block_heads();
  for (int64_t head = 0; head < slab.heads; head += heads) {
    for (int64_t row = (all - 1) / rows * rows; row >= 0; row -= rows) {
      RowBlock block{slab,
                     head,
                     std::min(heads, slab.heads - head),
                     row,
                     std::min(rows, all - row),
                     columns_,
                     row + rows >= all && slab.member == 0,
                     *offset};
      block.columns = columns_at(row, block.rows);
      *offset += philox_increment(static_cast<uint64_t>(block.heads * block.rows * block.columns));
      visit(block);
    }
  }
}

TensorView AttentionPlan::heads_of(const TensorView& view, const RowBlock& block, int64_t group,
                                   int64_t member) const {
  TensorView part = view;
  const bool single = block.slab.whole && view.sizes[1] == 1;
  const int64_t stride = single ? view.strides[0] : view.strides[1] * group;
  const int64_t start = block.slab.batch * view.strides[0] + member * view.strides[1];
  part.address += bytes(view, start + block.head * stride);
  part.rank = view.rank - 1;
  part.sizes[0] = block.heads, part.strides[0] = stride;
  for (int d = 1; d < part.rank; ++d) {
    part.sizes[d] = view.sizes[d + 1], part.strides[d] = view.strides[d + 1];
  }
  return part;
}

}  // namespace graft
