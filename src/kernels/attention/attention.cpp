// src/kernels/attention/attention.cpp: scaled dot product attention in blocks of rows, and its
// gradients.
#include "kernels/attention/attention.h"

#include <algorithm>

#include "codegen/cache/program_cache.h"
#include "kernels/attention/kernel.h"
#include "kernels/attention/plan.h"
#include "kernels/attention/row_attention.h"
#include "kernels/attention/tiled_attention.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/launch/workspace.h"
#include "kernels/matmul/matmul.h"
#include "kernels/move/copy.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/norm/softmax.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

TensorView turned(TensorView view) {
  std::swap(view.sizes[1], view.sizes[2]);
  std::swap(view.strides[1], view.strides[2]);
  return view;
}

// Memory of the largest block, seen as one block's scores.
class Scores {
 public:
  Scores(Stream& stream, int64_t elements, graft_dtype dtype)
      : memory_(stream, static_cast<uint64_t>(elements) * size_of(dtype)), dtype_(dtype) {}
  TensorView of(const RowBlock& block) const {
    return {memory_.address(),
            dtype_,
            3,
            {block.heads, block.rows, block.columns},
            {block.rows * block.columns, block.columns, 1}};
  }

 private:
  Workspace memory_;
  graft_dtype dtype_;
};

int64_t largest_block(const AttentionPlan& plan, bool whole) {
  int64_t largest = 0;
  plan.each(whole, [&](const RowBlock& block) {
    largest = std::max(largest, block.heads * block.rows * block.columns);
  });
  return largest;
}

// scores = softmax(scale * query key^T + bias) of the block; logsumexp: the block's part.
void weights(Stream& stream, const TensorView& scores, const TensorView& logsumexp,
             const Attention& call, const AttentionPlan& plan, const RowBlock& block) {
  MatmulEpilogue epilogue;
  epilogue.alpha = call.scale;
  matmul(stream, scores, plan.rows_of(call.query, block), turned(plan.columns_of(call.key, block)),
         epilogue);
  AttentionKernel kernel{scores.dtype, call.bias != nullptr, GRAFT_FLOAT32};
  Arguments arguments;
  arguments.update(scores).write(logsumexp);
  TensorView bias{};
  if (kernel.biased) {
    bias = plan.rows_of(*call.bias, block);
    bias.sizes[2] = block.columns;
    kernel.bias = bias.dtype;
    arguments.read(bias);
  }
  const WorkSplit split = split_work(block.heads * block.rows, 8 * block.columns);
  arguments.indices({split.lines, split.per_item, block.rows, block.columns,
                     call.causal ? block.row : -1, logsumexp.strides[0]});
  for (int d = 0; d < 3; ++d) arguments.index(kernel.biased ? bias.strides[d] : 0);
  launch_kernel(stream, kernel, split.grid, arguments);
}

// A contiguous mask of the block's shape.
TensorView mask_of(const TensorView& scores, const Workspace& memory) {
  TensorView mask = scores;
  mask.dtype = GRAFT_BOOL;
  mask.address = memory.address();
  return mask;
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (bool biased : {false, true}) {
    PackEntry::put(add, AttentionKernel{GRAFT_FLOAT32, biased, GRAFT_FLOAT32});
  }
});

}  // namespace

uint64_t attention_increment(const Attention& call) {
  // More than any way of cutting takes: half the elements, and one for each row.
  const auto lines =
      static_cast<uint64_t>(call.query.sizes[0] * call.query.sizes[1] * call.query.sizes[2]);
  return lines * (static_cast<uint64_t>(call.key.sizes[2]) / 2 + 2);
}

namespace {

// What the call reads, with its results where they are given back, and its settings.
void append(VendorCall& to, const Attention& call, bool results) {
  to.read(call.query).read(call.key).read(call.value).read(call.bias);
  if (results) to.read(call.output).read(call.logsumexp);
  to.integers({call.causal}).numbers({call.scale, call.dropout});
  to.random(call.philox.seed, call.philox.offset);
}

// Half types, in float32: as PyTorch's own composition does.
void attention_of_halves(Stream& stream, const TensorView& output, const TensorView& logsumexp,
                         Attention call) {
  const StagedInput query(stream, call.query, true, GRAFT_FLOAT32);
  const StagedInput key(stream, call.key, true, GRAFT_FLOAT32);
  const StagedInput value(stream, call.value, true, GRAFT_FLOAT32);
  const ScratchTensor result(stream, output, GRAFT_FLOAT32);
  call.query = query.view(), call.key = key.view(), call.value = value.view();
  attention(stream, result.view(), logsumexp, call);
  copy(stream, output, result.view());
}

}  // namespace

