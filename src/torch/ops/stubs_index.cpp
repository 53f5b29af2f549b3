// src/torch/ops/stubs_index.cpp: kernels of the stubs that read or write elements at positions.
#include <ATen/ops/where.h>

#include "kernels/index/index.h"
#include "kernels/move/masked.h"
#include "torch/dispatch/stubs.h"
#include "torch/dispatch/tensor_iterator.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/index.h"

namespace graft::binding {
namespace {

// Operands from the third on are the indices; their strides come in bytes.
struct Indices {
  c10::SmallVector<TensorView, 4> views;
  c10::SmallVector<int64_t, 4> sizes, strides;

  Indices(const at::TensorIteratorBase& iterator, at::IntArrayRef in_sizes,
          at::IntArrayRef in_bytes, int64_t element_bytes)
      : sizes(in_sizes.begin(), in_sizes.end()) {
    TORCH_CHECK(iterator.ntensors() > 2,
                "index: at least one index must be a tensor that selects elements");
    for (int i = 2; i < iterator.ntensors(); ++i) views.push_back(operand_view(iterator, i));
    for (const int64_t bytes : in_bytes) strides.push_back(bytes / element_bytes);
  }
};

void index_stub(at::TensorIteratorBase& iterator, at::IntArrayRef sizes, at::IntArrayRef strides) {
  if (iterator.numel() == 0) return;
  const Indices at(iterator, sizes, strides, iterator.element_size(1));
  index(stream_of(iterator), operand_view(iterator, 0), operand_view(iterator, 1),
        {at.views.data(), at.views.size()}, {at.sizes.data(), at.sizes.size()},
        {at.strides.data(), at.strides.size()});
}

void index_put_stub(at::TensorIterator& iterator, at::IntArrayRef sizes, at::IntArrayRef strides,
                    bool accumulate) {
  if (iterator.numel() == 0) return;
  const Indices at(iterator, sizes, strides, iterator.element_size(0));
  index_put(stream_of(iterator), operand_view(iterator, 0), operand_view(iterator, 1),
            {at.views.data(), at.views.size()}, {at.sizes.data(), at.sizes.size()},
            {at.strides.data(), at.strides.size()}, accumulate);
}

void gather_stub(const at::Tensor& result, const at::Tensor& self, int64_t dim,
                 const at::Tensor& index) {
  if (index.numel() == 0) return;
  gather(stream_of(self), view_of(at_least_1d(result)), view_of(at_least_1d(self)),
         static_cast<int>(dim), view_of(at_least_1d(index)));
}

void scatter_into(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                  const at::Tensor& source, ScatterMode mode) {
  if (index.numel() == 0) return;
  scatter(stream_of(self), view_of(at_least_1d(self)), static_cast<int>(dim),
          view_of(at_least_1d(index)), view_of(at_least_1d(source)), mode);
}

ScatterMode mode_of(native::ReductionType reduction) {
  switch (reduction) {
    case native::ReductionType::SUM:
      return ScatterMode::kAdd;
    case native::ReductionType::PROD:
      return ScatterMode::kMultiply;
    case native::ReductionType::MAX:
      return ScatterMode::kMax;
    case native::ReductionType::MIN:
      return ScatterMode::kMin;
    default:
      throw_unfilled();
  }
}

// The number as a tensor of index's sizes and self's dtype.
at::Tensor spread(const c10::Scalar& value, const at::Tensor& self, const at::Tensor& index) {
  return at::full({}, value, self.options()).expand(index.sizes());
}

void scatter_stub(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                  const at::Tensor& source) {
  scatter_into(self, dim, index, source, ScatterMode::kReplace);
}

void scatter_fill_stub(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                       const c10::Scalar& value) {
  scatter_into(self, dim, index, spread(value, self, index), ScatterMode::kReplace);
}

void scatter_add_stub(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                      const at::Tensor& source) {
  scatter_into(self, dim, index, source, ScatterMode::kAdd);
}

void scatter_reduce_stub(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                         const at::Tensor& source, const native::ReductionType& reduction) {
  // PyTorch divides the sums by their counts itself.
  const bool mean = reduction == native::ReductionType::MEAN;
  if (mean && self.scalar_type() == at::kBool) throw_unfilled();
  scatter_into(self, dim, index, source, mean ? ScatterMode::kAdd : mode_of(reduction));
}

void scatter_number_stub(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                         const c10::Scalar& value, const native::ReductionType& reduction) {
  scatter_into(self, dim, index, spread(value, self, index), mode_of(reduction));
}

// Along the indexed dimension PyTorch gives self and the source stride 0 and steps by itself.
void index_fill_stub(at::TensorIterator& iterator, int64_t, int64_t size, int64_t stride,
                     const c10::Scalar& value) {
  if (iterator.numel() == 0) return;
  const TensorView to = operand_view(iterator, 0), index = operand_view(iterator, 1);
  const at::Tensor number = at::full({}, value, iterator.tensor(0).options());
  TensorView from = to;
  from.address = view_of(number).address;
  std::fill_n(from.strides, from.rank, 0);
  index_put(stream_of(iterator), to, from, {&index, 1}, {&size, 1}, {&stride, 1}, false);
}

void index_copy_stub(at::TensorIterator& iterator, int64_t, int64_t size, int64_t stride) {
  if (iterator.numel() == 0) return;
  const TensorView to = operand_view(iterator, 0), index = operand_view(iterator, 1);
  constexpr bool kAccumulates = false, kWraps = false;
  index_put(stream_of(iterator), to, operand_view(iterator, 2), {&index, 1}, {&size, 1},
            {&stride, 1}, kAccumulates, kWraps);
}

// A tensor seen as one line; the stubs of take and put count elements in its order.
struct Line {
  at::Tensor tensor;
  TensorView zero_strided(const TensorView& shape) const {
    TensorView view = shape;
    view.address = view_of(tensor).address;
    view.dtype = view_of(tensor).dtype;
    std::fill_n(view.strides, view.rank, 0);
    return view;
  }
};

void take_stub(at::TensorIterator& iterator, const at::TensorBase& input) {
  if (iterator.numel() == 0) return;
  const Line line{at::Tensor(input).contiguous()};
  const TensorView to = operand_view(iterator, 0), index = operand_view(iterator, 1);
  const int64_t size = line.tensor.numel(), stride = 1;
  graft::index(stream_of(iterator), to, line.zero_strided(to), {&index, 1}, {&size, 1},
               {&stride, 1});
}

// Of a tensor whose elements share memory: a copy of all elements would not know the last ones.
void put_in_place(at::TensorIterator& iterator, const at::Tensor& target, bool accumulate) {
  const int64_t count = target.numel();
  const at::Tensor given = iterator.tensor(1);
  at::Tensor position = at::where(given.lt(0), given.add(count), given);
  c10::List<std::optional<at::Tensor>> at;
  for (int64_t d = 0, after = count; d < target.dim(); ++d) {
    after /= target.size(d);
    at.push_back(position.div(after, "floor"));
    position = position.remainder(after);
  }
  at::Tensor written = target;
  written.index_put_(at, iterator.tensor(0), accumulate);
}

void put_stub(at::TensorIterator& iterator, const at::TensorBase& self, bool accumulate) {
  if (iterator.numel() == 0) return;
  const at::Tensor target(self);
  if (overlaps_itself(view_of(target))) return put_in_place(iterator, target, accumulate);
  const Line line{target.contiguous()};
  const TensorView from = operand_view(iterator, 0), index = operand_view(iterator, 1);
  const int64_t size = self.numel(), stride = 1;
  index_put(stream_of(iterator), line.zero_strided(from), from, {&index, 1}, {&size, 1},
            {&stride, 1}, accumulate);
  if (!target.is_contiguous()) target.copy_(line.tensor);
}

}  // namespace

void fill_index_stubs() {
  native::index_stub.set_privateuse1_dispatch_ptr(&index_stub);
  native::index_put_stub.set_privateuse1_dispatch_ptr(&index_put_stub);
  native::gather_stub.set_privateuse1_dispatch_ptr(&gather_stub);
  native::scatter_stub.set_privateuse1_dispatch_ptr(&scatter_stub);
  native::scatter_fill_stub.set_privateuse1_dispatch_ptr(&scatter_fill_stub);
  native::scatter_add_stub.set_privateuse1_dispatch_ptr(&scatter_add_stub);
  native::scatter_reduce_stub.set_privateuse1_dispatch_ptr(&scatter_reduce_stub);
  native::scatter_scalar_reduce_stub.set_privateuse1_dispatch_ptr(&scatter_number_stub);
  native::scatter_reduce_two_stub.set_privateuse1_dispatch_ptr(&scatter_reduce_stub);
  native::index_fill_stub.set_privateuse1_dispatch_ptr(&index_fill_stub);
  native::index_copy_stub.set_privateuse1_dispatch_ptr(&index_copy_stub);
  native::take_stub.set_privateuse1_dispatch_ptr(&take_stub);
  native::put_stub.set_privateuse1_dispatch_ptr(&put_stub);
}

}  // namespace graft::binding
