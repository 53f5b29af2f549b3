// src/kernels/attention/operands.cpp: what the tiled kernels of attention read, and their scores.
#include "kernels/attention/operands.h"

#include <limits>

#include "kernels/matmul/tile_launch.h"
#include "runtime/driver/dtype.h"

namespace graft {

using namespace ir;

TiledAttention::TiledAttention(const Attention& call, AttentionTile made_for)
    : dtype(call.query.dtype), drops(call.dropout > 0), tile(std::move(made_for)) {
  if (call.bias != nullptr) bias = call.bias->dtype;
}

std::string TiledAttention::key(const char* name) const {
  return std::string(name) + "_" + tile.text() + "_" + name_of(dtype) +
         (bias ? std::string("_") + name_of(*bias) : "") + (drops ? "_dropout" : "");
}

graft_dtype TiledAttention::sums() const { return is_half(dtype) ? GRAFT_FLOAT32 : dtype; }

TileProduct::Factor weights_of(const AttentionTile& tile, const ir::LocalArray& weights) {
  return {Along::kLines, [line = tile.weights_line(), weights](Value row, Value deep) {
            return weights.load(deep * line + row);
          }};
}

AttentionDropout::AttentionDropout(Builder& b) : b_(b), philox_(b) {
  b.indices({&whole_, &block_rows_, &block_heads_, &slab_heads_, &slab_draws_, &group_draws_,
             &threshold_});
  factor_ = b.scalar(GRAFT_FLOAT64);
}

void AttentionDropout::append(Arguments& arguments, const Attention& call, bool whole) {
  const AttentionPlan plan(call);
  const int64_t slab = whole ? call.query.sizes[0] * call.query.sizes[1] : call.key.sizes[1];
  const int64_t heads = plan.block_heads();
  const uint64_t group = plan.draws(heads);
  const uint64_t rest = slab % heads == 0 ? 0 : plan.draws(slab % heads);
  append_philox(arguments, call.philox, call.query.sizes[2], 4);
  arguments.indices({whole ? 1 : 0, plan.block_rows(), heads, slab,
                     static_cast<int64_t>(static_cast<uint64_t>(slab / heads) * group + rest),
                     static_cast<int64_t>(group),
                     static_cast<int64_t>(dropout_threshold(call.dropout))});
  arguments.scalar(Scalar::of(call.dropout < 1 ? 1 / (1 - call.dropout) : 0), sizeof(double));
}

Value AttentionDropout::start(const Row& at) const {
  const Value whole = whole_ != 0;
  const Value slab = select(whole, 0, at.batch * at.members + at.head % at.members);
  const Value place = select(whole, at.batch * at.heads + at.head, at.head / at.members);
  const Value group = place / block_heads_, before = group * block_heads_;
  const Value heads = ir::minimum(block_heads_, slab_heads_ - before);
  const auto width = [&](Value end) {
    return select(at.causal != 0, ir::minimum(at.columns, end), at.columns);
  };
  const Value first = at.row / block_rows_ * block_rows_;
  const Value end = ir::minimum(first + block_rows_, at.rows);
  const ir::Variable offset(slab * slab_draws_ + group * group_draws_);
  b_.loop(
      first + block_rows_, at.rows,
      [&](Value row) {
        const Value stop = ir::minimum(row + block_rows_, at.rows);
        offset = offset.get() + (heads * (stop - row) * width(stop) / 2 + 1);
      },
      block_rows_);
  return offset.get() * 4 + ((place - before) * (end - first) + at.row - first) * width(end);
}

Value AttentionDropout::apply(Value start, Value column, Value weight) const {
  const Value element = start + column;
  const PhiloxWords words = philox_.words({element >> 2})[0];
  const Value high = (element & 2) != 0;
  const Value word = select((element & 1) != 0, select(high, words[3], words[1]),
                            select(high, words[2], words[0]));
  const Value keep = cast(Type::kI64, word) >= threshold_;
  return select(keep, weight * cast(weight.type(), factor_), 0);
}

AttentionOperands::AttentionOperands(Builder& b, const TiledAttention& kernel)
    : type(ir::compute_type(kernel.dtype)) {
  b.indices({&rows, &columns, &depth, &value_depth, &heads, &members, &causal});
  for (Tensor* one : {&query, &key, &value}) *one = tensor(b, b.read(kernel.dtype));
  if (kernel.bias) bias = tensor(b, b.read(*kernel.bias));
  scale = b.scalar(scale_dtype(kernel.dtype));
  if (kernel.drops) dropout.emplace(b);
}

void AttentionOperands::append(Arguments& arguments, const Attention& call, bool whole) {
  const TensorView &q = call.query, &k = call.key;
  arguments.indices({q.sizes[2], k.sizes[2], q.sizes[3], call.value.sizes[3], q.sizes[1],
                     q.sizes[1] / k.sizes[1], call.causal ? 1 : 0});
  for (const TensorView* view : {&q, &k, &call.value, call.bias}) {
    if (view != nullptr) append_tensor(arguments.read(*view), *view);
  }
  append_scale(arguments, q.dtype, call.scale);
  if (call.dropout > 0) AttentionDropout::append(arguments, call, whole);
}

AttentionOperands::Tensor AttentionOperands::tensor(Builder& b, ir::Address address) {
  Tensor made{address, {}};
  for (Value& stride : made.strides) stride = b.index();
  return made;
}

void AttentionOperands::append_tensor(Arguments& arguments, const TensorView& view) {
  for (int d = 0; d < 4; ++d) arguments.index(view.strides[d]);
}

AttentionOperands::Head AttentionOperands::head(Value number) const {
  const Value query = number % heads;
  return {number, number / heads, query, query / members};
}

Value AttentionOperands::score(const Head& head, Value sum, Value row, Value column) const {
  Value score = sum * scale;
  const Value inside = column < seen(row);
  if (bias) {
    const Value at = bias->head(head.batch, head.query) + row * bias->strides[2];
    const Value read = select(inside & (row < rows), at + column * bias->strides[3], 0);
    score = score + cast(type, bias->address.load(read));
  }
  return select(inside, score, -std::numeric_limits<double>::infinity());
}

Value AttentionOperands::draws(const Head& head, Value row) const {
  return dropout->start({head.batch, head.query, row, heads, members, rows, columns, causal});
}

TileProduct::Load AttentionOperands::loader(const Tensor& from, Value start, Value first, Value end,
                                            Value width, bool turned) const {
  return [=, this](Value line, Value deep) {
    const Value at = first + cast(Type::kI64, turned ? deep : line);
    const Value element = cast(Type::kI64, turned ? line : deep);
    const Value inside = (at < end) & (element < width);
    const Value offset = start + at * from.strides[2] + element * from.strides[3];
    return select(inside, cast(type, from.address.load(select(inside, offset, 0))), 0);
  };
}

TileProduct::Factor AttentionOperands::lines(const Tensor& from, Value start, Value first,
                                             Value end, Value width) const {
  return {Along::kDepth, loader(from, start, first, end, width, false)};
}

TileProduct::Factor AttentionOperands::across(const Tensor& from, Value start, Value first,
                                              Value end, Value width) const {
  return {Along::kLines, loader(from, start, first, end, width, true)};
}

}  // namespace graft