void attention(Stream& stream, const TensorView& output, const TensorView& logsumexp,
               const Attention& call) {
  if (offer(stream, Operation::attention, [&](VendorCall& to) {
        to.write(output).write(logsumexp);
        append(to, call, false);
      }))
    return;
  if (tiled_attention(stream, output, logsumexp, call)) return;
  if (row_attention(stream, output, logsumexp, call)) return;
  if (is_half(call.query.dtype)) return attention_of_halves(stream, output, logsumexp, call);
  const AttentionPlan plan(call);
  const bool whole = plan.whole({&output}), drops = call.dropout > 0;
  StagedOutput result(stream, output, plan.stages(whole, output));
  const int64_t elements = largest_block(plan, whole);
  const Scores scores(stream, elements, call.query.dtype);
  const Workspace mask(stream, drops ? static_cast<uint64_t>(elements) : 0);
  plan.each(whole, [&](const RowBlock& block) {
    const TensorView weight = scores.of(block);
    weights(stream, weight, plan.rows_of(logsumexp, block), call, plan, block);
    if (drops) {
      dropout(stream, weight, mask_of(weight, mask), weight,
              {call.philox.seed, block.philox_offset}, call.dropout);
    }
    matmul(stream, plan.rows_of(result.view(), block), weight, plan.columns_of(call.value, block));
  });
  result.finish();
}

namespace {

// The gradients that one block adds to; the scores are those of its forward pass, once more.
struct Backward {
  Stream& stream;
  const Attention& call;
  const AttentionPlan& plan;
  const TensorView &grad_query, &grad_key, &grad_value, &grad_output, &logsumexp;
  const Scores &weight, &dropped, &gradient;
  const Workspace& mask;

  void operator()(const RowBlock& block) const {
    const bool drops = call.dropout > 0;
    const TensorView p = weight.of(block), slope = gradient.of(block);
    weights(stream, p, plan.rows_of(logsumexp, block), call, plan, block);
    const TensorView kept = drops ? dropped.of(block) : p, held = mask_of(p, mask);
    if (drops) {
      dropout(stream, kept, held, p, {call.philox.seed, block.philox_offset}, call.dropout);
    }
    const TensorView above = plan.rows_of(grad_output, block);
    add_to(plan.columns_of(grad_value, block), turned(kept), above, 1, block.first);
    matmul(stream, slope, above, turned(plan.columns_of(call.value, block)));
    if (drops) {
      const double factor = call.dropout < 1 ? 1 / (1 - call.dropout) : 0;
      dropout_backward(stream, slope, slope, held, factor);
    }
    softmax_backward(stream, slope, slope, p, 2, false);
    MatmulEpilogue scaled;
    scaled.alpha = call.scale;
    matmul(stream, plan.rows_of(grad_query, block), slope, plan.columns_of(call.key, block),
           scaled);
    add_to(plan.columns_of(grad_key, block), turned(slope), plan.rows_of(call.query, block),
           call.scale, block.first);
  }

 private:
  void add_to(const TensorView& sum, const TensorView& a, const TensorView& b, double factor,
              bool first) const {
    MatmulEpilogue epilogue;
    epilogue.alpha = factor;
    if (!first) epilogue.beta = 1, epilogue.addend = &sum;
    matmul(stream, sum, a, b, epilogue);
  }
};

}  // namespace

void attention_backward(Stream& stream, const TensorView& grad_query, const TensorView& grad_key,
                        const TensorView& grad_value, const TensorView& grad_output,
                        const Attention& call) {
  if (offer(stream, Operation::attention_backward, [&](VendorCall& to) {
        to.write(grad_query).write(grad_key).write(grad_value).read(grad_output);
        append(to, call, true);
      }))
    return;
  if (tiled_attention_backward(stream, grad_query, grad_key, grad_value, grad_output, call)) return;
  const AttentionPlan plan(call);
  const bool whole = plan.whole({&grad_query, &grad_key, &grad_value, &grad_output});
  const StagedInput above(stream, grad_output, plan.stages(whole, grad_output));
  StagedOutput query(stream, grad_query, plan.stages(whole, grad_query)),
      key(stream, grad_key, plan.stages(whole, grad_key)),
      value(stream, grad_value, plan.stages(whole, grad_value));
  const int64_t elements = largest_block(plan, whole);
  const bool drops = call.dropout > 0;
  const graft_dtype dtype = call.query.dtype;
  if (elements == 0 || (call.causal && call.key.sizes[2] > call.query.sizes[2])) {
    fill(stream, key.view(), Scalar::of(0.0));
    fill(stream, value.view(), Scalar::of(0.0));
  }
  const Scores weight(stream, elements, dtype), slope(stream, elements, dtype);
  const Scores dropped(stream, drops ? elements : 0, dtype);
  const Workspace mask(stream, drops ? static_cast<uint64_t>(elements) : 0);
  const ScratchTensor sums(stream, per_row(call.query), dtype);
  plan.each(whole, Backward{stream, call, plan, query.view(), key.view(), value.view(),
                            above.view(), sums.view(), weight, dropped, slope, mask});
  for (StagedOutput* output : {&query, &key, &value}) output->finish();
}

}  // namespace graft
