// src/kernels/attention/plan.h: how attention is cut into blocks of rows and heads.
#pragma once

#include <functional>
#include <initializer_list>

#include "kernels/attention/attention.h"

namespace graft {

// Heads whose matrices one product takes: those with one stride between them.
struct Slab {
  int64_t batch = 0, member = 0;  // of the first head: its batch, its place in the group
  int64_t heads = 0;
  bool whole = false;  // all batches in one
};

// The shape of what there is one of for each row of the queries.
inline TensorView per_row(TensorView query) {
  query.rank = 3;
  return query;
}

// A block of rows of some heads of a slab.
struct RowBlock {
  Slab slab;
  int64_t head = 0, heads = 0;  // within the slab
  int64_t row = 0, rows = 0, columns = 0;
  bool first = false;  // of those that add to the same keys
  uint64_t philox_offset = 0;
};

// Cuts a call into blocks and gives the parts of tensors that belong to one. Dropout counts its
// elements block by block, so the blocks fix the random bits on every class of device.
class AttentionPlan {
 public:
  // REQUIRES: call outlives the plan.
  explicit AttentionPlan(const Attention& call);

  // visit(block), last rows first: with causal the first visit of a head then reaches all columns
  // that any does. whole: every tensor lets batch and heads be one dimension.
  void each(bool whole, const std::function<void(const RowBlock&)>& visit) const;

  // Whether all of the views, and the call's tensors, let batch and heads be one dimension. With
  // dropout the views do not matter, since both directions need the same blocks: stages() those.
  bool whole(std::initializer_list<const TensorView*> views) const;
  // Whether a view has to be copied before blocks are cut from it.
  bool stages(bool whole, const TensorView& view) const { return whole && !collapses(view); }

  // The block's rows of a tensor with the queries' heads, and its columns of one with the keys'.
  TensorView rows_of(const TensorView& view, const RowBlock& block) const;
  TensorView columns_of(const TensorView& view, const RowBlock& block) const;

  // Queries' heads per key head.
  int64_t members() const { return members_; }
  // The rows and heads of a full block of a slab; each() cuts the rest off at the end.
  int64_t block_rows() const;
  int64_t block_heads() const;
  // By how much the blocks of so many heads, and all their rows, advance the generator.
  uint64_t draws(int64_t heads) const;

 private:
  static bool collapses(const TensorView& view);
  int64_t columns_at(int64_t row, int64_t rows) const;
  void each_block(const Slab& slab, uint64_t* offset,
                  const std::function<void(const RowBlock&)>& visit) const;
  TensorView heads_of(const TensorView& view, const RowBlock& block, int64_t group,
                      int64_t member) const;

  const Attention& call_;
  int64_t members_, columns_;
};

}  // namespace graft
