// src/kernels/reduce/two_pass_reduction.cpp: a reduction in one launch, or in two with partial
// results between them.
#include "kernels/reduce/two_pass_reduction.h"

#include <optional>

#include "kernels/launch/kernel_slots.h"
#include "kernels/move/staging.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

constexpr int kPartials = 4;

graft_kernel find_kernel(OpenDevice& device, const TwoStage& stages, FoldStage stage, FoldForm form,
                         bool unit) {
  static thread_local constinit KernelSlots<1, 6> slots;
  uint64_t number = static_cast<uint64_t>(stages.family);
  for (const int part :
       {stages.kind, static_cast<int>(stages.output), static_cast<int>(stages.input), stages.option,
        static_cast<int>(stage), static_cast<int>(form), static_cast<int>(unit)}) {
    number = number << 8 | static_cast<uint8_t>(part);
  }
  return slots.get(device, {number},
                   [&] { return fold_kernel(device, stages.program(stage), form, unit); });
}

void launch_stage(Stream& stream, const TwoStage& stages, FoldStage stage, const FoldCall& call) {
  launch_fold(stream, find_kernel(stream.device(), stages, stage, call.form, call.unit()), call);
}

// The number of elements when they lie side by side in order and all go into one; else 0.
int64_t line_length(const TensorView& output, const TensorView& input) {
  int64_t count = 1;
  for (int d = input.rank - 1; d >= 0; --d) {
    if (input.sizes[d] == 1) continue;
    if (input.strides[d] != count || output.strides[d] != 0) return 0;
    count *= input.sizes[d];
  }
  return count;
}

}  // namespace

void run_two_stage(Stream& stream, ReduceGeometry& geometry, const TwoStage& stages) {
  const Axes& kept = geometry.kept();
  const Axes& reduced = geometry.reduced();
  const FoldForm form = choose_form(kept, reduced);
  const FoldChunks chunks = choose_chunks(form, kept, reduced);
  FoldCall call{form, kept.at, reduced.at, chunks};
  call.inputs = {&geometry.input(), 1};
  if (chunks.count() == 1) {
    call.outputs = geometry.outputs(), call.scalars = stages.whole_scalars;
    launch_stage(stream, stages, FoldStage::kWhole, call);
    return geometry.finish();
  }

  const PartialLoops loops = partial_loops(form, kept, chunks);
  const int64_t count = kept.count() * chunks.count();
  std::optional<ScratchTensor> memory[kPartials];
  TensorView views[kPartials];
  for (size_t i = 0; i < stages.partials.size(); ++i) {
    views[i] =
        memory[i].emplace(stream, stages.partials[i], std::initializer_list<int64_t>{count}).view();
  }
  const std::span<const TensorView> partials(views, stages.partials.size());
  call.kept = loops.written.at, call.chunk_stride = loops.chunk_stride;
  call.outputs = partials, call.scalars = stages.partial_scalars;
  launch_stage(stream, stages, FoldStage::kPartial, call);
  FoldCall last{form, loops.kept.at, loops.reduced.at, loops.chunks};
  last.inputs = partials, last.outputs = geometry.outputs(), last.scalars = stages.last_scalars;
  launch_stage(stream, stages, FoldStage::kFinal, last);
  geometry.finish();
}

bool run_short_line(Stream& stream, const TensorView& output, const TensorView& input,
                    const TwoStage& stages) {
  const int64_t count = line_length(output, input);
  if (count == 0 || count > kSmallestChunk) return false;
  const Axis kept[2];
  Axis reduced[2];
  reduced[1].size = count;
  reduced[1].strides[0] = 1;
  FoldChunks chunks;
  chunks.size[1] = count;
  TensorView result;
  result.address = output.address;
  result.dtype = output.dtype;
  FoldCall call{FoldForm::kLines, kept, reduced, chunks};
  call.inputs = {&input, 1}, call.outputs = {&result, 1}, call.scalars = stages.whole_scalars;
  launch_stage(stream, stages, FoldStage::kWhole, call);
  return true;
}

}  // namespace graft
