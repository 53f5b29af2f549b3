// src/kernels/variance_program.cpp: the folding program of variance().
#include "kernels/reduce_programs.h"
#include "runtime/dtype.h"

namespace graft {
namespace {

using ir::Builder;
using ir::Type;
using ir::Value;

FoldPass sum_pass(Type type, std::function<Value(const FoldContext&)> element) {
  FoldPass pass;
  pass.first = [type](Builder& b) { return Values{b.constant(type, 0.0)}; };
  pass.step = [element = std::move(element)](const Values& acc, const FoldContext& context) {
    return Values{acc[0] + element(context)};
  };
  pass.combine = [](const Values& a, const Values& b) { return Values{a[0] + b[0]}; };
  return pass;
}

Value mean_of(const FoldContext& context) {
  return context.before[0] / cast(context.before[0].type(), context.count);
}

// Two passes over the chunk, which is in the cache for the second.
std::vector<FoldPass> chunk_passes(Type type) {
  FoldPass deviations = sum_pass(type, [type](const FoldContext& context) {
    const Value from_mean = cast(type, context.loaded[0]) - mean_of(context);
    return from_mean * from_mean;
  });
  return {sum_pass(type, [type](const FoldContext& c) { return cast(type, c.loaded[0]); }),
          deviations};
}

FoldPass joining_pass(Type type) {
  FoldPass pass;
  pass.first = [type](Builder& b) { return Values(3, b.constant(type, 0.0)); };
  pass.step = [](const Values& acc, const FoldContext& c) { return join_moments(acc, c.loaded); };
  pass.combine = join_moments;
  return pass;
}

}  // namespace

Values join_moments(const Values& a, const Values& b) {
  const Value count = a[2] + b[2];
  const Value share = select(count == 0, 0.0, b[2] / count);
  const Value apart = b[0] - a[0];
  return {a[0] + apart * share, a[1] + b[1] + apart * apart * a[2] * share, count};
}

FoldProgram variance_program(FoldStage stage, graft_dtype output, graft_dtype input, bool root,
                             bool with_mean) {
  const graft_dtype wide = wide_dtype(input);
  const Type type = ir::compute_type(wide);
  FoldProgram program;
  program.key = "variance";
  if (stage == FoldStage::kFinal) {
    program.key += "_final";
    program.inputs = {wide, wide, wide};
    program.passes = {joining_pass(type)};
  } else {
    program.inputs = {input};
    program.passes = chunk_passes(type);
  }
  if (stage == FoldStage::kPartial) {
    program.key += "_partial";
    program.outputs = {wide, wide, wide};
    program.finish = [type](const FoldContext& context) -> Values {
      return {mean_of(context), context.before[1], cast(type, context.count)};
    };
    return program;
  }
  program.key += root ? "_root" : "";
  program.outputs = std::vector(with_mean ? 2 : 1, output);
  program.scalars = 1;
  program.finish = [=](const FoldContext& context) -> Values {
    const bool joined = stage == FoldStage::kFinal;
    const Value mean = joined ? context.before[0] : mean_of(context);
    const Value count = joined ? context.before[2] : cast(type, context.count);
    const Value divisor = count - cast(type, context.scalars[0]);
    const Value variance = context.before[1] / maximum(divisor, like(divisor, 0.0));
    Values results{root ? sqrt(variance) : variance};
    if (with_mean) results.push_back(mean);
    return results;
  };
  return program;
}

}  // namespace graft
