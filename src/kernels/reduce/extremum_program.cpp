// src/kernels/reduce/extremum_program.cpp: the folding program of arg_reduce() and
// reduce_with_index().
#include <limits>

#include "kernels/reduce/programs.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

// The better of two (value, position) pairs: NaN first, then the extremum, then the front one. A
// lane that saw nothing is nowhere, and loses to every element.
Values better(Extremum extremum, const Values& a, const Values& b) {
  const Value beats = extremum == Extremum::kMax ? b[0] > a[0] : b[0] < a[0];
  const Value same = (b[0] == a[0]) | (is_nan(a[0]) & is_nan(b[0]));
  const Value nan_beats = is_nan(b[0]) & !is_nan(a[0]);
  const Value takes = beats | nan_beats | (same & (b[1] < a[1]));
  return {select(takes, b[0], a[0]), select(takes, b[1], a[1])};
}

}  // namespace

graft_dtype extremum_partial_dtype(graft_dtype input) {
  if (is_floating(input)) return wide_dtype(input);
  return input == GRAFT_BOOL ? GRAFT_UINT8 : input;
}

FoldProgram extremum_program(Extremum extremum, FoldStage stage, graft_dtype input,
                             bool with_value) {
  const graft_dtype partial = extremum_partial_dtype(input);
  const Type type = ir::compute_type(partial);
  const bool last = stage != FoldStage::kPartial, initial = stage != FoldStage::kFinal;
  FoldProgram program;
  program.key = extremum == Extremum::kMax ? "argmax" : "argmin";
  append_stage(program.key, stage);
  program.inputs = initial ? std::vector{input} : std::vector{partial, GRAFT_INT64};
  program.outputs = {GRAFT_INT64};
  if (!last) program.outputs = {partial, GRAFT_INT64};
  if (last && with_value) program.outputs = {input, GRAFT_INT64};
  FoldPass pass;
  pass.first = [=](Builder& b) {
    return Values{furthest(b, type, extremum == Extremum::kMin), b.i64(kNowhere)};
  };
  pass.step = [=](const Values& acc, const FoldContext& context) {
    if (!initial) return better(extremum, acc, context.loaded);
    return better(extremum, acc, {cast(type, context.loaded[0]), context.position});
  };
  pass.combine = [=](const Values& a, const Values& b) { return better(extremum, a, b); };
  program.passes = {pass};
  program.finish = [=](const FoldContext& context) -> Values {
    if (!last || with_value) return context.before;
    return {context.before[1]};
  };
  return program;
}

}  // namespace graft
