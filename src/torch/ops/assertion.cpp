// src/torch/ops/assertion.cpp: assertions on the device.
#include "kernels/launch/assertion.h"

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

void assert_nonzero(const at::Tensor& self, std::string_view message) {
  TORCH_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(self.numel() < 2, "Boolean value of Tensor with more than one value is ambiguous");
  const at::Tensor truth = self.ne(0);
  require_within(stream_of(self), view_of(truth), view_of(truth), 1, 1, message);
}

}  // namespace

void GRAFT_OPERATOR(_assert_async)(const at::Tensor& self) {
  assert_nonzero(self, "Expected Tensor with single nonzero value, but got zero");
}

void GRAFT_OPERATOR(_assert_async_msg)(const at::Tensor& self, c10::string_view message) {
  assert_nonzero(self, message.empty() ? "Assertion is failed" : std::string_view(message));
}

}  // namespace graft::binding
