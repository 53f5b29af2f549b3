// src/kernels/fft/kernel.h: the kernel behind fft.h: transforms of lines that fit a work-item.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/ir/ir.h"
#include "graft/driver.h"
#include "kernels/launch/arguments.h"

namespace graft {

// What happens to a line of numbers besides its transform of length numbers.
enum class FftMiddle : int64_t {
  kNone,
  kUnpack,    // after it: pairs of real numbers were read, the first half of their spectrum follows
  kPack,      // before it: such a half was read, pairs of real numbers are written
  kHalveMean  // before it: the first number is halved
};

// One side of the lines: how they lie in memory, in units of one part of a number. Line
// (i0, i1, i2) begins at i0 * strides[0] + i1 * strides[1] + i2 * strides[2].
struct FftSide {
  graft_address address = 0;
  uint64_t bytes = 0;
  int64_t strides[3] = {};
  int64_t step = 2;   // from one number of a line to the next
  int64_t part = 1;   // from a real part to its imaginary one; 0: the numbers are real
  int64_t count = 0;  // numbers of a line; what the transform has beyond them is 0 or left out
  // Which plane of the work-item's memory real parts go to. With 1 on both sides the transform
  // runs backwards, since exchanging the parts of numbers before and after does that.
  int64_t plane = 0;
};

struct FftLaunch {
  FftSide in, out;
  int64_t sizes[3] = {1, 1, 1};  // of the lines
  int64_t length = 1;            // of the transform; product of the radices
  int64_t radices = 0;           // 8 bits each, the first one lowest
  int64_t stages = 0;
  // exp(-2 pi i k / (length * root_step)) for all k, real and imaginary parts in turn.
  graft_address roots = 0;
  int64_t root_step = 1;
  // [length, sizes[2]] factors of the results; null: none.
  graft_address factors = 0;
  FftMiddle middle = FftMiddle::kNone;
  double scale = 1;  // of the results
};

// Stockham's self-sorting transform with the twiddle factors on the results of each stage: Van
// Loan, Computational Frameworks for the Fast Fourier Transform, SIAM 1992, section 1.7. One
// work-item transforms width() lines side by side, so that vectors run over lines.
struct FftKernel {
  graft_dtype part = GRAFT_FLOAT32;
  // For GPU-like devices, which keep a work-item's arrays for all that they can run at once: 132
  // compute units of 2048 work-items keep 281 MB for the 1 KiB that a short line takes.
  bool single = false;

  int64_t longest() const { return single ? 64 : 1024; }  // numbers of a line
  int64_t width() const { return single ? 1 : part == GRAFT_FLOAT32 ? 16 : 8; }
  std::string key() const;
  ir::Kernel build() const;
  // The launch's arguments in the order of the parameters; the grid is put into grid.
  void append(Arguments& arguments, const FftLaunch& launch, uint64_t& grid) const;
};

}  // namespace graft
