// src/kernels/reduce/reduce.cpp: reductions, in one launch or in two with partial results between
// them.
#include "kernels/reduce/reduce.h"

#include <functional>
#include <limits>
#include <string>

#include "kernels/launch/workspace.h"
#include "kernels/move/fill.h"
#include "kernels/operation/offer.h"
#include "kernels/reduce/complex_reduce.h"
#include "kernels/reduce/geometry.h"
#include "kernels/reduce/programs.h"
#include "kernels/reduce/two_pass_reduction.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

double value_of_nothing(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMax:
    case Reduction::kMin:
    case Reduction::kNormInf:
    case Reduction::kNormNegInf:
      throw Error(
          GRAFT_INVALID_ARGUMENT,
          "reduce: no elements have no extremum; give the reduced dimensions a size above 0");
    case Reduction::kProd:
    case Reduction::kAll:
      return 1;
    case Reduction::kMean:
      return std::numeric_limits<double>::quiet_NaN();
    case Reduction::kLogSumExp:
      return -std::numeric_limits<double>::infinity();
    default:
      return 0;
  }
}

// Fills the kept positions of output with what reducing no element gives; false when there are
// elements to reduce.
bool nothing_to_reduce(const TensorView& input, const TensorView& output, TensorView* kept) {
  if (input.count() > 0) return false;
  *kept = output;
  for (int d = 0; d < input.rank; ++d) {
    kept->sizes[d] = output.strides[d] == 0 ? 1 : input.sizes[d];
  }
  return true;
}

Scalar scalar_for(graft_dtype dtype, double value) {
  if (is_floating(dtype)) return Scalar::of(value);
  return Scalar::of(static_cast<int64_t>(value));
}

void require_elements(const TensorView& input, const TensorView& output, const char* what) {
  TensorView kept;
  if (nothing_to_reduce(input, output, &kept) && kept.count() > 0) {
    throw Error(
        GRAFT_INVALID_ARGUMENT,
        std::string(what) + ": the reduced dimensions have no element; give them a size above 0");
  }
}

// The reduction for the vendor's kernel: as few dimensions as the views allow, outputs with stride
// 0 where they are reduced.
bool offer_reduction(Stream& stream, Operation id, std::initializer_list<const TensorView*> outputs,
                     const TensorView& input, std::initializer_list<int64_t> integers = {},
                     std::span<const double> numbers = {}) {
  if (!offers(stream, id)) return false;
  const TensorView* views[3];
  size_t count = 0;
  for (const TensorView* output : outputs) {
    if (output != nullptr) views[count++] = output;
  }
  views[count] = &input;
  Axes axes = Axes::of(std::span(views, count + 1));
  axes.merge();
  VendorCall call(stream, id);
  int at = 0;
  for (const TensorView* output : outputs) {
    output == nullptr ? call.write(nullptr) : call.write(axes, at++, *output);
  }
  call.read(axes, at, input).integers(integers).numbers(numbers);
  return call.run();
}

Operation operator_of(Reduction reduction) {
  return static_cast<Operation>(static_cast<int>(Operation::reduce_sum) +
                                static_cast<int>(reduction));
}
static_assert(static_cast<int>(Operation::reduce_log_sum_exp) -
                  static_cast<int>(Operation::reduce_sum) ==
              static_cast<int>(Reduction::kLogSumExp));

// outputs: the value, where it is wanted, then the index.
void reduce_extremum(Stream& stream, Extremum extremum, std::span<const TensorView> outputs,
                     const TensorView& input) {
  const bool with_value = outputs.size() == 2;
  const graft_dtype partials[2] = {extremum_partial_dtype(input.dtype), GRAFT_INT64};
  const auto program = [&](FoldStage stage) {
    return extremum_program(extremum, stage, input.dtype, with_value);
  };
  const TwoStage stages = {
      TwoStage::Family::kExtremum, static_cast<int>(extremum), GRAFT_INT64, input.dtype,
      with_value ? 1 : 0,          std::ref(program),          partials};
  if (!with_value && run_short_line(stream, outputs[0], input, stages)) return;
  ReduceGeometry geometry(stream, outputs, input, true);
  run_two_stage(stream, geometry, stages);
}

