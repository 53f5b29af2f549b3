// src/kernels/matmul/tile_product.cpp: a product's tile in local memory, written into a GPU-like
// kernel.
#include "kernels/matmul/tile_product.h"

#include <bit>

namespace graft {

using namespace ir;

namespace {

Value i32(ir::Builder& b, int64_t number) { return b.constant(Type::kI32, number); }

bool is_power(int64_t number) { return std::has_single_bit(static_cast<uint64_t>(number)); }

// Of a position that is not negative.
Value quotient(Value position, int64_t divisor) {
  if (!is_power(divisor)) return position / divisor;
  return position >> std::countr_zero(static_cast<uint64_t>(divisor));
}
Value remainder(Value position, int64_t divisor) {
  return is_power(divisor) ? position & (divisor - 1) : position % divisor;
}

}  // namespace

TileProduct::TileProduct(ir::Builder& builder, const TileShape& shape, Type type)
    : TileProduct(builder, shape,
                  ir::LocalArray(builder, type, static_cast<uint64_t>(shape.local_elements()))) {}

TileProduct::TileProduct(ir::Builder& builder, const TileShape& shape, const ir::LocalArray& local)
    : b_(builder),
      shape_(shape),
      type_(local.type()),
      local_(local),
      group_(quotient(builder.item(), shape.group())),
      item_(cast(Type::kI32, builder.local_item())) {
  for (int64_t i = 0; i < shape_.item_rows * shape_.item_columns; ++i) {
    sums_.emplace_back(b_.constant(type_, 0));
  }
}

void TileProduct::clear() {
  for (const Variable& sum : sums_) sum = b_.constant(type_, 0);
}

void TileProduct::multiply(Value depth, const Factor& left, const Factor& right) {
  Stage stages[2] = {
      stage(left, shape_.rows, shape_.left_line(), 0),
      stage(right, shape_.columns, shape_.right_line(), shape_.depth * shape_.left_line())};
  const Value zero = i32(b_, 0), half = i32(b_, shape_.local_elements() / 2);
  const Variable read(zero);
  for (Stage& it : stages) fetch(it, zero), put(it, zero);
  b_.barrier();
  // That the loop runs at all is plain to the compiler: PoCL copies all that follows a loop with
  // barriers that may not run.
  b_.loop(
      zero, ir::maximum(depth, i32(b_, 1)),
      [&](Value first) {
        const Value next = first + shape_.depth, write = half - read.get();
        b_.if_(next < depth, [&] {
          for (Stage& it : stages) fetch(it, next);
        });
        add_step(read.get());
        for (Stage& it : stages) put(it, write);
        b_.barrier();
        read = write;
      },
      i32(b_, shape_.depth));
}

TileProduct::Stage TileProduct::stage(const Factor& factor, int64_t lines, int64_t stride,
                                      int64_t base) {
  Stage made{&factor, lines, stride, base, {}};
  const int64_t elements = lines * shape_.depth, group = shape_.group();
  for (int64_t i = 0; i < (elements + group - 1) / group; ++i) {
    made.held.emplace_back(b_.constant(type_, 0));
  }
  return made;
}

void TileProduct::each_part(const Stage& stage,
                            const std::function<void(size_t, Value, Value)>& body) {
  const int64_t elements = stage.lines * shape_.depth;
  for (size_t part = 0; part < stage.held.size(); ++part) {
    const Value element = item_ + static_cast<int64_t>(part) * shape_.group();
    const int64_t inner = stage.factor->along == Along::kLines ? stage.lines : shape_.depth;
    const Value low = remainder(element, inner), high = quotient(element, inner);
    const auto run = [&] {
      if (stage.factor->along == Along::kLines) return body(part, low, high);
      body(part, high, low);
    };
    const bool whole = static_cast<int64_t>(part + 1) * shape_.group() <= elements;
    if (whole) {
      run();
    } else {
      b_.if_(element < elements, run);
    }
  }
}

void TileProduct::fetch(Stage& stage, Value first) {
  each_part(stage, [&](size_t part, Value line, Value depth) {
    stage.held[part] = stage.factor->load(line, first + depth);
  });
}

void TileProduct::put(Stage& stage, Value half) {
  each_part(stage, [&](size_t part, Value line, Value depth) {
    local_.store(half + depth * stage.stride + line + stage.base, stage.held[part].get());
  });
}

void TileProduct::add_step(Value half) {
  const auto rows = static_cast<size_t>(shape_.item_rows);
  const auto columns = static_cast<size_t>(shape_.item_columns);
  std::vector<Value> row(rows), column(columns);
  for (size_t i = 0; i < rows; ++i) row[i] = half + row_of(static_cast<int64_t>(i));
  for (size_t i = 0; i < columns; ++i) {
    column[i] = half + column_of(static_cast<int64_t>(i)) + shape_.depth * shape_.left_line();
  }
  b_.loop(i32(b_, 0), i32(b_, shape_.depth), [&](Value k) {
    const Value left = k * shape_.left_line(), right = k * shape_.right_line();
    std::vector<Value> across;
    for (const Value& at : column) across.push_back(local_.load(right + at));
    for (size_t i = 0; i < rows; ++i) {
      const Value down = local_.load(left + row[i]);
      for (size_t j = 0; j < columns; ++j) {
        const Variable& sum = sums_[i * columns + j];
        sum = sum.get() + down * across[j];
      }
    }
  });
}

// Items of a row of the tile are neighbours; each holds runs of vector columns.
Value TileProduct::row_of(int64_t i) const {
  return quotient(item_, shape_.across()) * shape_.item_rows + i;
}

Value TileProduct::column_of(int64_t i) const {
  const int64_t run = i / shape_.vector;
  return place() * shape_.vector + (run * shape_.vector * shape_.across() + i % shape_.vector);
}

Value TileProduct::place() const { return remainder(item_, shape_.across()); }

const Variable& TileProduct::sum(int64_t i, int64_t j) const {
  return sums_[static_cast<size_t>(i * shape_.item_columns + j)];
}

void TileProduct::each(const Visit& visit) const {
  for (int64_t i = 0; i < shape_.item_rows; ++i) {
    const Value row = row_of(i);
    for (int64_t j = 0; j < shape_.item_columns; ++j) {
      visit(row, column_of(j), sum(i, j).get());
    }
  }
}

}  // namespace graft
