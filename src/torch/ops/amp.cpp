// src/torch/ops/amp.cpp: what torch.amp.GradScaler asks of a device.
#include "kernels/training/gradient_scale.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/dense_list.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

void check_number(const char* name, const at::Tensor& tensor, at::ScalarType type) {
  TORCH_CHECK(tensor.numel() == 1, name, " must be a 1-element tensor.");
  TORCH_CHECK(tensor.scalar_type() == type, name, " must be a ", at::toString(type),
              " tensor, got ", at::toString(tensor.scalar_type()), "; convert it");
}

}  // namespace

void GRAFT_OPERATOR(_amp_foreach_non_finite_check_and_unscale_)(at::TensorList self,
                                                                at::Tensor& found_inf,
                                                                const at::Tensor& inv_scale) {
  if (self.empty()) return;
  check_number("inv_scale", inv_scale, at::kFloat);
  check_number("found_inf", found_inf, at::kFloat);
  DenseList dense;
  std::vector<TensorView> views(self.size());
  for (size_t i = 0; i < self.size(); ++i) {
    TORCH_CHECK(at::isFloatingType(self[i].scalar_type()),
                "gradients must be floating tensors, got ", at::toString(self[i].scalar_type()),
                "; convert them");
    dense.add("_amp_foreach_non_finite_check_and_unscale_", {{self[i], &views[i], true}});
  }
  unscale_gradients(stream_of(found_inf), views, flat_view(found_inf), flat_view(inv_scale));
  dense.finish();
}

at::Tensor& GRAFT_OPERATOR(_amp_update_scale_)(at::Tensor& self, at::Tensor& growth_tracker,
                                               const at::Tensor& found_inf,
                                               double scale_growth_factor,
                                               double scale_backoff_factor,
                                               int64_t growth_interval) {
  check_number("current_scale", self, at::kFloat);
  check_number("growth_tracker", growth_tracker, at::kInt);
  check_number("found_inf", found_inf, at::kFloat);
  update_scale(stream_of(self), flat_view(self), flat_view(growth_tracker), flat_view(found_inf),
               scale_growth_factor, scale_backoff_factor, growth_interval);
  return self;
}

}  // namespace graft::binding