void pack_lines_and_columns(const PackEntry::Sink& add, const FoldProgram& program) {
  for (FoldForm form : {FoldForm::kLines, FoldForm::kColumns}) pack_fold(add, program, form, true);
}

// Short rows are columns that lie apart.
void pack_rows(const PackEntry::Sink& add, const FoldProgram& program) {
  pack_fold(add, program, FoldForm::kColumns, false);
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  const graft_dtype f32 = GRAFT_FLOAT32, f64 = GRAFT_FLOAT64;
  const Reduction numbers[] = {Reduction::kSum, Reduction::kMean, Reduction::kMax, Reduction::kMin,
                               Reduction::kNorm2};
  const Extremum extrema[] = {Extremum::kMax, Extremum::kMin};
  const auto pack_lines = [&](const FoldProgram& program) {
    pack_fold(add, program, FoldForm::kLines, true);
  };
  for (FoldStage stage : {FoldStage::kWhole, FoldStage::kPartial, FoldStage::kFinal}) {
    for (auto kind : numbers) {
      pack_lines_and_columns(add, reduce_program(kind, stage, f32, f32));
    }
    for (auto extremum : extrema) {
      pack_lines(extremum_program(extremum, stage, f32, false));
    }
    for (bool root : {false, true}) {
      pack_lines(variance_program(stage, f32, f32, root, false));
    }
    for (graft_dtype dtype : {GRAFT_BOOL, GRAFT_INT64}) {
      pack_lines(reduce_program(Reduction::kSum, stage, GRAFT_INT64, dtype));
    }
    for (auto kind : {Reduction::kAny, Reduction::kAll}) {
      pack_lines(reduce_program(kind, stage, GRAFT_BOOL, GRAFT_BOOL));
    }
    for (auto kind : {Reduction::kMax, Reduction::kMin}) {
      pack_lines(reduce_program(kind, stage, GRAFT_INT64, GRAFT_INT64));
    }
    for (auto kind : {Reduction::kSum, Reduction::kMean, Reduction::kMax, Reduction::kMin}) {
      pack_lines(reduce_program(kind, stage, f64, f64));
    }
    pack_lines_and_columns(add,
                           reduce_program(Reduction::kSum, stage, GRAFT_BFLOAT16, GRAFT_BFLOAT16));
    pack_lines(reduce_program(Reduction::kMean, stage, GRAFT_BFLOAT16, GRAFT_BFLOAT16));
  }
  const FoldStage whole = FoldStage::kWhole;
  for (auto kind : numbers) pack_rows(add, reduce_program(kind, whole, f32, f32));
  pack_fold(add, reduce_program(Reduction::kSum, whole, f32, f32), FoldForm::kLines, false);
  pack_rows(add, reduce_program(Reduction::kSum, whole, GRAFT_INT64, GRAFT_BOOL));
  for (auto extremum : extrema) {
    pack_rows(add, extremum_program(extremum, whole, f32, false));
    pack_rows(add, extremum_program(extremum, whole, f32, true));
    pack_fold(add, extremum_program(extremum, whole, f32, true), FoldForm::kColumns, true);
  }
  pack_rows(add, extremum_program(Extremum::kMax, whole, GRAFT_BFLOAT16, false));
  for (bool root : {false, true}) {
    pack_fold(add, variance_program(whole, f32, f32, root, false), FoldForm::kColumns, true);
  }
});

}  // namespace

