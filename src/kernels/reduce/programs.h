// src/kernels/reduce/programs.h: the folding programs behind reduce.h.
#pragma once

#include "kernels/reduce/fold_program.h"
#include "kernels/reduce/moments.h"
#include "kernels/reduce/reduce.h"

namespace graft {

// Which part of a reduction in two passes; kWhole does it in one.
enum class FoldStage { kWhole, kPartial, kFinal };

// Type of memory between the two passes.
graft_dtype partial_dtype(Reduction reduction, graft_dtype input);

// How many partial arrays a reduction has.
int partial_count(Reduction reduction);

// kWhole and kPartial read input, kFinal the partials; kPartial writes the partials. Scalars:
// {number of elements, exponent}.
FoldProgram reduce_program(Reduction reduction, FoldStage stage, graft_dtype output,
                           graft_dtype input);

// Value and position of an extremum. kPartial writes {value in its compute type, int64}; the others
// write {value, index}, or only the index when with_value is not set.
FoldProgram extremum_program(Extremum extremum, FoldStage stage, graft_dtype input,
                             bool with_value);
graft_dtype extremum_partial_dtype(graft_dtype input);

// Moments of chunks, shifted by the chunk's first element and corrected (moments.h has the bounds,
// with chunks for blocks): kPartial writes those that join_moments() takes; kFinal joins them and
// kWhole does both, writing {variance or its root, mean when with_mean}. Scalars of kWhole and
// kFinal: {correction}.
FoldProgram variance_program(FoldStage stage, graft_dtype output, graft_dtype input, bool root,
                             bool with_mean);

// Sums, count of them, of what elements() makes of each element.
FoldPass sums_pass(ir::Type type, size_t count, std::function<Values(const FoldContext&)> elements);
// Joins the moments of chunks (moments.h).
FoldPass joining_pass(ir::Type type);

// Adds what the stage has to say to the key of a program.
void append_stage(std::string& key, FoldStage stage);
// The lowest or highest number of a type: infinite ones of floating types.
ir::Value furthest(ir::Builder& b, ir::Type type, bool highest);

// The accumulator's dtype for a floating dtype: float64 for float64, else float32.
graft_dtype wide_dtype(graft_dtype dtype);

}  // namespace graft
