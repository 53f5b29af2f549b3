// src/torch/tensor/dense_list.cpp: tensors of an elementwise list operator as flat views in one
// order.
#include "torch/tensor/dense_list.h"

#include "torch/tensor/lazy_clone.h"

namespace graft::binding {

TensorView flat_view(const at::Tensor& tensor) {
  if (lazy_clones_live()) [[unlikely]]
    own_for_kernel(tensor);
  TensorView view{};
  view.address = address_of(tensor);
  view.dtype = to_graft(tensor.scalar_type());
  view.rank = 1;
  view.sizes[0] = tensor.numel();
  view.strides[0] = 1;
  return view;
}

void DenseList::add(const char* name, const std::vector<Member>& members) {
  const at::Tensor& first = members.front().tensor;
  bool alike = true;
  for (const Member& member : members) {
    const at::Tensor& tensor = member.tensor;
    TORCH_CHECK(
        tensor.sizes() == first.sizes() && tensor.scalar_type() == first.scalar_type() &&
            tensor.device() == first.device(),
        name,
        ": a parameter, its gradient and its state must agree in sizes, dtype and device; got ",
        first.toString(), first.sizes(), " on ", first.device(), " and ", tensor.toString(),
        tensor.sizes(), " on ", tensor.device());
    alike = alike && tensor.is_non_overlapping_and_dense() && tensor.strides() == first.strides();
  }
  for (const Member& member : members) {
    if (alike || member.tensor.is_contiguous()) {
      *member.view = flat_view(member.tensor);
      continue;
    }
    const at::Tensor copy = member.tensor.contiguous();
    *member.view = flat_view(copy);
    kept_.push_back(copy);
    if (member.written) copies_.push_back({member.tensor, copy});
  }
}

const at::Tensor& DenseList::keep(const at::Tensor& tensor) {
  kept_.push_back(tensor.to(at::kFloat));
  return kept_.back();
}

void DenseList::finish() {
  for (Copy& copy : copies_) copy.original.copy_(copy.copy);
}

}  // namespace graft::binding
