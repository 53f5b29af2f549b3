// src/kernels/training/recurrent.cpp: the elementwise part of LSTM and GRU cells.
#include "kernels/training/recurrent.h"

#include <initializer_list>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "kernels/training/recurrent_kernel.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using List = std::initializer_list<const TensorView*>;

// state: a tensor [n, h].
void launch(Stream& stream, RecurrentKernel kernel, const TensorView& state, List written,
            List read) {
  kernel.dtype = state.dtype;
  if (!is_floating(state.dtype)) {
    throw Error(GRAFT_UNSUPPORTED, std::string("recurrent cell: no kernel for ") +
                                       name_of(state.dtype) + "; give floating tensors");
  }
  Arguments arguments;
  for (const TensorView* view : written) arguments.write(*view);
  for (const TensorView* view : read) {
    if (view != nullptr) arguments.read(*view);
  }
  const WorkSplit split = split_work(state.sizes[0], 16 * state.sizes[1]);
  if (split.grid == 0 || state.sizes[1] == 0) return;
  arguments.index(split.lines).index(split.per_item).index(state.sizes[1]);
  launch_kernel(stream, kernel, split.grid, arguments);
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (auto step : {RecurrentKernel::kLstm, RecurrentKernel::kGru, RecurrentKernel::kLstmBackward,
                    RecurrentKernel::kGruBackward}) {
    const bool options = step != RecurrentKernel::kGruBackward;
    const RecurrentKernel kernel{step, GRAFT_FLOAT32, options, options};
    add(kernel.key(), [kernel] { return kernel.build(); });
    if (step != RecurrentKernel::kLstmBackward) continue;
    const RecurrentKernel output_alone{step, GRAFT_FLOAT32, true, false};
    add(output_alone.key(), [output_alone] { return output_alone.build(); });
  }
});

}  // namespace

void lstm_cell(Stream& stream, const TensorView& hy, const TensorView& cy,
               const TensorView& workspace, const TensorView& input_gates,
               const TensorView& hidden_gates, const TensorView& cx, const TensorView* input_bias,
               const TensorView* hidden_bias) {
  if (offer(stream, Operation::lstm_cell, [&](VendorCall& to) {
        to.write(hy)
            .write(cy)
            .write(workspace)
            .read(input_gates)
            .read(hidden_gates)
            .read(cx)
            .read(input_bias)
            .read(hidden_bias);
      }))
    return;
  const RecurrentKernel kernel{RecurrentKernel::kLstm, cx.dtype, input_bias != nullptr,
                               hidden_bias != nullptr};
  launch(stream, kernel, cx, {&hy, &cy, &workspace},
         {&input_gates, &hidden_gates, &cx, input_bias, hidden_bias});
}

void lstm_cell_backward(Stream& stream, const TensorView& grad_gates, const TensorView& grad_cx,
                        const TensorView* grad_hy, const TensorView* grad_cy, const TensorView& cx,
                        const TensorView& cy, const TensorView& workspace) {
  if (offer(stream, Operation::lstm_cell_backward, [&](VendorCall& to) {
        to.write(grad_gates)
            .write(grad_cx)
            .read(grad_hy)
            .read(grad_cy)
            .read(cx)
            .read(cy)
            .read(workspace);
      }))
    return;
  const RecurrentKernel kernel{RecurrentKernel::kLstmBackward, cx.dtype, grad_hy != nullptr,
                               grad_cy != nullptr};
  launch(stream, kernel, cx, {&grad_gates, &grad_cx}, {grad_hy, grad_cy, &cx, &cy, &workspace});
}

void gru_cell(Stream& stream, const TensorView& hy, const TensorView& workspace,
              const TensorView& input_gates, const TensorView& hidden_gates, const TensorView& hx,
              const TensorView* input_bias, const TensorView* hidden_bias) {
  if (offer(stream, Operation::gru_cell, [&](VendorCall& to) {
        to.write(hy)
            .write(workspace)
            .read(input_gates)
            .read(hidden_gates)
            .read(hx)
            .read(input_bias)
            .read(hidden_bias);
      }))
    return;
  const RecurrentKernel kernel{RecurrentKernel::kGru, hx.dtype, input_bias != nullptr,
                               hidden_bias != nullptr};
  launch(stream, kernel, hx, {&hy, &workspace},
         {&input_gates, &hidden_gates, &hx, input_bias, hidden_bias});
}

void gru_cell_backward(Stream& stream, const TensorView& grad_input_gates,
                       const TensorView& grad_hidden_gates, const TensorView& grad_hx,
                       const TensorView& grad_hy, const TensorView& workspace) {
  if (offer(stream, Operation::gru_cell_backward, [&](VendorCall& to) {
        to.write(grad_input_gates)
            .write(grad_hidden_gates)
            .write(grad_hx)
            .read(grad_hy)
            .read(workspace);
      }))
    return;
  launch(stream, {RecurrentKernel::kGruBackward, grad_hy.dtype, false, false}, grad_hy,
         {&grad_input_gates, &grad_hidden_gates, &grad_hx}, {&grad_hy, &workspace});
}

}  // namespace graft
