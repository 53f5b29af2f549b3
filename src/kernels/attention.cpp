// src/kernels/attention.cpp: scaled dot product attention in blocks of rows, and its gradients.
#include "kernels/attention.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "codegen/program_cache.h"
#include "kernels/arguments.h"
#include "kernels/attention_kernel.h"
#include "kernels/fill.h"
#include "kernels/matmul.h"
#include "kernels/softmax.h"
#include "kernels/work_split.h"
#include "kernels/workspace.h"
#include "runtime/dtype.h"

namespace graft {
namespace {

// Heads whose matrices one product takes: those with one stride between them.
struct Slab {
  int64_t batch = 0, member = 0;  // of the first head: its batch, its place in the group
  int64_t heads = 0;
  bool whole = false;  // all batches in one
};

// A block of rows of some heads of a slab.
struct RowBlock {
  Slab slab;
  int64_t head = 0, heads = 0;  // within the slab
  int64_t row = 0, rows = 0, columns = 0;
  bool first = false;  // of those that add to the same keys
  uint64_t philox_offset = 0;
};

// Cuts a call into blocks and gives the parts of tensors that belong to one.
class Plan {
 public:
  explicit Plan(const Attention& call) : call_(call) {
    const TensorView& q = call.query;
    group_ = call.key.sizes[1] == 0 ? 1 : q.sizes[1] / call.key.sizes[1];
    columns_ = call.key.sizes[2];
  }

  // visit(block), last rows first: with causal the first visit of a head then reaches all columns
  // that any does. whole: every tensor lets batch and heads be one dimension.
  void each(bool whole, const std::function<void(const RowBlock&)>& visit) const {
    const TensorView& q = call_.query;
    uint64_t offset = call_.philox.offset;
    const int64_t batches = whole ? 1 : q.sizes[0], members = whole ? 1 : group_;
    for (int64_t batch = 0; batch < batches; ++batch) {
      for (int64_t member = 0; member < members; ++member) {
        const int64_t heads = whole ? q.sizes[0] * q.sizes[1] : call_.key.sizes[1];
        each_block({batch, member, heads, whole}, &offset, visit);
      }
    }
  }

  bool collapses(const TensorView& view) const {
    return view.sizes[0] == 1 || view.sizes[1] == 1 ||
           view.strides[0] == view.sizes[1] * view.strides[1];
  }
  bool whole(std::initializer_list<const TensorView*> views) const {
    if (group_ != 1) return false;
    return std::all_of(views.begin(), views.end(), [this](const TensorView* view) {
      return view == nullptr || collapses(*view);
    });
  }

  // The block's rows of a tensor with the queries' heads, and its columns of one with the keys'.
  TensorView rows_of(const TensorView& view, const RowBlock& block) const {
    TensorView part = heads_of(view, block, group_, block.slab.member);
    part.address += bytes(view, block.row * view.strides[2]);
    part.sizes[1] = block.rows;
    return part;
  }
  TensorView columns_of(const TensorView& view, const RowBlock& block) const {
    TensorView part = heads_of(view, block, 1, 0);
    part.sizes[1] = block.columns;
    return part;
  }

 private:
  static uint64_t bytes(const TensorView& view, int64_t elements) {
    return static_cast<uint64_t>(elements) * size_of(view.dtype);
  }

  void each_block(const Slab& slab, uint64_t* offset,
                  const std::function<void(const RowBlock&)>& visit) const {
    const int64_t all = call_.query.sizes[2], width = std::max<int64_t>(1, columns_);
    if (all == 0) return;
    const int64_t rows = std::clamp<int64_t>(kAttentionBlockElements / width, 16, 256);
    const int64_t heads =
        std::max<int64_t>(1, kAttentionBlockElements / (width * std::min(rows, all)));
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
        if (call_.causal) block.columns = std::min(columns_, row + block.rows);
        *offset +=
            philox_increment(static_cast<uint64_t>(block.heads * block.rows * block.columns));
        visit(block);
      }
    }
  }

  TensorView heads_of(const TensorView& view, const RowBlock& block, int64_t group,
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

  const Attention& call_;
  int64_t group_, columns_;
};

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
    TensorView view{};
    view.address = memory_.address();
    view.dtype = dtype_;
    view.rank = 3;
    view.sizes[0] = block.heads, view.sizes[1] = block.rows, view.sizes[2] = block.columns;
    view.strides[0] = block.rows * block.columns, view.strides[1] = block.columns;
    view.strides[2] = 1;
    return view;
  }

 private:
  Workspace memory_;
  graft_dtype dtype_;
};

