// src/torch/autocast.cpp: torch.autocast of the device: torch's own lists; others run as they are.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "torch/device_type.h"

namespace graft::binding {
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

static Tensor refuse_binary_cross_entropy(const Tensor& /*self*/, const Tensor& /*target*/,
                                          const std::optional<Tensor>& /*weight*/,
                                          int64_t /*mode*/) {
  TORCH_CHECK(
      false,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
      "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
      "In this case, combine the two layers using "
      "torch.nn.functional.binary_cross_entropy_with_logits\n"
      "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
      "safe to autocast.");
}

#define GRAFT_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define GRAFT_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define GRAFT_FP32_SET_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define GRAFT_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(_, GRAFT_AUTOCAST_KEY, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, GRAFT_AUTOCAST_KEY, m) {
  AT_FORALL_LOWER_PRECISION_FP(GRAFT_LOWER_PRECISION)
  AT_FORALL_FP32(GRAFT_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(GRAFT_FP32_SET_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(GRAFT_PROMOTE)
  m.impl("binary_cross_entropy", &refuse_binary_cross_entropy);
}

}  // namespace graft::binding
