// src/kernels/reduce/fold_program.h: kernels that fold many elements into few, from one
// description.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "codegen/cache/program_cache.h"
#include "codegen/ir/builder.h"
#include "kernels/tensor/axes.h"
#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft {

using ir::Values;

// What the functions of a FoldProgram may look at.
struct FoldContext {
  Values loaded;       // the element of each input, in its compute type
  Values kept;         // the element of each kept input, for this kept position
  Values before;       // results of earlier passes; in finish, of all passes
  Values scalars;      // float64 arguments
  ir::Value position;  // i64 row-major position in the reduced loops
  ir::Value count;     // i64 elements of this chunk
  ir::Value sampled;   // i64 elements that kSample took of it; in the pass's finish
};

// The elements that a pass takes: those of the whole chunk, a few spread over the chunk's first
// row, or the very first one.
enum class FoldTake { kAll, kSample, kFirst };

// One pass over the elements: accumulators, what an element does to them, how two sets join.
// combine must be associative up to rounding, and is not used for kFirst; first is its neutral
// element.
struct FoldPass {
  std::function<Values(ir::Builder&)> first;
  std::function<Values(const Values&, const FoldContext&)> step;
  std::function<Values(const Values&, const Values&)> combine;
  // What becomes of the accumulators before later passes see them; empty: nothing.
  std::function<Values(const Values&, const FoldContext&)> finish = {};
  FoldTake take = FoldTake::kAll;
  int64_t sample = 0;   // elements that kSample takes at most
  bool rounds = false;  // so that long columns are combined in parts
  // Whether a pass that takes all is needed, by what the passes before gave; empty: yes. If not,
  // finish may get the first accumulators.
  std::function<ir::Value(const FoldContext&)> needed = {};
};

// A family of kernels: for each kept position, passes over its reduced elements and one store to
// each output. key names the program and everything that it depends on, dtypes excepted.
struct FoldProgram {
  std::string key;
  std::vector<graft_dtype> inputs, kept_inputs, outputs;
  int scalars = 0;
  std::vector<FoldPass> passes;
  std::function<Values(const FoldContext&)> finish;  // one value per output
};

// How the loops are cut. kLines: a work-item folds along the reduced loops; kColumns: it runs down
// a block of neighbouring kept positions side by side.
enum class FoldForm { kLines, kColumns };

struct FoldChunks {
  int64_t size[2] = {1, 1};    // reduced steps of a chunk, per loop
  int64_t counts[2] = {1, 1};  // chunks, per loop
  int64_t count() const { return counts[0] * counts[1]; }
};

// Elements of a line that are never cut.
inline constexpr int64_t kSmallestChunk = 4096;

// Both depend on sizes and strides alone, so that results do not depend on the machine.
FoldForm choose_form(const Axes& kept, const Axes& reduced);
FoldChunks choose_chunks(FoldForm form, const Axes& kept, const Axes& reduced);

// One launch. kept and reduced are two loops each, the outer one first; operand 0 holds the strides
// that all inputs share, operand 1 + i those of output i, the last operand those of all outputs
// from there on. Kept inputs are contiguous over the kept positions. What it refers to lives until
// the launch returns.
struct FoldCall {
  FoldForm form;
  const Axis* kept;
  const Axis* reduced;
  FoldChunks chunks;
  int64_t chunk_stride = 0;  // of the outputs
  std::span<const TensorView> inputs = {}, kept_inputs = {}, outputs = {};
  std::span<const double> scalars = {};

  // Whether the kernel may count on an inner stride of 1 in the inputs.
  bool unit() const { return (form == FoldForm::kLines ? reduced : kept)[1].strides[0] == 1; }
};
void launch_fold(Stream& stream, const FoldProgram& program, const FoldCall& call);

// The same with the kernel at hand: fold_kernel's for the call's form and unit().
void launch_fold(Stream& stream, graft_kernel kernel, const FoldCall& call);
graft_kernel fold_kernel(OpenDevice& device, const FoldProgram& program, FoldForm form, bool unit);

// Adds the program's kernel to a pack.
void pack_fold(const PackEntry::Sink& add, const FoldProgram& program, FoldForm form, bool unit);

// The loops over partial results [kept, chunks] (lines) or [chunks, kept] (columns) as launch_fold
// writes them; outputs are the first launch's. partial_kept gives the first launch's output
// strides and chunk_stride.
struct PartialLoops {
  Axes written;          // kept loops of the first launch, outputs into the partials
  int64_t chunk_stride;  // of the first launch
  Axes kept, reduced;    // of the second launch
  FoldChunks chunks;     // of it: all partial results in one
};
PartialLoops partial_loops(FoldForm form, const Axes& kept, const FoldChunks& chunks);

}  // namespace graft
