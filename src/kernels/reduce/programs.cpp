// src/kernels/reduce/programs.cpp: the folding programs of reduce().
#include "kernels/reduce/programs.h"

#include <iterator>
#include <limits>

#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

const char* key_of(Reduction reduction) {
  static constexpr const char* kNames[] = {
      "sum",   "nansum", "mean",  "prod",  "max",     "min",        "any",   "all",
      "count", "norm0",  "norm1", "norm2", "norminf", "normneginf", "normp", "logsumexp"};
  static_assert(std::size(kNames) == static_cast<size_t>(Reduction::kLogSumExp) + 1);
  return kNames[static_cast<size_t>(reduction)];
}

bool is_extremum(Reduction reduction) {
  return reduction == Reduction::kMax || reduction == Reduction::kMin;
}

bool takes_extremes(Reduction reduction) {
  return is_extremum(reduction) || reduction == Reduction::kNormInf ||
         reduction == Reduction::kNormNegInf;
}

bool is_logical(Reduction reduction) {
  return reduction == Reduction::kAny || reduction == Reduction::kAll;
}

Type accumulator(Reduction reduction, graft_dtype input) {
  return ir::compute_type(partial_dtype(reduction, input));
}

double neutral(Reduction reduction) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (reduction) {
    case Reduction::kProd:
    case Reduction::kAll:
      return 1;
    case Reduction::kMax:
    case Reduction::kLogSumExp:
      return -infinity;
    case Reduction::kMin:
    case Reduction::kNormNegInf:
      return infinity;
    default:
      return 0;
  }
}

Value first_value(Builder& b, Reduction reduction, Type type) {
  if (ir::is_float(type)) return b.constant(type, neutral(reduction));
  if (is_extremum(reduction)) return furthest(b, type, reduction == Reduction::kMin);
  return b.constant(type, static_cast<int64_t>(neutral(reduction)));
}

// What one element contributes, in the accumulator's type.
Value mapped(Reduction reduction, Type type, Value x, const FoldContext& context) {
  Builder& b = x.builder();
  auto flag = [&](Value condition) {
    return select(condition, b.constant(type, 1), b.constant(type, 0));
  };
  switch (reduction) {
    case Reduction::kAny:
    case Reduction::kAll:
    case Reduction::kCountNonzero:
    case Reduction::kNorm0:
      return flag(x.type() == Type::kBool ? x : x != 0);
    default:
      break;
  }
  const Value wide = cast(type, x);
  switch (reduction) {
    case Reduction::kNansum:
      return select(is_nan(wide), 0, wide);
    case Reduction::kNorm1:
    case Reduction::kNormInf:
    case Reduction::kNormNegInf:
      return abs(wide);
    case Reduction::kNorm2:
      return wide * wide;
    case Reduction::kNormP:
      return pow(abs(wide), cast(type, context.scalars[1]));
    default:
      return wide;
  }
}

Value joined(Reduction reduction, Value a, Value b) {
  switch (reduction) {
    case Reduction::kProd:
      return a * b;
    case Reduction::kMax:
    case Reduction::kNormInf:
      return maximum(a, b);
    case Reduction::kMin:
    case Reduction::kNormNegInf:
      return minimum(a, b);
    case Reduction::kAny:
      return a | b;
    case Reduction::kAll:
      return a & b;
    default:
      return a + b;
  }
}

Value finished(Reduction reduction, const FoldContext& context) {
  const Value total = context.before[0];
  const Type type = total.type();
  switch (reduction) {
    case Reduction::kMean:
      return total / cast(type, context.scalars[0]);
    case Reduction::kNorm2:
      return sqrt(total);
    case Reduction::kNormP:
      return pow(total, 1 / cast(type, context.scalars[1]));
    default:
      return total;
  }
}

// log(sum exp): the largest element so far and the sum of exponentials relative to it.
Values join_exponentials(const Values& a, const Values& b) {
  const Value largest = maximum(a[0], b[0]);
  auto scaled = [&](const Values& side) {
    return side[1] * select(side[0] == largest, 1.0, exp(side[0] - largest));
  };
  return {largest, scaled(a) + scaled(b)};
}

