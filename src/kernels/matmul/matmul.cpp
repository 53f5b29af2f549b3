// src/kernels/matmul/matmul.cpp: matrix products, through the driver's library or a generated
// kernel.
#include "kernels/matmul/matmul.h"

#include <optional>

#include "kernels/launch/lanes.h"
#include "kernels/launch/library.h"
#include "kernels/matmul/kernel.h"
#include "kernels/move/copy.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

bool plain_result(const TensorView& view) {
  for (int d = 0; d < view.rank; ++d) {
    if (view.sizes[d] > 1 && view.strides[d] == 0) return false;
  }
  return plain_matrix(view);
}

bool is_row_vector(const TensorView& addend) {
  for (int d = 0; d + 1 < addend.rank; ++d) {
    if (addend.sizes[d] > 1 && addend.strides[d] != 0) return false;
  }
  const int last = addend.rank - 1;
  return addend.strides[last] == 1 || addend.sizes[last] == 1;
}

// Factors of an int32 product that are smaller than it.
bool small_integers(const TensorView& output, const TensorView& a, const TensorView& b) {
  const auto small = [](graft_dtype dtype) { return dtype == GRAFT_INT8 || dtype == GRAFT_INT16; };
  return output.dtype == GRAFT_INT32 && (small(a.dtype) || a.dtype == GRAFT_UINT8) &&
         small(b.dtype);
}

// What libraries are asked for: floating products, and bytes that are summed in int32.
bool for_library(const TensorView& output, const TensorView& a, const TensorView& b,
                 const MatmulEpilogue& epilogue) {
  if (a.sizes[a.rank - 1] == 0 || output.rank > GRAFT_MAX_RANK) return false;
  if (is_floating(output.dtype)) return output.dtype != GRAFT_FLOAT64;
  const bool plain = epilogue.alpha == 1.0 && (epilogue.beta == 0.0 || epilogue.beta == 1.0);
  return plain && small_integers(output, a, b) && a.dtype != GRAFT_INT16 && b.dtype == GRAFT_INT8;
}

bool lie_apart(const TensorView& a, const TensorView& b) {
  return a.address + extent_bytes(a) <= b.address || b.address + extent_bytes(b) <= a.address;
}

// Whether making a library's call costs more than the product: up to 16 x 16 x 16, of rows that lie
// as the generated kernel reads them, on a processor.
bool is_tiny(const OpenDevice& device, const TensorView& output, const TensorView& a,
             const TensorView& b) {
  constexpr int64_t kTiny = 16;
  const auto tiny = [](const TensorView& matrix) {
    return matrix.sizes[0] <= kTiny && matrix.sizes[1] <= kTiny;
  };
  return output.rank == 2 && output.dtype == GRAFT_FLOAT32 && tiny(a) && tiny(b) &&
         (b.strides[1] == 1 || b.sizes[1] == 1) && !is_gpu_like(device);
}

// False when the device lacks the kernel.
bool kernel_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                   const TensorView& b, const MatmulEpilogue& epilogue) {
  try {
    generated_matmul(stream, output, a, b, epilogue);
    return true;
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    return false;
  }
}

// False when the driver has no library that takes the case.
bool library_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                    const TensorView& b, const MatmulEpilogue& epilogue) {
  const bool adds = epilogue.beta != 0.0;
  const bool bias = adds && epilogue.beta == 1.0 && is_row_vector(*epilogue.addend) &&
                    lie_apart(*epilogue.addend, output);
  graft_matmul call = describe_matmul(output, a, b);
  if (epilogue.alpha != 1.0) {
    append_epilogue(&call, GRAFT_EPILOGUE_SCALE, output.dtype, epilogue.alpha);
  }
  if (adds) {
    append_epilogue(&call, bias ? GRAFT_EPILOGUE_BIAS : GRAFT_EPILOGUE_ADD, epilogue.addend->dtype,
                    epilogue.beta);
  }
  if (epilogue.relu) append_epilogue(&call, GRAFT_EPILOGUE_RELU, output.dtype, 0.0);
  const auto plan = library_plan(stream.device(), call);
  if (plan == nullptr) return false;

  std::optional<Workspace> laid_out;
  graft_execution execution{};
  execution.tensors[0] = a.address;
  execution.tensors[1] = b.address;
  execution.tensors[2] = output.address;
  if (adds) {
    TensorView operand = *epilogue.addend;
    if (!bias) {
      // The library reads the operand at the result's layout, and must not find the result there.
      TensorView target = output;
      target.dtype = operand.dtype;
      laid_out.emplace(stream, extent_bytes(target));
      target.address = laid_out->address();
      copy(stream, target, operand);
      operand = target;
    }
    execution.operands[epilogue.alpha != 1.0 ? 1 : 0] = operand.address;
  }
  execute_plan(stream, plan, execution);
  return true;
}

}  // namespace

