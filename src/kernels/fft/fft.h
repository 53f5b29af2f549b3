// src/kernels/fft/fft.h: discrete Fourier transforms.
#pragma once

#include <span>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// X[k] = scale * sum over j of x[j] exp(-2 pi i (k . j / n)) along the dimensions dims, each of
// which has at least one number; exp(+2 pi i ...) where backward is set. Any strides; outputs may
// not overlap inputs. float32 with complex64, float64 with complex128. Every length: products of
// primes up to 61 directly, others as convolutions. Errors grow as the logarithm of the length.
// Throws Error INVALID_ARGUMENT for sizes or dtypes that do not fit, UNSUPPORTED for other dtypes.

// Complex or real input, complex output of the same sizes.
GRAFT_EXPORT void fft(Stream& stream, const TensorView& output, const TensorView& input,
                      std::span<const int> dims, bool backward, double scale);

// Real input; of the last of dims the output has the first n / 2 + 1 numbers, which say all: the
// others are their conjugates.
GRAFT_EXPORT void fft_from_real(Stream& stream, const TensorView& output, const TensorView& input,
                                std::span<const int> dims, double scale);

// The way back: real output of the n of its sizes, from n / 2 + 1 numbers of the last of dims.
// Runs backwards. Imaginary parts that no real signal has are not looked at.
GRAFT_EXPORT void fft_to_real(Stream& stream, const TensorView& output, const TensorView& input,
                              std::span<const int> dims, double scale);

}  // namespace graft
