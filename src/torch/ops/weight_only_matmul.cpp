// src/torch/ops/weight_only_matmul.cpp: matrix products with weights of 8 and 4 bits.
#include <ATen/ops/empty.h>

#include "kernels/weight_only/packed_int4.h"
#include "kernels/weight_only/product.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

bool is_dense_float(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
}

}  // namespace

at::Tensor GRAFT_OPERATOR(_weight_int8pack_mm)(const at::Tensor& self, const at::Tensor& mat2,
                                               const at::Tensor& scales) {
  TORCH_CHECK(is_dense_float(self) && self.dim() == 2,
              "_weight_int8pack_mm: expected self to be a floating matrix, got ", self.toString(),
              self.sizes());
  TORCH_CHECK(mat2.scalar_type() == at::kChar && mat2.dim() == 2 && mat2.size(1) == self.size(1),
              "_weight_int8pack_mm: expected mat2 to be an int8 matrix of ", self.size(1),
              " columns, got ", mat2.toString(), mat2.sizes());
  TORCH_CHECK(is_dense_float(scales) && scales.dim() == 1 && scales.size(0) == mat2.size(0),
              "_weight_int8pack_mm: expected scales to be a floating vector of ", mat2.size(0),
              " elements, got ", scales.toString(), scales.sizes());
  const at::Tensor out = at::empty({self.size(0), mat2.size(0)}, self.options());
  if (self.size(1) == 0) return out.zero_();
  TensorView by_row = view_of(scales);
  by_row.rank = 2, by_row.sizes[1] = by_row.sizes[0], by_row.strides[1] = by_row.strides[0];
  by_row.sizes[0] = 1, by_row.strides[0] = by_row.sizes[1];
  int8_weight_matmul(stream_of(self), view_of(out), view_of(self), view_of(mat2),
                     {by_row, nullptr, self.size(1)});
  return out;
}

// The sizes are CUDA's, the layout is packed_int4.h's, whatever innerKTiles.
at::Tensor GRAFT_OPERATOR(_convert_weight_to_int4pack)(const at::Tensor& self,
                                                       int64_t innerKTiles) {
  TORCH_CHECK(self.dim() == 2 && self.scalar_type() == at::kByte,
              "_convert_weight_to_int4pack: expected a uint8 matrix [n, k / 2], got ",
              self.toString(), self.sizes());
  TORCH_CHECK(innerKTiles == 2 || innerKTiles == 4 || innerKTiles == 8,
              "_convert_weight_to_int4pack: expected innerKTiles to be 2, 4 or 8, got ",
              innerKTiles);
  const int64_t n = self.size(0), k = 2 * self.size(1);
  TORCH_CHECK(n % 8 == 0 && k % (16 * innerKTiles) == 0,
              "_convert_weight_to_int4pack: expected n to be a multiple of 8 and k one of ",
              16 * innerKTiles, ", got ", n, " and ", k);
  const at::Tensor out = at::empty({n / 8, k / (16 * innerKTiles), 32, innerKTiles / 2},
                                   self.options().dtype(at::kInt));
  pack_int4(stream_of(self), view_of(out), view_of(self));
  return out;
}

at::Tensor GRAFT_OPERATOR(_weight_int4pack_mm)(const at::Tensor& self, const at::Tensor& mat2,
                                               int64_t qGroupSize,
                                               const at::Tensor& qScaleAndZeros) {
  TORCH_CHECK(is_dense_float(self) && self.dim() == 2,
              "_weight_int4pack_mm: expected self to be a floating matrix, got ", self.toString(),
              self.sizes());
  TORCH_CHECK(
      mat2.scalar_type() == at::kInt && mat2.dim() == 4 && mat2.is_contiguous() &&
          mat2.size(2) == 32,
      "_weight_int4pack_mm: expected mat2 as _convert_weight_to_int4pack makes it, int32 of "
      "four dimensions, got ",
      mat2.toString(), mat2.sizes());
  const int64_t n = mat2.size(0) * 8, k = mat2.size(1) * mat2.size(3) * 32;
  TORCH_CHECK(self.size(1) == k, "_weight_int4pack_mm: expected self to have ", k,
              " columns as mat2, got ", self.sizes());
  TORCH_CHECK(qGroupSize == 32 || qGroupSize == 64 || qGroupSize == 128 || qGroupSize == 256,
              "_weight_int4pack_mm: expected qGroupSize to be 32, 64, 128 or 256, got ",
              qGroupSize);
  TORCH_CHECK(k % qGroupSize == 0, "_weight_int4pack_mm: expected groups that divide ", k,
              " columns, got groups of ", qGroupSize);
  TORCH_CHECK(is_dense_float(qScaleAndZeros) && qScaleAndZeros.dim() == 3 &&
                  qScaleAndZeros.size(0) == k / qGroupSize && qScaleAndZeros.size(1) == n &&
                  qScaleAndZeros.size(2) == 2,
              "_weight_int4pack_mm: expected qScaleAndZeros to be floating of [", k / qGroupSize,
              ", ", n, ", 2], got ", qScaleAndZeros.toString(), qScaleAndZeros.sizes());
  const at::Tensor out = at::empty({self.size(0), n}, self.options());
  if (k == 0) return out.zero_();
  TensorView scales = view_of(qScaleAndZeros);
  scales.rank = 2;
  TensorView zeros = scales;
  zeros.address += static_cast<uint64_t>(qScaleAndZeros.stride(2) * qScaleAndZeros.element_size());
  int4_weight_matmul(stream_of(self), view_of(out), view_of(self), view_of(mat2),
                     {scales, &zeros, qGroupSize});
  return out;
}

}  // namespace graft::binding