bool plain_matrix(const TensorView& view) {
  const int row = view.rank - 2, column = view.rank - 1;
  const int64_t rows = view.sizes[row], columns = view.sizes[column];
  auto spans = [](int64_t lines, int64_t line_stride, int64_t length, int64_t stride) {
    return (stride == 1 || length == 1) && (line_stride >= length || lines == 1);
  };
  return spans(rows, view.strides[row], columns, view.strides[column]) ||
         spans(columns, view.strides[column], rows, view.strides[row]);
}

graft_matmul describe_matmul(const TensorView& output, const TensorView& a, const TensorView& b) {
  graft_matmul call{};
  call.struct_size = sizeof(call);
  call.math_mode = GRAFT_MATH_STRICT;
  call.a = describe(a);
  call.b = describe(b);
  call.c = describe(output);
  return call;
}

void check_matmul(const TensorView& output, const TensorView& a, const TensorView& b) {
  const int rank = output.rank;
  bool fits = (rank == 2 || rank == 3) && a.rank == rank && b.rank == rank &&
              a.sizes[rank - 2] == output.sizes[rank - 2] &&
              b.sizes[rank - 1] == output.sizes[rank - 1] && a.sizes[rank - 1] == b.sizes[rank - 2];
  if (fits && rank == 3) fits = a.sizes[0] == output.sizes[0] && b.sizes[0] == output.sizes[0];
  if (!fits) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "matmul: got shapes that do not multiply; give [m, k], [k, n] and [m, n], or three "
                "of rank 3 with one batch size");
  }
  const bool same = a.dtype == output.dtype && b.dtype == output.dtype;
  if (!same && !small_integers(output, a, b)) {
    throw Error(GRAFT_INVALID_ARGUMENT, std::string("matmul: operands must have one dtype, got ") +
                                            name_of(a.dtype) + ", " + name_of(b.dtype) + " and " +
                                            name_of(output.dtype) + "; convert them first");
  }
}

void matmul(Stream& stream, const TensorView& output, const TensorView& a, const TensorView& b,
            const MatmulEpilogue& given) {
  check_matmul(output, a, b);
  if (output.count() == 0) return;
  MatmulEpilogue epilogue = given;
  if (epilogue.addend == nullptr) epilogue.beta = 0.0;
  if (for_library(output, a, b, epilogue)) {
    const bool tiny = is_tiny(stream.device(), output, a, b);
    if (tiny && kernel_matmul(stream, output, a, b, epilogue)) return;
    StagedInput left(stream, a, !plain_matrix(a));
    StagedInput right(stream, b, !plain_matrix(b));
    StagedOutput result(stream, output, !plain_result(output));
    if (library_matmul(stream, result.view(), left.view(), right.view(), epilogue)) {
      result.finish();
      return;
    }
  }
  const auto call = [&](VendorCall& to) {
    to.write(output).read(a).read(b).read(epilogue.addend).integers({epilogue.relu});
    to.numbers({epilogue.alpha, epilogue.beta});
  };
  if (offer(stream, Operation::matmul, call)) return;
  generated_matmul(stream, output, a, b, epilogue);
}

}  // namespace graft
