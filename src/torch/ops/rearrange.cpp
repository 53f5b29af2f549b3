// src/torch/ops/rearrange.cpp: operators that only move elements, by way of views and selections.
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_channel_shuffle_ops.h>

#include <vector>

#include "kernels/move/copy.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"

namespace graft::binding {

namespace {

// A rotation of one dimension: out starts with in's element number first.
struct Turn {
  int64_t dim, first;
};

// Each turn cuts the tensor in two, so k of them copy 2^k blocks.
void roll_into(const at::Tensor& out, const at::Tensor& in, at::ArrayRef<Turn> turns) {
  if (turns.empty()) {
    out.copy_(in);
    return;
  }
  const auto [dim, first] = turns[0];
  const int64_t tail = in.size(dim) - first;
  roll_into(out.narrow(dim, 0, tail), in.narrow(dim, first, tail), turns.slice(1));
  roll_into(out.narrow(dim, tail, first), in.narrow(dim, 0, first), turns.slice(1));
}

// PyTorch's own for other devices than the CPU takes only what can be viewed as groups.
at::Tensor channel_shuffle(const at::Tensor& self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2,
              "channel_shuffle expects input with > 2 dims, but got input with sizes ",
              self.sizes());
  const int64_t batch = self.size(0), channels = self.size(1);
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive.",
              " Value of groups:", groups);
  TORCH_CHECK(channels % groups == 0, "Number of channels must be divisible by groups. Got ",
              channels, " channels and ", groups, " groups.");
  const int64_t plane = c10::multiply_integers(self.sizes().slice(2));
  const at::Tensor grouped = self.reshape({batch, groups, channels / groups, plane});
  const at::Tensor shuffled = grouped.transpose(1, 2).clone(at::MemoryFormat::Contiguous);
  return shuffled.view(self.sizes()).contiguous(self.suggest_memory_format());
}

}  // namespace

// Where autograd is off the first key is met, else the second.
TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  implement<at::_ops::native_channel_shuffle, &channel_shuffle>(m);
}
TORCH_LIBRARY_IMPL(aten, GRAFT_AUTOGRAD_KEY, m) {
  m.impl("native_channel_shuffle", &channel_shuffle);
}

at::Tensor GRAFT_OPERATOR(flip)(const at::Tensor& self, at::IntArrayRef dims) {
  const auto flipped = at::dim_list_to_bitset(dims, self.dim());
  at::Tensor result = at::empty_like(self);
  if (self.numel() == 0) return result;
  TensorView from = view_of(self);
  for (int d = 0; d < from.rank; ++d) {
    if (!flipped[static_cast<size_t>(d)]) continue;
    from.address += static_cast<uint64_t>((from.sizes[d] - 1) * from.strides[d]) * self.itemsize();
    from.strides[d] = -from.strides[d];
  }
  copy(stream_of(self), view_of(result), from);
  return result;
}

at::Tensor GRAFT_OPERATOR(roll)(const at::Tensor& self, at::IntArrayRef shifts,
                                at::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    return GRAFT_OPERATOR(roll)(self.contiguous().view(-1), shifts, {0}).view(self.sizes());
  }
  TORCH_CHECK(shifts.size() == dims.size(),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  if (self.numel() == 0) return self.clone();
  at::DimVector first(self.dim(), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = at::maybe_wrap_dim(dims[i], self.dim());
    const int64_t size = self.size(dim);
    first[dim] = ((first[dim] - shifts[i]) % size + size) % size;
  }
  at::Tensor result = at::empty(self.sizes(), self.options(), self.suggest_memory_format());
  std::vector<Turn> turns;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    if (first[dim] != 0) turns.push_back({dim, first[dim]});
  }
  roll_into(result, self, turns);
  return result;
}

at::Tensor GRAFT_OPERATOR(trace)(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  require(self.scalar_type() != at::kBool);
  return self.diagonal().sum();
}

}  // namespace graft::binding