FoldPass exponentials_pass(Type type, FoldStage stage) {
  FoldPass pass;
  pass.rounds = true;
  pass.first = [type](Builder& b) {
    return Values{b.constant(type, -std::numeric_limits<double>::infinity()),
                  b.constant(type, 0.0)};
  };
  pass.step = [type, stage](const Values& acc, const FoldContext& context) {
    if (stage == FoldStage::kFinal) return join_exponentials(acc, context.loaded);
    const Value x = cast(type, context.loaded[0]);
    return join_exponentials(acc, {x, like(x, 1.0)});
  };
  pass.combine = join_exponentials;
  return pass;
}

}  // namespace

void append_stage(std::string& key, FoldStage stage) {
  if (stage == FoldStage::kPartial) key += "_partial";
  if (stage == FoldStage::kFinal) key += "_final";
}

Value furthest(Builder& b, Type type, bool highest) {
  if (ir::is_float(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return b.constant(type, highest ? infinity : -infinity);
  }
  const int bits = static_cast<int>(ir::bytes_of(type)) * 8;
  if (!ir::is_signed(type)) return b.constant(type, highest ? (1ll << bits) - 1 : 0ll);
  const int64_t most = INT64_MAX >> (64 - bits);
  return b.constant(type, highest ? most : -1 - most);
}

graft_dtype wide_dtype(graft_dtype dtype) {
  return dtype == GRAFT_FLOAT64 ? GRAFT_FLOAT64 : GRAFT_FLOAT32;
}

graft_dtype partial_dtype(Reduction reduction, graft_dtype input) {
  if (is_logical(reduction)) return GRAFT_UINT8;
  if (reduction == Reduction::kCountNonzero || reduction == Reduction::kNorm0) return GRAFT_INT64;
  if (is_floating(input)) return wide_dtype(input);
  if (is_extremum(reduction)) return input == GRAFT_BOOL ? GRAFT_UINT8 : input;
  const bool exact = reduction == Reduction::kSum || reduction == Reduction::kProd ||
                     reduction == Reduction::kNansum;
  return exact ? GRAFT_INT64 : GRAFT_FLOAT32;
}

int partial_count(Reduction reduction) { return reduction == Reduction::kLogSumExp ? 2 : 1; }

FoldProgram reduce_program(Reduction reduction, FoldStage stage, graft_dtype output,
                           graft_dtype input) {
  const graft_dtype partial = partial_dtype(reduction, input);
  const Type type = accumulator(reduction, input);
  const size_t partials = static_cast<size_t>(partial_count(reduction));
  const bool last = stage != FoldStage::kPartial, initial = stage != FoldStage::kFinal;
  FoldProgram program;
  program.key = key_of(reduction);
  append_stage(program.key, stage);
  program.inputs = initial ? std::vector{input} : std::vector(partials, partial);
  program.outputs = last ? std::vector{output} : std::vector(partials, partial);
  program.scalars = 2;
  if (reduction == Reduction::kLogSumExp) {
    program.passes = {exponentials_pass(type, stage)};
    program.finish = [last](const FoldContext& context) -> Values {
      const Value largest = context.before[0], sum = context.before[1];
      if (!last) return {largest, sum};
      return {select(is_inf(largest), largest, largest + log(sum))};
    };
    return program;
  }
  FoldPass pass;
  pass.rounds = ir::is_float(type) && !takes_extremes(reduction);
  pass.first = [=](Builder& b) { return Values{first_value(b, reduction, type)}; };
  pass.step = [=](const Values& acc, const FoldContext& context) {
    const Value x = context.loaded[0];
    return Values{joined(reduction, acc[0], initial ? mapped(reduction, type, x, context) : x)};
  };
  pass.combine = [=](const Values& a, const Values& b) {
    return Values{joined(reduction, a[0], b[0])};
  };
  program.passes = {pass};
  program.finish = [=](const FoldContext& context) -> Values {
    return {last ? finished(reduction, context) : context.before[0]};
  };
  return program;
}

}  // namespace graft
