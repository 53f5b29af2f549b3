// src/kernels/fft/lines.h: transforms of lines of any length, made of launches of FftKernel.
#pragma once

#include <complex>
#include <vector>

#include "kernels/fft/kernel.h"
#include "kernels/launch/device_table.h"
#include "kernels/launch/lanes.h"
#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft {

// Runs launches whose sides, sizes, middle and scale are filled in; the rest is found here. A
// length that one launch does not take is split in two (Bailey, FFTs in external or hierarchical
// memory, Journal of Supercomputing 4 (1990) 23) or, with a large prime factor, becomes a
// convolution of a better length (Bluestein, IEEE Transactions on Audio and Electroacoustics 18
// (1970) 451). The output may be the input.
class FftLines {
 public:
  FftLines(Stream& stream, graft_dtype part)
      : stream_(stream), kernel_{part, is_gpu_like(stream.device())} {}

  // Whether one launch transforms lines of that length.
  bool direct(int64_t length) const;

  // REQUIRES: lines.sizes[0] is 1 and both counts are the length, or direct(lines.length); a middle
  // only with the latter. Both planes are 0, or both are 1.
  void run(const FftLaunch& lines);

 private:
  using Numbers = std::vector<std::complex<double>>;

  void launch(FftLaunch lines);
  void split(const FftLaunch& lines, int64_t rows);
  void convolve(const FftLaunch& lines);
  std::shared_ptr<const DeviceTable> table(const std::string& name,
                                           const std::function<Numbers()>& make);
  TensorView dense(graft_address address, int64_t lines, int64_t length) const;

  Stream& stream_;
  const FftKernel kernel_;
};

// The side as a view [sizes[0], sizes[1], sizes[2], count] of complex numbers, or of real ones.
TensorView view_of_side(const FftLaunch& lines, const FftSide& side, graft_dtype part);

// The same numbers without gaps, one line after the other.
void make_dense(FftSide& side, const FftLaunch& lines, graft_address address, int64_t count,
                graft_dtype part);

}  // namespace graft