void reduce(Stream& stream, Reduction reduction, const TensorView& output, const TensorView& input,
            double exponent) {
  const bool power = reduction == Reduction::kNormP;
  const std::span<const double> numbers(&exponent, power ? 1 : 0);
  if (offer_reduction(stream, operator_of(reduction), {&output}, input, {}, numbers)) return;
  if (is_complex(input.dtype) || is_complex(output.dtype)) {
    return complex_reduce(stream, reduction, output, input, exponent);
  }
  TensorView kept;
  if (nothing_to_reduce(input, output, &kept)) {
    if (kept.count() == 0) return;
    fill(stream, kept, scalar_for(output.dtype, value_of_nothing(reduction)));
    return;
  }
  double scalars[2] = {static_cast<double>(input.count()), exponent};
  const graft_dtype partial = partial_dtype(reduction, input.dtype);
  const graft_dtype partials[2] = {partial, partial};
  const auto program = [&](FoldStage stage) {
    return reduce_program(reduction, stage, output.dtype, input.dtype);
  };
  const size_t count = static_cast<size_t>(partial_count(reduction));
  TwoStage stages = {
      TwoStage::Family::kReduce, static_cast<int>(reduction), output.dtype, input.dtype, 0,
      std::ref(program),         std::span(partials, count)};
  stages.whole_scalars = stages.partial_scalars = stages.last_scalars = scalars;
  if (run_short_line(stream, output, input, stages)) return;
  ReduceGeometry geometry(stream, {&output, 1}, input, false);
  scalars[0] = static_cast<double>(geometry.reduced().count());
  run_two_stage(stream, geometry, stages);
}

void arg_reduce(Stream& stream, Extremum extremum, const TensorView& indices,
                const TensorView& input) {
  require_elements(input, indices, "argmax or argmin");
  if (input.count() == 0) return;
  const bool largest = extremum == Extremum::kMax;
  if (offer_reduction(stream, largest ? Operation::arg_max : Operation::arg_min, {&indices},
                      input)) {
    return;
  }
  reduce_extremum(stream, extremum, {&indices, 1}, input);
}

void reduce_with_index(Stream& stream, Extremum extremum, const TensorView& values,
                       const TensorView& indices, const TensorView& input) {
  require_elements(input, indices, "max or min along a dimension");
  if (input.count() == 0) return;
  const Operation id =
      extremum == Extremum::kMax ? Operation::max_with_index : Operation::min_with_index;
  if (offer_reduction(stream, id, {&values, &indices}, input)) return;
  const TensorView outputs[2] = {values, indices};
  reduce_extremum(stream, extremum, outputs, input);
}

void variance(Stream& stream, const TensorView& output, const TensorView* mean,
              const TensorView& input, double correction, bool root) {
  if (is_complex(input.dtype)) {
    throw Error(GRAFT_UNSUPPORTED, "a variance has no kernel for complex numbers");
  }
  if (offer_reduction(stream, Operation::variance, {&output, mean}, input, {root},
                      {&correction, 1})) {
    return;
  }
  TensorView kept;
  if (nothing_to_reduce(input, output, &kept)) {
    const Scalar nan = Scalar::of(std::numeric_limits<double>::quiet_NaN());
    if (kept.count() == 0) return;
    fill(stream, kept, nan);
    if (mean != nullptr && nothing_to_reduce(input, *mean, &kept)) fill(stream, kept, nan);
    return;
  }
  const bool with_mean = mean != nullptr;
  const TensorView outputs[2] = {output, with_mean ? *mean : output};
  ReduceGeometry geometry(stream, std::span(outputs, with_mean ? 2 : 1), input, false);
  const auto program = [&](FoldStage stage) {
    return variance_program(stage, output.dtype, input.dtype, root, with_mean);
  };
  const graft_dtype wide = wide_dtype(input.dtype);
  const graft_dtype partials[kMomentParts] = {wide, wide, wide, wide};
  TwoStage stages = {TwoStage::Family::kVariance, root ? 1 : 0,      output.dtype, input.dtype,
                     with_mean ? 1 : 0,           std::ref(program), partials};
  stages.whole_scalars = stages.last_scalars = {&correction, 1};
  run_two_stage(stream, geometry, stages);
}

}  // namespace graft
