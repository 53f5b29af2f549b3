// src/kernels/launch/loop_nest.cpp: the loops of kernels that go through tensors element by
// element.
#include "kernels/launch/loop_nest.h"

#include <algorithm>
#include <cstdlib>

namespace graft {

using ir::Value;

namespace {

// One work-item's elements: enough to pay for a thread's wake-up, in reach of its caches.
constexpr int64_t kTile = 16384;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool is_narrow(const NestShape& shape) { return shape.deal == WorkMapping::kLanes32; }

int64_t count(std::span<const Axis> loops) {
  int64_t all = 1;
  for (const Axis& loop : loops) all *= loop.size;
  return all;
}

}  // namespace

Reach reach(std::span<const Axis> loops, int operand) {
  Reach all{1, 0};
  for (const Axis& loop : loops) {
    const int64_t across = (loop.size - 1) * loop.strides[operand];
    all.extent += std::abs(across);
    if (across < 0) all.before -= across;
  }
  return all;
}

WorkMapping lanes_of(std::span<const Axis> loops, int operands) {
  // Complex numbers are two elements each; a launch rounds its items up.
  constexpr int64_t kMost = INT32_MAX / 2 - kLanes * kLaneElements;
  bool narrow = count(loops) <= kMost;
  for (int i = 0; i < operands; ++i) narrow = narrow && reach(loops, i).extent <= kMost;
  return narrow ? WorkMapping::kLanes32 : WorkMapping::kLanes;
}

int64_t append_nest(Arguments& arguments, const OpenDevice& device, const NestShape& shape,
                    std::span<const Axis> loops) {
  const auto push = [&](int64_t value) { arguments.index(value, is_narrow(shape)); };
  const int64_t length = loops.back().size, rows = count(loops.first(loops.size() - 1));
  const bool flat = shape.outer == 0;
  int64_t items = rows;
  push(length);
  if (shape.deal == WorkMapping::kSpans) {
    const int64_t share = shape.lines && is_gpu_like(device) ? 1 : kTile;
    const bool small = length * rows <= 2 * share;
    const int64_t tile = small || shape.lines ? length : std::min(length, share);
    const bool empty = length == 0 && !shape.lines;
    const int64_t per_row = small ? !empty : divide_up(length, tile);
    const int64_t rows_per_item =
        small ? std::max<int64_t>(rows, 1) : std::max<int64_t>(1, share / length);
    if (!shape.lines) push(tile);
    if (shape.lines || !flat) push(rows), push(rows_per_item);
    if (!shape.lines && !flat) push(per_row);
    items = per_row * (small ? rows > 0 : divide_up(rows, rows_per_item));
  } else if (!shape.lines) {
    const LaneSplit split(device, length * rows);
    push(split.tile);
    if (!flat) push(length * rows);
    items = split.grid;
  }
  append_strides(arguments, shape, loops);
  return items;
}

void append_strides(Arguments& arguments, const NestShape& shape, std::span<const Axis> loops) {
  const auto push = [&](int64_t value) { arguments.index(value, is_narrow(shape)); };
  for (size_t k = 1; k + 1 < loops.size(); ++k) push(loops[k].size);
  for (int i = 0, at = 0; i < shape.count; ++i) {
    const NestShape::Operand& operand = shape.operands[i];
    if (operand.walk == AccessPattern::kScalar) continue;
    for (int k = 0; k < shape.outer; ++k) {
      if ((operand.still >> k & 1) == 0) push(loops[static_cast<size_t>(k)].strides[at]);
    }
    if (operand.walk == AccessPattern::kStrided) push(loops.back().strides[at]);
    if (operand.shifted) push(reach(loops, at).before);
    ++at;
  }
}

LoopNest::LoopNest(ir::Builder& b, const NestShape& shape)
    : b_(b), shape_(shape), operands_(static_cast<size_t>(shape.count)) {
  const bool spans = shape.deal == WorkMapping::kSpans, flat = shape.outer == 0;
  length_ = index();
  if (!shape.lines) tile_ = index();
  if (spans && (shape.lines || !flat)) rows_ = index(), rows_per_item_ = index();
  if (!shape.lines && !flat) (spans ? items_per_row_ : all_) = index();
  for (int k = 1; k < shape.outer; ++k) sizes_.push_back(index());
  for (size_t i = 0; i < operands_.size(); ++i) {
    const NestShape::Operand& given = shape.operands[i];
    Operand& operand = operands_[i];
    if (given.walk == AccessPattern::kScalar) continue;
    for (int k = 0; k < shape.outer; ++k) {
      operand.strides.push_back((given.still >> k & 1) != 0 ? Value() : index());
    }
    if (given.walk == AccessPattern::kStrided) operand.inner = index();
    if (given.shifted) operand.offset = operand.start = index();
  }
}

Value LoopNest::index() { return is_narrow(shape_) ? b_.index32() : b_.index(); }

void LoopNest::place(Value row) {
  const auto outer = static_cast<size_t>(shape_.outer);
  if (outer == 0) return;
  std::vector<Value> position(outer);
  for (size_t k = outer - 1; k > 0; --k) {
    position[k] = row % sizes_[k - 1];
    row = row / sizes_[k - 1];
  }
  position[0] = row;
  for (Operand& operand : operands_) {
    Value offset;
    for (size_t k = 0; k < operand.strides.size(); ++k) {
      if (is_set(operand.strides[k])) {
        const Value part = position[k] * operand.strides[k];
        offset = is_set(offset) ? offset + part : part;
      }
      if (k == 0 && is_set(operand.start)) {
        offset = is_set(offset) ? offset + operand.start : operand.start;
      }
    }
    operand.offset = offset;
  }
}

Value LoopNest::first(int operand) const {
  const Value offset = operands_[static_cast<size_t>(operand)].offset;
  return is_set(offset) ? offset : b_.i64(0);
}

Value LoopNest::element(int operand, Value position) const {
  const AccessPattern walk = shape_.operands[operand].walk;
  const Operand& lies = operands_[static_cast<size_t>(operand)];
  if (walk == AccessPattern::kUniform) return first(operand);
  if (walk == AccessPattern::kReversed) return lies.offset - position;
  Value step = position;
  if (walk == AccessPattern::kStrided) step = position * lies.inner;
  if (walk == AccessPattern::kSecond) step = position * 2;
  return is_set(lies.offset) ? lies.offset + step : step;
}

}  // namespace graft
