// src/kernels/random/random.h: random numbers from Philox 4x32-10, equal on every driver.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// The mapping, part of the contract: elements are counted in row-major order of the output's
// sizes. With 32-bit draws element i takes word i % 4 of the block with counter
// {low, high of offset + i / 4, 0, 0} and key {low, high of seed}; with 64-bit draws (float64,
// integer ranges above 2^32) words 2 (i % 2) and 2 (i % 2) + 1 (low, high) of block offset + i / 2.
// So words and uniforms are equal bit for bit for every vector width, thread count and driver.
struct Philox {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

// The four words of the block with counter offset + block, by the host.
GRAFT_EXPORT std::array<uint32_t, 4> philox_words(Philox philox, uint64_t block);

// Dropout keeps an element whose word is not below this; with p = 1 no word is.
constexpr uint64_t dropout_threshold(double p) { return static_cast<uint64_t>(p * 0x1p32); }

// How far the caller advances offset after drawing count elements of any kind.
constexpr uint64_t philox_increment(uint64_t count) { return count / 2 + 1; }

// Outputs have any strides and a floating dtype unless stated otherwise.

// Uniform in [from, to): 24 random bits for float32 and narrower, 53 for float64; a value that
// rounds to `to` becomes from.
GRAFT_EXPORT void uniform(Stream& stream, const TensorView& output, Philox philox, double from,
                          double to);

// Box-Muller on neighbouring words (2j, 2j + 1); within 4 ULP of the formula in float32 (scaled by
// the largest term), the same in float64.
GRAFT_EXPORT void normal(Stream& stream, const TensorView& output, Philox philox, double mean,
                         double deviation);

// -log(1 - u) / lambda.
GRAFT_EXPORT void exponential(Stream& stream, const TensorView& output, Philox philox,
                              double lambda);

// median + sigma tan(pi (u - 1/2)).
GRAFT_EXPORT void cauchy(Stream& stream, const TensorView& output, Philox philox, double median,
                         double sigma);

// The exponential of normal().
GRAFT_EXPORT void log_normal(Stream& stream, const TensorView& output, Philox philox, double mean,
                             double deviation);

// The number of trials up to the first success, 1 or more, of probability p in (0, 1):
// ceil(log(u) / log(1 - p)). Any dtype of output but bool and complex; integers draw as float64 (as
// float32 on devices that lack it).
GRAFT_EXPORT void geometric(Stream& stream, const TensorView& output, Philox philox, double p);

// 1 with probability p, else 0; any dtype of output.
GRAFT_EXPORT void bernoulli(Stream& stream, const TensorView& output, Philox philox, double p);
// The same with a probability for each element, a floating view of output's sizes.
GRAFT_EXPORT void bernoulli(Stream& stream, const TensorView& output, Philox philox,
                            const TensorView& probabilities);

// base + word % range, range >= 1 (0 stands for 2^64); any dtype of output.
GRAFT_EXPORT void random_integers(Stream& stream, const TensorView& output, Philox philox,
                                  uint64_t range, int64_t base);

// A random order of 0 .. n-1 in output (rank 1, any integer or floating dtype). One work-item
// shuffles (Fisher-Yates on 64-bit draws modulo the rest), so large n are slow.
GRAFT_EXPORT void random_permutation(Stream& stream, const TensorView& output, Philox philox);

// mask (bool or uint8) = kept with probability 1 - p; output = kept ? input / (1 - p) : 0.
// All three have the same sizes. p = 1 gives zeros.
GRAFT_EXPORT void dropout(Stream& stream, const TensorView& output, const TensorView& mask,
                          const TensorView& input, Philox philox, double p);

// grad_input = mask ? grad_output * scale : 0.
GRAFT_EXPORT void dropout_backward(Stream& stream, const TensorView& grad_input,
                                   const TensorView& grad_output, const TensorView& mask,
                                   double scale);

}  // namespace graft
