// src/kernels/reduce/variance_program.cpp: the folding program of variance().
#include "kernels/reduce/programs.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// Sums of deviations from m0(context) and of their squares, as {m - m0, squared deviations}.
FoldPass moments_pass(Type type, std::function<Value(const FoldContext&)> m0) {
  FoldPass pass = sums_pass(type, 2, [type, m0 = std::move(m0)](const FoldContext& context) {
    const Value apart = cast(type, context.loaded[0]) - m0(context);
    return Values{apart, apart * apart};
  });
  pass.finish = [type](const Values& sums, const FoldContext& context) {
    const CorrectedMoments moments = corrected_moments(sums[0], sums[1], cast(type, context.count));
    return Values{moments.off, moments.squares};
  };
  return pass;
}

Value chunk_count(const FoldContext& context) {
  return cast(context.before[0].type(), context.count);
}

// What chunk_passes() leave: x0, the mean of a sample, the moments from that, those from the mean
// that these give.
Value sample_mean(const FoldContext& context) { return context.before[1]; }
CorrectedMoments from_sample(const FoldContext& context) {
  return {context.before[2], context.before[3]};
}
CorrectedMoments from_mean(const FoldContext& context) {
  return {context.before[4], context.before[5]};
}

Value sample_is_near(const FoldContext& context) {
  return near_mean(from_sample(context), chunk_count(context));
}

// The chunk is in the cache for the last pass, which few chunks need.
std::vector<FoldPass> chunk_passes(Type type) {
  FoldPass shift;
  shift.first = [type](Builder& b) { return Values{b.constant(type, 0.0)}; };
  shift.step = [type](const Values&, const FoldContext& context) {
    return Values{cast(type, context.loaded[0])};
  };
  shift.take = FoldTake::kFirst;
  FoldPass sample = sums_pass(type, 1, [type](const FoldContext& context) {
    return Values{cast(type, context.loaded[0]) - context.before[0]};
  });
  sample.finish = [type](const Values& sum, const FoldContext& context) {
    return Values{context.before[0] + sum[0] / cast(type, context.sampled)};
  };
  sample.take = FoldTake::kSample;
  sample.sample = kMomentSample;
  FoldPass again = moments_pass(type, [](const FoldContext& context) {
    return sample_mean(context) + from_sample(context).off;
  });
  again.needed = [](const FoldContext& context) { return !sample_is_near(context); };
  return {shift, sample, moments_pass(type, &sample_mean), again};
}

// Moments of a chunk, for join_moments().
Values chunk_moments(const FoldContext& context) {
  const Value near = sample_is_near(context), first = sample_mean(context);
  const CorrectedMoments one = from_sample(context), two = from_mean(context);
  return {select(near, first, first + one.off), select(near, one.off, two.off),
          select(near, one.squares, two.squares), chunk_count(context)};
}

}  // namespace

FoldPass sums_pass(Type type, size_t count, std::function<Values(const FoldContext&)> elements) {
  FoldPass pass;
  pass.rounds = true;
  pass.first = [=](Builder& b) { return Values(count, b.constant(type, 0.0)); };
  pass.combine = [](const Values& a, const Values& b) {
    Values sums;
    for (size_t i = 0; i < a.size(); ++i) sums.push_back(a[i] + b[i]);
    return sums;
  };
  pass.step = [elements = std::move(elements), add = pass.combine](const Values& acc,
                                                                   const FoldContext& context) {
    return add(acc, elements(context));
  };
  return pass;
}

FoldPass joining_pass(Type type) {
  FoldPass pass;
  pass.first = [type](Builder& b) { return Values(kMomentParts, b.constant(type, 0.0)); };
  pass.step = [](const Values& acc, const FoldContext& c) { return join_moments(acc, c.loaded); };
  pass.combine = join_moments;
  return pass;
}

FoldProgram variance_program(FoldStage stage, graft_dtype output, graft_dtype input, bool root,
                             bool with_mean) {
  const graft_dtype wide = wide_dtype(input);
  const Type type = ir::compute_type(wide);
  FoldProgram program;
  program.key = "variance";
  if (stage == FoldStage::kFinal) {
    program.key += "_final";
    program.inputs.assign(kMomentParts, wide);
    program.passes = {joining_pass(type)};
  } else {
    program.inputs = {input};
    program.passes = chunk_passes(type);
  }
  if (stage == FoldStage::kPartial) {
    program.key += "_partial";
    program.outputs.assign(kMomentParts, wide);
    program.finish = &chunk_moments;
    return program;
  }
  program.key += root ? "_root" : "";
  program.outputs = std::vector(with_mean ? 2 : 1, output);
  program.scalars = 1;
  program.finish = [=](const FoldContext& context) -> Values {
    const Values moments = stage == FoldStage::kFinal ? context.before : chunk_moments(context);
    const Value divisor = moments[3] - cast(type, context.scalars[0]);
    const Value variance = moments[2] / maximum(divisor, like(divisor, 0.0));
    Values results{root ? sqrt(variance) : variance};
    if (with_mean) results.push_back(moments[0] + moments[1]);
    return results;
  };
  return program;
}

}  // namespace graft
