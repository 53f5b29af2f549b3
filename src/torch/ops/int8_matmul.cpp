// src/torch/ops/int8_matmul.cpp: matrix products with factors of 8 bits.
#include <ATen/ops/empty.h>

#include "kernels/matmul/matmul.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"
#include "torch/version/resize.h"

namespace graft::binding {

at::Tensor& GRAFT_OPERATOR(_int_mm_out)(const at::Tensor& self, const at::Tensor& mat2,
                                        at::Tensor& out) {
  TORCH_CHECK(self.dim() == 2, "_int_mm: Expected self to be of dimension 2 but got ", self.dim());
  TORCH_CHECK(mat2.dim() == 2, "_int_mm: Expected mat2 to be of dimension 2 but got ", mat2.dim());
  TORCH_CHECK(self.size(1) == mat2.size(0),
              "_int_mm: self.size(1) needs to match mat2.size(0) but got ", self.size(1), " and ",
              mat2.size(0));
  TORCH_CHECK(self.scalar_type() == at::kChar || self.scalar_type() == at::kByte,
              "_int_mm: Expected self dtype to be of type int8 or uint8 but got ", self.dtype());
  TORCH_CHECK(mat2.scalar_type() == at::kChar,
              "_int_mm: Expected mat2 dtype to be of type int8 but got ", mat2.dtype());
  TORCH_CHECK(out.scalar_type() == at::kInt,
              "_int_mm: Expected result dtype to be of type kInt but got ", out.dtype());
  native::resize_output(out, {self.size(0), mat2.size(1)});
  if (out.numel() > 0) matmul(stream_of(self), view_of(out), view_of(self), view_of(mat2));
  return out;
}

at::Tensor GRAFT_OPERATOR(_int_mm)(const at::Tensor& self, const at::Tensor& mat2) {
  at::Tensor out = at::empty({0}, self.options().dtype(at::kInt));
  return GRAFT_OPERATOR(_int_mm_out)(self, mat2, out);
}

}  // namespace graft::binding
