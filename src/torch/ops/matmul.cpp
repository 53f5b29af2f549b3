// src/torch/ops/matmul.cpp: matrix products.
#include "kernels/matmul/matmul.h"

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/_efficientzerotensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sum.h>

#include "kernels/matmul/complex_matmul.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"
#include "torch/version/factories.h"

namespace graft::binding {
namespace {

void complex_product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                     const at::Tensor& addend, const at::Scalar& beta, const at::Scalar& alpha) {
  const at::Tensor target = out.is_conj() ? at::empty(out.sizes(), out.options()) : out;
  ComplexEpilogue epilogue;
  epilogue.alpha = static_cast<std::complex<double>>(alpha.toComplexDouble());
  epilogue.beta = static_cast<std::complex<double>>(beta.toComplexDouble());
  at::Tensor added;
  TensorView added_view;
  if (addend.defined() && epilogue.beta != 0.0) {
    added = addend.resolve_conj();
    added_view = view_of(*at::expand_size(added, out.sizes(), "addmm"));
    epilogue.addend = &added_view;
  }
  complex_matmul(stream_of(out), view_of(target), {view_of(a), a.is_conj()},
                 {view_of(b), b.is_conj()}, epilogue);
  if (out.is_conj()) out.copy_(target);
}

// out = beta * addend. narrow: beta takes the addend's dtype first.
void scale(const at::Tensor& out, const at::Tensor& addend, const at::Scalar& beta, bool narrow) {
  if (out.numel() == 0) return;
  at::Tensor result = out;
  if (beta.equal(0)) {
    result.zero_();
    return;
  }
  const at::Tensor factor = narrow ? at::scalar_tensor(beta, addend.options().device(at::kCPU))
                                   : native::wrapped_scalar_tensor(beta);
  at::mul_out(result, *at::expand_size(addend, out.sizes(), "addmm"), factor);
}

// Where the CPU's library is not asked for a product.
void scale_alone(const at::Tensor& out, const at::Tensor& addend, const at::Scalar& beta) {
  scale(out, addend, beta, /*narrow=*/true);
}

void product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
             const at::Tensor& addend = {}, const at::Scalar& beta = 0, const at::Scalar& alpha = 1,
             bool relu = false) {
  if (a.numel() != 0) require_separate(out);
  c10::MaybeOwned<at::Tensor> addends;
  if (addend.defined()) {
    addends = at::expand_size(addend, out.sizes(), "addmm");
    at::assert_no_partial_overlap(out, *addends);
  }
  if (out.numel() == 0) return;
  if (addend.defined() && a.numel() == 0) {
    scale(out, *addends, beta, /*narrow=*/false);
    if (relu) out.relu_();
    return;
  }
  require_fit(alpha, at::toOpMathType(out.scalar_type()));
  require_fit(beta, at::toOpMathType(out.scalar_type()));
  if (out.is_complex()) return complex_product(out, a, b, addend, beta, alpha);
  MatmulEpilogue epilogue;
  epilogue.alpha = real_factor(alpha);
  epilogue.relu = relu;
  TensorView added;
  if (addend.defined() && beta.toComplexDouble() != 0.0) {
    epilogue.beta = real_factor(beta);
    added = view_of(*addends);
    epilogue.addend = &added;
  }
  matmul(stream_of(out), view_of(out), view_of(a), view_of(b), epilogue);
}

// As on the CPU, whose libraries do not read the factors then: NaN in them do not spread. Its own
// kernels for half types do.
bool leaves_out_product(const at::Tensor& out, const at::Scalar& alpha) {
  return alpha.equal(0) && !at::isReducedFloatingType(out.scalar_type());
}

// Upstream's meta functions leave dtypes to the kernels.
void check_factors(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dtype() == b.dtype(),
              "expected m1 and m2 to have the same dtype, but got: ", a.dtype(), " != ", b.dtype());
}

