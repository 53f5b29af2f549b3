// src/torch/ops/stubs_index_put.cpp: the gradient of advanced indexing, index_put with
// accumulation.
#include <ATen/ExpandUtils.h>

#include <algorithm>
#include <sstream>

#include "kernels/index/index.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/index.h"

namespace graft::binding {
namespace {

// The tensors as dimensions [before, index, after] of one shape.
struct Placement {
  int64_t before = 0;   // dimensions of self in front of the indexed ones
  at::DimVector index;  // sizes of the broadcast indices
  int64_t indexed = 0;  // number of indexed dimensions
  at::DimVector shape(const at::Tensor& self) const {
    at::DimVector sizes(self.sizes().begin(), self.sizes().begin() + before);
    sizes.append(index.begin(), index.end());
    sizes.append(self.sizes().begin() + before + indexed, self.sizes().end());
    return sizes;
  }
};

Placement place(const std::vector<at::Tensor>& indices) {
  Placement found;
  while (!indices[found.before].defined()) ++found.before;
  for (const at::Tensor& index : indices) found.indexed += index.defined();
  const at::IntArrayRef sizes = indices[found.before].sizes();
  found.index.assign(sizes.begin(), sizes.end());
  return found;
}

// self with stride 0 where the indices decide.
TensorView target(const at::Tensor& self, const Placement& placement) {
  const at::DimVector shape = placement.shape(self);
  TensorView view = view_of(self);
  const TensorView old = view;
  const int between = static_cast<int>(placement.index.size());
  const int before = static_cast<int>(placement.before);
  view.rank = static_cast<int>(shape.size());
  if (view.rank > kMaxRank) throw_unfilled();
  for (int i = 0; i < view.rank; ++i) {
    view.sizes[i] = shape[i];
    if (i < before) {
      view.strides[i] = old.strides[i];
    } else if (i < before + between) {
      view.strides[i] = 0;
    } else {
      view.strides[i] = old.strides[i - between + placement.indexed];
    }
  }
  return view;
}

// PyTorch's own checks stand in the iterator of index_put without accumulation.
void check_values(const at::Tensor& self, const at::Tensor& value, at::IntArrayRef shape) {
  TORCH_CHECK(value.scalar_type() == self.scalar_type(),
              "Index put requires the source and destination dtypes match, got ",
              self.scalar_type(), " for the destination and ", value.scalar_type(),
              " for the source.");
  TORCH_CHECK(at::is_expandable_to(value.sizes(), shape), "shape mismatch: value tensor of shape ",
              value.sizes(), " cannot be broadcast to indexing result of shape ", shape);
}

// No number is an index of a dimension without elements.
void check_rows(const at::Tensor& self, const Placement& placement) {
  if (std::ranges::count(placement.index, 0) != 0) return;
  for (int64_t i = 0; i < placement.indexed; ++i) {
    TORCH_CHECK_INDEX(self.size(placement.before + i) != 0,
                      "index is out of bounds for dimension with size 0");
  }
}

std::vector<at::Tensor> broadcast(const std::vector<at::Tensor>& indices) {
  try {
    return at::expand_outplace(indices);
  } catch (const std::exception&) {
    std::ostringstream shapes;
    for (const at::Tensor& index : indices) {
      if (index.defined()) shapes << (shapes.tellp() > 0 ? ", " : "") << index.sizes();
    }
    TORCH_CHECK_INDEX(false,
                      "shape mismatch: indexing tensors could not be broadcast together with "
                      "shapes ",
                      shapes.str());
  }
}

void index_put_with_sort_stub(at::Tensor& self, const c10::List<std::optional<at::Tensor>>& given,
                              const at::Tensor& value, bool accumulate, bool) {
  native::checkIndexTensorTypes(given, /*allow_int=*/true);
  std::vector<at::Tensor> indices = native::expandTensors(self, given);
  for (at::Tensor& index : indices) {
    if (index.defined()) index = index.to(self.device(), at::kLong);
  }
  if (std::ranges::none_of(indices, &at::Tensor::defined)) {
    check_values(self, value, self.sizes());
    TORCH_CHECK(self.numel() == 0,
                "index_put: at least one index must be a tensor that selects elements");
    return;
  }
  indices = broadcast(indices);
  indices.resize(self.dim());
  at::Tensor to = self;
  if (!native::hasContiguousSubspace(indices)) {
    std::tie(to, indices) = native::transposeToFront(to, indices);
  }
  const Placement placement = place(indices);
  const at::DimVector shape = placement.shape(to);
  check_rows(to, placement);
  check_values(self, value, shape);
  const at::Tensor values = value.to(self.device()).expand(shape);
  if (values.numel() == 0) return;
  std::vector<at::Tensor> spread;
  std::vector<TensorView> views;
  std::vector<int64_t> sizes, strides;
  const int64_t after = to.dim() - placement.before - placement.indexed;
  for (int64_t i = 0; i < placement.indexed; ++i) {
    at::DimVector lined(placement.index);
    lined.append(after, 1);
    spread.push_back(indices[placement.before + i].reshape(lined).expand(shape));
    views.push_back(view_of(spread.back()));
    sizes.push_back(to.size(placement.before + i));
    strides.push_back(to.stride(placement.before + i));
  }
  index_put(stream_of(self), target(to, placement), view_of(values), views, sizes, strides,
            accumulate);
}

}  // namespace

void fill_index_put_stubs() {
  native::index_put_with_sort_stub.set_privateuse1_dispatch_ptr(&index_put_with_sort_stub);
}

}  // namespace graft::binding
