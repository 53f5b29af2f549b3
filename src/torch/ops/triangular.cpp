// src/torch/ops/triangular.cpp: the upper or lower triangle of matrices.
#include "kernels/linalg/triangular.h"

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"

namespace graft::binding {

void GRAFT_STRUCTURED(tril_out)(const at::Tensor& self, int64_t diagonal, const at::Tensor& out) {
  if (out.numel() == 0) return;
  triangular(stream_of(self), view_of(out), view_of(self), diagonal, false);
}

void GRAFT_STRUCTURED(triu_out)(const at::Tensor& self, int64_t diagonal, const at::Tensor& out) {
  if (out.numel() == 0) return;
  triangular(stream_of(self), view_of(out), view_of(self), diagonal, true);
}

}  // namespace graft::binding
