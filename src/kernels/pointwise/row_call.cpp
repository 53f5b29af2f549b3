// src/kernels/pointwise/row_call.cpp: a row of the op table as a call of the vendor's own kernel.
#include "kernels/pointwise/row_call.h"

#include "kernels/pointwise/kernel.h"
#include "kernels/tensor/axes.h"

namespace graft {

void describe_row(VendorCall& call, graft_dtype compute, std::span<const TensorView> outputs,
                  std::span<const Operand> inputs, std::span<const Scalar> scalars) {
  const TensorView* views[kMaxStrides];
  size_t count = 0;
  if (outputs.size() + inputs.size() > kMaxStrides) return call.refuse();
  for (const TensorView& view : outputs) views[count++] = &view;
  for (const Operand& input : inputs) {
    if (!input.is_scalar) views[count++] = &input.view;
  }
  const Axes axes = Axes::joined({views, count});
  int at = 0;
  for (const TensorView& view : outputs) call.write(axes.view(at++, view.address, view.dtype));
  for (const Operand& input : inputs) {
    if (input.is_scalar) {
      call.read(nullptr);
    } else {
      call.read(axes.view(at++, input.view.address, input.view.dtype));
    }
  }
  const graft_dtype number = scalar_dtype(compute);
  call.integers({compute});
  for (const Operand& input : inputs) {
    if (input.is_scalar) call.scalar(input.scalar.to(number));
  }
  for (const Scalar& scalar : scalars) call.scalar(scalar.to(number));
}

}  // namespace graft