int64_t largest_block(const Plan& plan, bool whole) {
  int64_t largest = 0;
  plan.each(whole, [&](const RowBlock& block) {
    largest = std::max(largest, block.heads * block.rows * block.columns);
  });
  return largest;
}

// scores = softmax(scale * query key^T + bias) of the block; logsumexp: the block's part.
void weights(Stream& stream, const TensorView& scores, const TensorView& logsumexp,
             const Attention& call, const Plan& plan, const RowBlock& block) {
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
  arguments.index(split.lines).index(split.per_item).index(block.rows).index(block.columns);
  arguments.index(call.causal ? block.row : -1).index(logsumexp.strides[0]);
  for (int d = 0; d < 3; ++d) arguments.index(kernel.biased ? bias.strides[d] : 0);
  stream.launch(get_kernel(stream.device(), kernel.key(), [&] { return kernel.build(); }),
                static_cast<uint64_t>(split.grid), arguments.span());
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
    const AttentionKernel kernel{GRAFT_FLOAT32, biased, GRAFT_FLOAT32};
    add(kernel.key(), [kernel] { return kernel.build(); });
  }
});

}  // namespace

uint64_t attention_increment(const Attention& call) {
  // More than any way of cutting takes: half the elements, and one for each row.
  const auto lines =
      static_cast<uint64_t>(call.query.sizes[0] * call.query.sizes[1] * call.query.sizes[2]);
  return lines * (static_cast<uint64_t>(call.key.sizes[2]) / 2 + 2);
}

void attention(Stream& stream, const TensorView& output, const TensorView& logsumexp,
               const Attention& call) {
  const Plan plan(call);
  const bool whole = plan.whole({&call.query, &call.key, &call.value, call.bias, &output});
  const int64_t elements = largest_block(plan, whole);
  const bool drops = call.dropout > 0;
  const Scores scores(stream, elements, call.query.dtype);
  const Workspace mask(stream, drops ? static_cast<uint64_t>(elements) : 0);
  plan.each(whole, [&](const RowBlock& block) {
    const TensorView weight = scores.of(block);
    weights(stream, weight, plan.rows_of(logsumexp, block), call, plan, block);
    if (drops) {
      dropout(stream, weight, mask_of(weight, mask), weight,
              {call.philox.seed, block.philox_offset}, call.dropout);
    }
    matmul(stream, plan.rows_of(output, block), weight, plan.columns_of(call.value, block));
  });
}

namespace {

// The gradients that one block adds to; the scores are those of its forward pass, once more.
struct Backward {
  Stream& stream;
  const Attention& call;
  const Plan& plan;
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
  const Plan plan(call);
  const bool whole = plan.whole({&call.query, &call.key, &call.value, call.bias, &grad_query,
                                 &grad_key, &grad_value, &grad_output});
  const int64_t elements = largest_block(plan, whole);
  const bool drops = call.dropout > 0;
  const graft_dtype dtype = call.query.dtype;
  if (elements == 0 || (call.causal && call.key.sizes[2] > call.query.sizes[2])) {
    fill(stream, grad_key, Scalar::of(0.0));
    fill(stream, grad_value, Scalar::of(0.0));
  }
  const Scores weight(stream, elements, dtype), slope(stream, elements, dtype);
  const Scores dropped(stream, drops ? elements : 0, dtype);
  const Workspace mask(stream, drops ? static_cast<uint64_t>(elements) : 0);
  TensorView sums{};
  sums.dtype = dtype;
  sums.rank = 3;
  for (int d = 0; d < 3; ++d) sums.sizes[d] = call.query.sizes[d];
  sums.strides[0] = sums.sizes[1] * sums.sizes[2], sums.strides[1] = sums.sizes[2];
  sums.strides[2] = 1;
  const Workspace memory(stream, static_cast<uint64_t>(sums.count()) * size_of(dtype));
  sums.address = memory.address();
  plan.each(whole, Backward{stream, call, plan, grad_query, grad_key, grad_value, grad_output, sums,
                            weight, dropped, slope, mask});
}

}  // namespace graft
