// src/kernels/matmul/complex_matmul.cpp: complex products by four real ones or by a generated
// kernel.
#include "kernels/matmul/complex_matmul.h"

#include "codegen/ops/op_table.h"
#include "kernels/launch/library.h"
#include "kernels/launch/workspace.h"
#include "kernels/matmul/complex_matmul_kernel.h"
#include "kernels/matmul/matmul.h"
#include "kernels/move/copy.h"
#include "kernels/move/staging.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/tensor/complex_parts.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

// Multiplications from which four products in the library take less time than the kernel.
constexpr int64_t kLarge = int64_t{1} << 18;

// The parts of a factor, each dense.
struct DenseParts {
  StagedInput re, im;
  DenseParts(Stream& stream, const TensorView& view)
      : re(stream, complex_part(view, 0), true), im(stream, complex_part(view, 1), true) {}
};

void scale_and_add(Stream& stream, const TensorView& output, const TensorView& product,
                   const ComplexEpilogue& epilogue) {
  if (epilogue.alpha != 1.0) {
    const Operand factors[] = {product, Scalar::of(epilogue.alpha)};
    pointwise(stream, *find_op("mul"), product.dtype, {&product, 1}, factors);
  }
  if (epilogue.addend == nullptr) return copy(stream, output, product);
  const Operand terms[] = {product, *epilogue.addend};
  if (epilogue.beta == 1.0) {
    return pointwise(stream, *find_op("plain_add"), product.dtype, {&output, 1}, terms);
  }
  const Scalar beta = Scalar::of(epilogue.beta).to(product.dtype);
  pointwise(stream, *find_op("add"), product.dtype, {&output, 1}, terms, {&beta, 1});
}

void multiply_parts(Stream& stream, const TensorView& output, const ComplexFactor& a,
                    const ComplexFactor& b, const ComplexEpilogue& epilogue) {
  const DenseParts left(stream, a.view), right(stream, b.view);
  const double sign_a = a.conjugate ? -1.0 : 1.0, sign_b = b.conjugate ? -1.0 : 1.0;
  const ScratchTensor memory(stream, output, output.dtype);
  const TensorView& product = memory.view();
  StagedOutput re(stream, complex_part(product, 0), true);
  StagedOutput im(stream, complex_part(product, 1), true);
  const TensorView &real = re.view(), &imaginary = im.view();
  matmul(stream, real, left.re.view(), right.re.view());
  matmul(stream, real, left.im.view(), right.im.view(), {-sign_a * sign_b, 1.0, &real});
  matmul(stream, imaginary, left.re.view(), right.im.view(), {.alpha = sign_b});
  matmul(stream, imaginary, left.im.view(), right.re.view(), {sign_a, 1.0, &imaginary});
  re.finish();
  im.finish();
  scale_and_add(stream, output, product, epilogue);
}

}  // namespace

void complex_matmul(Stream& stream, const TensorView& output, const ComplexFactor& a,
                    const ComplexFactor& b, const ComplexEpilogue& given) {
  check_matmul(output, a.view, b.view);
  if (output.count() == 0) return;
  ComplexEpilogue epilogue = given;
  if (epilogue.beta == 0.0) epilogue.addend = nullptr;
  const int64_t multiplications = output.count() * a.view.sizes[a.view.rank - 1];
  const bool by_parts =
      output.dtype == GRAFT_COMPLEX64 && multiplications >= kLarge && has_blas(stream.device());
  if (by_parts) {
    multiply_parts(stream, output, a, b, epilogue);
  } else {
    generated_complex_matmul(stream, output, a, b, epilogue);
  }
}

}  // namespace graft
