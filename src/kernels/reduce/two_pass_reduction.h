// src/kernels/reduce/two_pass_reduction.h: a reduction in one launch, or in two with partial
// results between them.
#pragma once

#include <functional>
#include <span>

#include "kernels/reduce/fold_program.h"
#include "kernels/reduce/geometry.h"
#include "kernels/reduce/programs.h"

namespace graft {

// The programs of a reduction. program describes the kernel of a stage; it is called where a kernel
// is used for the first time only, so family, kind, dtypes and option say together which one it is:
// two reductions that differ in a kernel differ in one of them. kPartial's outputs are kFinal's
// inputs, of the dtypes partials (at most 4).
struct TwoStage {
  enum class Family : uint8_t { kReduce = 1, kExtremum, kVariance };

  Family family;
  int kind;                   // below 256, as is option
  graft_dtype output, input;  // dtypes
  int option;
  std::function<FoldProgram(FoldStage)> program;
  std::span<const graft_dtype> partials;
  std::span<const double> whole_scalars = {}, partial_scalars = {}, last_scalars = {};
};

// Writes and finishes the outputs of the geometry.
void run_two_stage(Stream& stream, ReduceGeometry& geometry, const TwoStage& stages);

// Reduces a short dense tensor to one element in one launch, with the result of run_two_stage but
// little of its preparation; false, and nothing done, where the tensors are not of that kind.
bool run_short_line(Stream& stream, const TensorView& output, const TensorView& input,
                    const TwoStage& stages);

}  // namespace graft
