// src/kernels/attention/operands.h: what the tiled kernels of attention read, and their scores.
#pragma once

#include <optional>
#include <string>

#include "kernels/attention/plan.h"
#include "kernels/attention/tile.h"
#include "kernels/launch/arguments.h"
#include "kernels/matmul/tile_product.h"
#include "kernels/random/philox.h"

namespace graft {

// What a kernel is made for.
struct TiledAttention {
  graft_dtype dtype = GRAFT_FLOAT32;
  std::optional<graft_dtype> bias;
  bool drops = false;
  AttentionTile tile;

  TiledAttention(const Attention& call, AttentionTile made_for);
  std::string key(const char* name) const;
  // In memory, of the logarithms of sums and what else there is one of for each row.
  graft_dtype sums() const;
};

// The left factor of a result: weights in local memory, a tile's rows side by side.
TileProduct::Factor weights_of(const AttentionTile& tile, const ir::LocalArray& weights);

// Which weights a kernel drops: the elements of AttentionPlan's blocks, in its order.
class AttentionDropout {
 public:
  explicit AttentionDropout(ir::Builder& b);
  static void append(Arguments& arguments, const Attention& call, bool whole);

  // What a row of a query's head counts its elements from, an i64; any row is allowed.
  struct Row {
    ir::Value batch, head, row;
    ir::Value heads, members, rows, columns, causal;  // of the call
  };
  ir::Value start(const Row& at) const;
  // The weight of a column, dropped or scaled.
  ir::Value apply(ir::Value start, ir::Value column, ir::Value weight) const;

 private:
  ir::Builder& b_;
  PhiloxWriter philox_;
  ir::Value whole_, block_rows_, block_heads_, slab_heads_, slab_draws_, group_draws_;
  ir::Value threshold_, factor_;
};

// Declares a call's inputs in a kernel, in the order of append().
class AttentionOperands {
 public:
  // A tensor [batch, heads, lines, width].
  struct Tensor {
    ir::Address address;
    ir::Value strides[4];
    ir::Value head(ir::Value batch, ir::Value head) const {
      return batch * strides[0] + head * strides[1];
    }
  };
  // A queries' head of the grid.
  struct Head {
    ir::Value number, batch, query, key;
  };

  AttentionOperands(ir::Builder& b, const TiledAttention& kernel);
  static void append(Arguments& arguments, const Attention& call, bool whole);
  // One more tensor, with append_tensor() in the launch.
  static Tensor tensor(ir::Builder& b, ir::Address address);
  static void append_tensor(Arguments& arguments, const TensorView& view);

  Head head(ir::Value number) const;
  // The columns that a row sees.
  ir::Value seen(ir::Value row) const {
    return select(causal != 0, minimum(columns, row + 1), columns);
  }
  // scale * sum + bias; -inf where the row does not see the column. Any row and column.
  ir::Value score(const Head& head, ir::Value sum, ir::Value row, ir::Value column) const;

  // Where a row of the head begins for dropout->apply(). REQUIRES: dropout.
  ir::Value draws(const Head& head, ir::Value row) const;

  // A factor of a product: lines from first on, along the width or, across, the other way round:
  // the width's elements are the lines, and the depth counts lines from first on. 0 beyond the end.
  TileProduct::Factor lines(const Tensor& from, ir::Value start, ir::Value first, ir::Value end,
                            ir::Value width) const;
  TileProduct::Factor across(const Tensor& from, ir::Value start, ir::Value first, ir::Value end,
                             ir::Value width) const;

  const ir::Type type;
  ir::Value rows, columns, depth, value_depth, heads, members, causal, scale;
  Tensor query, key, value;
  std::optional<Tensor> bias;
  std::optional<AttentionDropout> dropout;

 private:
  TileProduct::Load loader(const Tensor& from, ir::Value start, ir::Value first, ir::Value end,
                           ir::Value width, bool turned) const;
};

}  // namespace graft