void check_vectors(const char* name, const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ",
              b.dim(), "D tensors");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), name,
              " : expected both vectors to have same dtype, but found ", a.scalar_type(), " and ",
              b.scalar_type());
  TORCH_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(),
              "] and src [", b.numel(), "] to have the same number of elements, but got ",
              a.numel(), " and ", b.numel(), " elements respectively");
}

}  // namespace

void GRAFT_STRUCTURED(mm_out)(const at::Tensor& self, const at::Tensor& mat2,
                              const at::Tensor& out) {
  check_factors(self, mat2);
  product(out, self, mat2);
}

void GRAFT_STRUCTURED(addmm_out)(const at::Tensor& self, const at::Tensor& mat1,
                                 const at::Tensor& mat2, const at::Scalar& beta,
                                 const at::Scalar& alpha, const at::Tensor& out) {
  check_factors(mat1, mat2);
  if (leaves_out_product(out, alpha)) return scale_alone(out, self, beta);
  product(out, mat1, mat2, self, beta, alpha);
}

void GRAFT_STRUCTURED(_addmm_activation_out)(const at::Tensor& self, const at::Tensor& mat1,
                                             const at::Tensor& mat2, const at::Scalar& beta,
                                             const at::Scalar& alpha, bool use_gelu,
                                             const at::Tensor& out) {
  require(!out.is_complex());
  check_factors(mat1, mat2);
  if (leaves_out_product(out, alpha)) {
    scale_alone(out, self, beta);
    out.copy_(use_gelu ? at::gelu(out) : at::relu(out));
    return;
  }
  product(out, mat1, mat2, self, beta, alpha, !use_gelu);
  if (use_gelu) out.copy_(at::gelu(out));
}

void GRAFT_STRUCTURED(bmm_out)(const at::Tensor& self, const at::Tensor& mat2,
                               const at::Tensor& out) {
  check_scalar_type(mat2, self.scalar_type());
  product(out, self, mat2);
}

void GRAFT_STRUCTURED(baddbmm_out)(const at::Tensor& self, const at::Tensor& batch1,
                                   const at::Tensor& batch2, const at::Scalar& beta,
                                   const at::Scalar& alpha, const at::Tensor& out) {
  constexpr int64_t kOwnKernel = 400;  // below, the CPU multiplies without a library
  const bool own = batch1.size(1) * batch1.size(2) * batch2.size(2) < kOwnKernel;
  if (!own && leaves_out_product(out, alpha)) return scale_alone(out, self, beta);
  product(out, batch1, batch2, self, beta, alpha);
}

void GRAFT_STRUCTURED(addmv_out)(const at::Tensor& self, const at::Tensor& mat,
                                 const at::Tensor& vec, const at::Scalar& beta,
                                 const at::Scalar& alpha, const at::Tensor& out) {
  const at::Tensor addend = *at::expand_size(self, out.sizes(), "addmv");
  if (mat.numel() == 0) return scale_alone(out, addend, beta);
  require_fit(beta, out.scalar_type());
  require_fit(alpha, out.scalar_type());
  if (!out.is_complex() && leaves_out_product(out, alpha)) return scale_alone(out, addend, beta);
  product(out.unsqueeze(1), mat, vec.unsqueeze(1), addend.unsqueeze(1), beta, alpha);
}

at::Tensor GRAFT_OPERATOR(dot)(const at::Tensor& self, const at::Tensor& tensor) {
  check_vectors("dot", self, tensor);
  if (self._is_zerotensor() || tensor._is_zerotensor()) {
    return at::_efficientzerotensor({}, self.options());
  }
  if (self.is_complex()) return at::sum(at::mul(self, tensor));
  at::Tensor out = at::empty({}, self.options());
  product(out.view({1, 1}), self.unsqueeze(0), tensor.unsqueeze(1));
  return out;
}

at::Tensor GRAFT_OPERATOR(vdot)(const at::Tensor& self, const at::Tensor& other) {
  check_vectors("vdot", self, other);
  return GRAFT_OPERATOR(dot)(self.conj(), other);
}

}  // namespace graft::binding
