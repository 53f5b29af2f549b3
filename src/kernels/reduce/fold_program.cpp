// src/kernels/reduce/fold_program.cpp: launches folding kernels and chooses how their loops are
// cut.
#include "kernels/reduce/fold_program.h"

#include <algorithm>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/lanes.h"
#include "kernels/launch/work_split.h"
#include "kernels/reduce/fold_kernel.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

constexpr int64_t kShortLine = 32;
constexpr int64_t kLargestChunk = 32768;
constexpr int64_t kColumnRows = 1024;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

WorkMapping deal_of(const OpenDevice& device, FoldForm form) {
  if (form == FoldForm::kLines) return deal_of_lines(device);
  return is_gpu_like(device) ? WorkMapping::kLanes : WorkMapping::kSpans;
}

std::string kernel_name(const FoldProgram& program, FoldForm form, bool unit, WorkMapping deal) {
  std::string name = "fold_" + program.key;
  for (graft_dtype dtype : program.inputs) name += std::string("_") + name_of(dtype);
  for (graft_dtype dtype : program.kept_inputs) name += std::string("_") + name_of(dtype);
  name += "_to";
  for (graft_dtype dtype : program.outputs) name += std::string("_") + name_of(dtype);
  name += form == FoldForm::kLines ? "_lines" : "_columns";
  name += suffix_of(deal);
  return unit ? name + "_unit" : name;
}

}  // namespace

FoldForm choose_form(const Axes& kept, const Axes& reduced) {
  const Axis& columns = kept.at[1];
  const Axis& line = reduced.at[1];
  if (columns.size >= 4 && columns.strides[0] == 1) return FoldForm::kColumns;
  const bool short_lines = line.size < kShortLine && reduced.count() < 8 * kShortLine;
  return short_lines && columns.size >= 8 ? FoldForm::kColumns : FoldForm::kLines;
}

FoldChunks choose_chunks(FoldForm form, const Axes& kept, const Axes& reduced) {
  const int64_t steps[2] = {reduced.at[0].size, reduced.at[1].size};
  const int64_t all = reduced.count();
  int64_t target = all;
  if (form == FoldForm::kLines) {
    const int64_t share = kept.count() * all / 64 / 64 * 64;
    target = std::clamp(share, kSmallestChunk, kLargestChunk);
  } else {
    const int64_t blocks = kept.at[0].size * divide_up(kept.at[1].size, kFoldColumns);
    const int64_t enough = blocks >= 16 ? kColumnRows : std::max<int64_t>(64, all * blocks / 32);
    target = std::min(kColumnRows, enough);
    if (all <= 2 * target) target = all;
  }
  FoldChunks chunks;
  chunks.size[1] = std::clamp<int64_t>(target, 1, steps[1]);
  chunks.size[0] = std::clamp<int64_t>(target / chunks.size[1], 1, steps[0]);
  for (int i = 0; i < 2; ++i) chunks.counts[i] = divide_up(steps[i], chunks.size[i]);
  return chunks;
}

graft_kernel fold_kernel(OpenDevice& device, const FoldProgram& program, FoldForm form, bool unit) {
  const WorkMapping deal = deal_of(device, form);
  const std::string name = kernel_name(program, form, unit, deal);
  return get_kernel(device, name, [&] { return build_fold(name, program, form, unit, deal); });
}

void launch_fold(Stream& stream, const FoldProgram& program, const FoldCall& call) {
  launch_fold(stream, fold_kernel(stream.device(), program, call.form, call.unit()), call);
}

void launch_fold(Stream& stream, graft_kernel kernel, const FoldCall& call) {
  const Axis* kept = call.kept;
  const Axis* reduced = call.reduced;
  const bool lines_form = call.form == FoldForm::kLines;
  const int64_t chunk_elements = call.chunks.size[0] * call.chunks.size[1];
  const bool lanes = deal_of(stream.device(), call.form) != WorkMapping::kSpans;
  const int64_t blocks = lines_form || lanes ? kept[1].size : divide_up(kept[1].size, kFoldColumns);
  const int64_t lines = kept[0].size * blocks * call.chunks.count();
  const int64_t width = lines_form ? 1 : std::min<int64_t>(kept[1].size, kFoldColumns);
  WorkSplit split = split_work(lines, chunk_elements * width);
  if (lanes) split = {lines, 1, lines};

  Arguments arguments;
  for (const TensorView& view : call.inputs) arguments.read(view);
  for (const TensorView& view : call.kept_inputs) arguments.read(view);
  for (const TensorView& view : call.outputs) arguments.write(view);
  for (double value : call.scalars) arguments.scalar(Scalar::of(value), sizeof(value));
  arguments.index(split.lines).index(split.per_item);
  arguments.index(kept[1].size).index(kept[0].strides[0]).index(kept[1].strides[0]);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const size_t operand = std::min<size_t>(1 + i, kMaxOperands - 1);
    arguments.index(kept[0].strides[operand]).index(kept[1].strides[operand]);
  }
  arguments.index(call.chunk_stride);
  for (int i = 0; i < 2; ++i) {
    arguments.index(reduced[i].size).index(reduced[i].strides[0]);
    arguments.index(call.chunks.size[i]).index(call.chunks.counts[i]);
  }
  if (lanes && lines_form) {
    return stream.launch(kernel, static_cast<uint64_t>(lines), arguments.span(), kLanes);
  }
  stream.launch(kernel, static_cast<uint64_t>(split.grid), arguments.span());
}

void pack_fold(const PackEntry::Sink& add, const FoldProgram& program, FoldForm form, bool unit) {
  const std::string name = kernel_name(program, form, unit, WorkMapping::kSpans);
  add(name, [=] { return build_fold(name, program, form, unit, WorkMapping::kSpans); });
}

PartialLoops partial_loops(FoldForm form, const Axes& kept, const FoldChunks& chunks) {
  const int64_t count = chunks.count(), positions = kept.count();
  const bool lines = form == FoldForm::kLines;
  const int64_t inner = lines ? count : 1;
  PartialLoops loops;
  loops.written = kept;
  loops.kept = kept;
  for (int i = 0; i < 2; ++i) {
    const int64_t stride = i == 1 ? inner : inner * kept.at[1].size;
    for (int k = 1; k < kMaxOperands; ++k) loops.written.at[i].strides[k] = stride;
    loops.kept.at[i].strides[0] = stride;
  }
  loops.chunk_stride = lines ? 1 : positions;
  loops.chunks.size[1] = count;
  Axis line;
  line.size = count;
  line.strides[0] = loops.chunk_stride;
  loops.reduced.push(Axis{});
  loops.reduced.push(line);
  return loops;
}

}  // namespace graft
