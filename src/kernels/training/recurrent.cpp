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

// Offers the cell, or launches its kernel. state: a tensor [n, h].
void run(Stream& stream, Operation id, RecurrentKernel kernel, const TensorView& state,
         List written, List read) {
  const auto call = [&](VendorCall& to) {
    for (const TensorView* view : written) to.write(view);
    for (const TensorView* view : read) to.read(view);
  };
  if (offer(stream, id, call)) return;
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
    PackEntry::put(add, RecurrentKernel{step, GRAFT_FLOAT32, options, options});
    if (step != RecurrentKernel::kLstmBackward) continue;
    PackEntry::put(add, RecurrentKernel{step, GRAFT_FLOAT32, true, false});
  }
});

}  // namespace

void lstm_cell(Stream& stream, const TensorView& hy, const TensorView& cy,
               const TensorView& workspace, const TensorView& input_gates,
               const TensorView& hidden_gates, const TensorView& cx, const TensorView* input_bias,
               const TensorView* hidden_bias) {
  const RecurrentKernel kernel{RecurrentKernel::kLstm, cx.dtype, input_bias != nullptr,
                               hidden_bias != nullptr};
  run(stream, Operation::lstm_cell, kernel, cx, {&hy, &cy, &workspace},
      {&input_gates, &hidden_gates, &cx, input_bias, hidden_bias});
}

void lstm_cell_backward(Stream& stream, const TensorView& grad_gates, const TensorView& grad_cx,
                        const TensorView* grad_hy, const TensorView* grad_cy, const TensorView& cx,
                        const TensorView& cy, const TensorView& workspace) {
  const RecurrentKernel kernel{RecurrentKernel::kLstmBackward, cx.dtype, grad_hy != nullptr,
                               grad_cy != nullptr};
  run(stream, Operation::lstm_cell_backward, kernel, cx, {&grad_gates, &grad_cx},
      {grad_hy, grad_cy, &cx, &cy, &workspace});
}

void gru_cell(Stream& stream, const TensorView& hy, const TensorView& workspace,
              const TensorView& input_gates, const TensorView& hidden_gates, const TensorView& hx,
              const TensorView* input_bias, const TensorView* hidden_bias) {
  const RecurrentKernel kernel{RecurrentKernel::kGru, hx.dtype, input_bias != nullptr,
                               hidden_bias != nullptr};
  run(stream, Operation::gru_cell, kernel, hx, {&hy, &workspace},
      {&input_gates, &hidden_gates, &hx, input_bias, hidden_bias});
}

void gru_cell_backward(Stream& stream, const TensorView& grad_input_gates,
                       const TensorView& grad_hidden_gates, const TensorView& grad_hx,
                       const TensorView& grad_hy, const TensorView& workspace) {
  run(stream, Operation::gru_cell_backward, {RecurrentKernel::kGruBackward, grad_hy.dtype}, grad_hy,
      {&grad_input_gates, &grad_hidden_gates, &grad_hx}, {&grad_hy, &workspace});
}

}  // namespace graft
