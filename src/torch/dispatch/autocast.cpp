// src/torch/dispatch/autocast.cpp: torch.autocast of the device: torch's own lists; others run as
// they are.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "torch/device/type.h"
#include "torch/ve/casting.h"

namespace graft::binding {
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;
using at::autocast::CastPolicy;

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

// torch's lists give an operator's name, and its overload where it has one.
#define GRAFT_AUTOCAST(name, op, policy) \
  m.impl(name, &ve::Autocast<CastPolicy::policy, decltype(op), &op, decltype(op)>::call);
#define GRAFT_PLAIN(op, policy) GRAFT_AUTOCAST("aten::" #op, ATEN_FN(op), policy)
#define GRAFT_OVERLOAD(op, overload, policy) \
  GRAFT_AUTOCAST("aten::" #op "." #overload, ATEN_FN2(op, overload), policy)
#define GRAFT_PICK(first, second, picked, ...) picked
#define GRAFT_BY_FORM(...) GRAFT_PICK(__VA_ARGS__, GRAFT_OVERLOAD, GRAFT_PLAIN, )
#define GRAFT_LOWER_PRECISION(...) GRAFT_BY_FORM(__VA_ARGS__)(__VA_ARGS__, lower_precision_fp)
#define GRAFT_FP32(...) GRAFT_BY_FORM(__VA_ARGS__)(__VA_ARGS__, fp32)
#define GRAFT_FP32_SET_DTYPE(...) GRAFT_BY_FORM(__VA_ARGS__)(__VA_ARGS__, fp32_set_opt_dtype)
#define GRAFT_PROMOTE(...) GRAFT_BY_FORM(__VA_ARGS__)(__VA_ARGS__, promote)
#define GRAFT_OTHER_SIGNATURE(op, name, registered, redispatched, policy) \
  m.impl("aten::" name, &ve::Autocast<CastPolicy::policy, redispatched, &op, registered>::call);

TORCH_LIBRARY_IMPL(_, GRAFT_AUTOCAST_KEY, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, GRAFT_AUTOCAST_KEY, m) {
  AT_FORALL_LOWER_PRECISION_FP(GRAFT_LOWER_PRECISION)
  AT_FORALL_FP32(GRAFT_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(GRAFT_FP32_SET_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(GRAFT_OTHER_SIGNATURE)
  AT_FORALL_PROMOTE(GRAFT_PROMOTE)
  m.impl("binary_cross_entropy", &refuse_binary_cross_entropy);
}

}  // namespace graft::binding
