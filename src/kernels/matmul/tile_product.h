// src/kernels/matmul/tile_product.h: a product's tile in local memory, written into a GPU-like
// kernel.
#pragma once

#include <functional>
#include <vector>

#include "codegen/ir/local_array.h"
#include "kernels/matmul/tile_shape.h"

namespace graft {

// Along what neighbouring work-items read a factor: where its memory lies side by side.
enum class Along : uint8_t { kLines, kDepth };

// Of the group that a work-item belongs to. The factors are loaded from anywhere (matrices, the
// patches of an image), a step ahead of the sums: registers, then the half of local memory that is
// not being read; one barrier a step.
class TileProduct {
 public:
  // An element of a factor in the sums' type: line (a row of the left factor, a column of the right
  // one) counted from the tile's first, and depth from the product's first; both of type i32. Must
  // give 0 beyond the factor's end.
  using Load = std::function<ir::Value(ir::Value line, ir::Value depth)>;
  using Visit = std::function<void(ir::Value row, ir::Value column, ir::Value sum)>;

  struct Factor {
    Along along = Along::kLines;
    Load load;
  };

  // Declares local memory: before the kernel's first loop or if.
  TileProduct(ir::Builder& builder, const TileShape& shape, ir::Type type);
  // In local memory of at least shape.local_elements(), which products may take turns in. Made
  // before the kernel's first loop or if too.
  TileProduct(ir::Builder& builder, const TileShape& shape, const ir::LocalArray& local);

  // The work-item's group in the grid, an i64.
  ir::Value group() const { return group_; }

  // Adds a sum over depth (i32, at least 1, the same in all work-items) to each of the sums, which
  // begin as 0. Outside of ifs; in a loop only if all work-items run it as often. The loads may
  // read what was stored to local memory before the last barrier; afterwards all of them are done.
  void multiply(ir::Value depth, const Factor& left, const Factor& right);
  void clear();

  // Every sum of this work-item; row and column (i32) as those of Load.
  void each(const Visit& visit) const;

  // The same one by one: a sum of this work-item, and where it lies. Rows are the same for products
  // with as many rows, rows per item and items across.
  const ir::Variable& sum(int64_t i, int64_t j) const;
  ir::Value row_of(int64_t i) const;
  ir::Value column_of(int64_t j) const;
  // The work-item's place (i32) among those that share its rows.
  ir::Value place() const;

 private:
  // How one factor's elements of a step go through registers into local memory.
  struct Stage {
    const Factor* factor;
    int64_t lines, stride, base;  // of a step in local memory
    std::vector<ir::Variable> held;
  };

  Stage stage(const Factor& factor, int64_t lines, int64_t stride, int64_t base);
  void each_part(const Stage& stage,
                 const std::function<void(size_t part, ir::Value line, ir::Value depth)>& body);
  void fetch(Stage& stage, ir::Value first);
  void put(Stage& stage, ir::Value half);
  void add_step(ir::Value half);

  ir::Builder& b_;
  const TileShape shape_;
  const ir::Type type_;
  ir::LocalArray local_;
  ir::Value group_, item_;          // item_: i32, within the group
  std::vector<ir::Variable> sums_;  // row after row
};

}  // namespace graft
