// src/kernels/norm/batch_norm_programs.cpp: the folding programs of batch normalisation.
#include "kernels/norm/batch_norm_programs.h"

#include "kernels/reduce/programs.h"

namespace graft {
namespace {

using namespace ir;

std::string option_key(const BatchNormOptions& options) {
  return std::string(options.weight ? "_weight" : "") + (options.bias ? "_bias" : "") +
         (options.running ? "_running" : "");
}

// Reads kept inputs one after the other, in the wide type.
class KeptReader {
 public:
  KeptReader(const FoldContext& context, Type type) : context_(context), type_(type) {}
  Value next() { return cast(type_, context_.kept[next_++]); }

 private:
  const FoldContext& context_;
  Type type_;
  size_t next_ = 0;
};

// scale = weight * invstd and shift = bias - mean * scale.
Values scale_and_shift(const BatchNormOptions& options, KeptReader& kept, Value mean,
                       Value invstd) {
  const Value scale = options.weight ? kept.next() * invstd : invstd;
  const Value shift = -(mean * scale);
  return {scale, options.bias ? kept.next() + shift : shift};
}

}  // namespace

FoldProgram batch_norm_statistics(const BatchNormOptions& options, graft_dtype save,
                                  graft_dtype running, graft_dtype weight) {
  const Type type = ir::compute_type(options.wide);
  FoldProgram program;
  program.key = "batch_norm_statistics" + option_key(options);
  program.inputs.assign(kMomentParts, options.wide);
  program.outputs = {options.wide, options.wide, options.wide, save, save};
  if (options.running) {
    program.kept_inputs = {running, running};
    program.outputs.insert(program.outputs.end(), 4, running);
  }
  program.kept_inputs.insert(program.kept_inputs.end(), options.weight + options.bias, weight);
  program.scalars = 2;
  program.passes = {joining_pass(type)};
  program.finish = [=](const FoldContext& context) {
    const Value mean = context.before[0] + context.before[1];
    const Value squares = context.before[2], count = context.before[3];
    const Value epsilon = cast(type, context.scalars[0]);
    const Value momentum = cast(type, context.scalars[1]);
    const Value invstd = 1 / sqrt(squares / count + epsilon);
    KeptReader kept(context, type);
    Values moved;
    if (options.running) {
      const Value old_mean = kept.next(), old_variance = kept.next();
      const Value unbiased = squares / (count - 1);
      moved = {old_mean + momentum * (mean - old_mean),
               old_variance + momentum * (unbiased - old_variance), old_mean, old_variance};
    }
    const Value scale = options.weight ? kept.next() * invstd : invstd;
    Values results{scale, options.bias ? kept.next() : like(mean, 0.0), mean, mean, invstd};
    results.insert(results.end(), moved.begin(), moved.end());
    return results;
  };
  return program;
}

FoldProgram batch_norm_given(const BatchNormOptions& options, graft_dtype statistics,
                             graft_dtype weight) {
  const Type type = ir::compute_type(options.wide);
  FoldProgram program;
  program.key = "batch_norm_given" + option_key(options);
  program.kept_inputs = {statistics, statistics};
  program.kept_inputs.insert(program.kept_inputs.end(), options.weight + options.bias, weight);
  program.outputs = {options.wide, options.wide};
  program.scalars = 1;
  program.finish = [=](const FoldContext& context) {
    KeptReader kept(context, type);
    const Value mean = kept.next(), variance = kept.next();
    const Value invstd = 1 / sqrt(variance + cast(type, context.scalars[0]));
    return scale_and_shift(options, kept, mean, invstd);
  };
  return program;
}

FoldProgram batch_norm_gradient_sums(graft_dtype gradient, graft_dtype input, graft_dtype mean,
                                     graft_dtype wide) {
  const Type type = ir::compute_type(wide);
  FoldProgram program;
  program.key = "batch_norm_gradient_sums";
  program.inputs = {gradient, input};
  program.kept_inputs = {mean};
  program.outputs = {wide, wide};
  program.passes = {sums_pass(type, 2, [type](const FoldContext& context) -> Values {
    const Value g = cast(type, context.loaded[0]), x = cast(type, context.loaded[1]);
    return {g, g * (x - cast(type, context.kept[0]))};
  })};
  program.finish = [](const FoldContext& context) { return context.before; };
  return program;
}

FoldProgram batch_norm_whole_sums(graft_dtype wide) {
  FoldProgram program;
  program.key = "batch_norm_whole_sums";
  program.inputs = {wide, wide};
  program.outputs = {wide, wide};
  program.passes = {
      sums_pass(ir::compute_type(wide), 2, [](const FoldContext& c) { return c.loaded; })};
  program.finish = [](const FoldContext& context) { return context.before; };
  return program;
}

FoldProgram batch_norm_gradients(const BatchNormOptions& options, bool train, graft_dtype mean,
                                 graft_dtype weight) {
  const Type type = ir::compute_type(options.wide);
  FoldProgram program;
  program.key =
      std::string("batch_norm_gradients") + (train ? "_train" : "_eval") + option_key(options);
  program.inputs = {options.wide, options.wide};
  program.kept_inputs = {mean, mean};
  if (options.weight) program.kept_inputs.push_back(weight);
  program.outputs.assign(6, options.wide);
  program.scalars = 2;
  program.passes = {sums_pass(type, 2, [](const FoldContext& c) { return c.loaded; })};
  program.finish = [=](const FoldContext& context) -> Values {
    KeptReader kept(context, type);
    const Value average = kept.next(), spread = kept.next();
    const Value sum = context.before[0], along = context.before[1];
    const Value invstd = train ? spread : 1 / sqrt(spread + cast(type, context.scalars[0]));
    const Value factor = options.weight ? kept.next() * invstd : invstd;
    const Value zero = like(sum, 0.0);
    if (!train) return {along * invstd, sum, factor, zero, zero, zero};
    const Value count = cast(type, context.scalars[1]);
    const Value slope = -(factor * invstd * invstd * along / count);
    return {along * invstd, sum, factor, slope, -(factor * sum / count), average};
  };
  return program;
}

}  // namespace graft
