// src/torch/ops/int8_matmul.cpp: matrix products with factors of 8 bits.
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/vendor_products.h"
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

// The weights are exact in every floating dtype; their scales come after the sum.
at::Tensor GRAFT_OPERATOR(_weight_int8pack_mm)(const at::Tensor& self, const at::Tensor& mat2,
                                               const at::Tensor& scales) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()) && self.dim() == 2,
              "_weight_int8pack_mm: expected self to be a floating matrix, got ", self.toString(),
              self.sizes());
  TORCH_CHECK(mat2.scalar_type() == at::kChar && mat2.dim() == 2 && mat2.size(1) == self.size(1),
              "_weight_int8pack_mm: expected mat2 to be an int8 matrix of ", self.size(1),
              " columns, got ", mat2.toString(), mat2.sizes());
  TORCH_CHECK(scales.dim() == 1 && scales.size(0) == mat2.size(0),
              "_weight_int8pack_mm: expected scales to be a vector of ", mat2.size(0),
              " elements, got ", scales.sizes());
  if (scales.scalar_type() == self.scalar_type() && knows_int8_weight_matmul(stream_of(self))) {
    const at::Tensor out = at::empty({self.size(0), mat2.size(0)}, self.options());
    if (out.numel() > 0 && int8_weight_matmul(stream_of(self), view_of(out), view_of(self),
                                              view_of(mat2), view_of(scales))) {
      return out;
    }
  }
  return at::mm(self, mat2.to(self.scalar_type()).t()).mul_(scales);
}

}  // namespace graft::binding
