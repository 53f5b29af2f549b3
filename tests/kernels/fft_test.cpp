// tests/kernels/fft_test.cpp: transforms against the sums that define them.
#include "kernels/fft/fft.h"

#include <cmath>
#include <complex>

#include "codegen/dialects/private_arrays.h"
#include "kernels/fft/kernel.h"
#include "kernels/fft/plan.h"
#include "kernels/launch/device_table.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

// labels of the file: optimised
namespace {

using namespace graft;
using namespace graft::test;
using Complex = std::complex<double>;
using Signal = std::vector<Complex>;

// [lines, length] of complex numbers, or of real ones, as the parts that DeviceTensor moves.
struct Numbers {
  int64_t lines, length;
  Signal values;

  static Numbers seeded(int64_t lines, int64_t length, graft_dtype dtype, unsigned seed = 3) {
    const graft_dtype part = part_of(dtype);
    const auto parts = numbers(2 * lines * length, seed, -1, 1, part);
    Numbers made{lines, length, {}};
    for (size_t i = 0; i < parts.size(); i += 2) {
      made.values.emplace_back(parts[i], is_complex(dtype) ? parts[i + 1] : 0);
    }
    return made;
  }
  Complex at(int64_t line, int64_t k) const {
    return values[static_cast<size_t>(line * length + k)];
  }
};

// The sums themselves, in double.
Numbers transformed(const Numbers& x, int64_t count, bool backward, double scale) {
  Numbers y{x.lines, count, {}};
  Signal roots;
  for (int64_t k = 0; k < x.length; ++k) {
    const Complex root = fft_root(k, x.length);
    roots.push_back(backward ? std::conj(root) : root);
  }
  for (int64_t line = 0; line < x.lines; ++line) {
    for (int64_t k = 0; k < count; ++k) {
      Complex sum = 0;
      for (int64_t j = 0; j < x.length; ++j) {
        sum += x.at(line, j) * roots[static_cast<size_t>(j * k % x.length)];
      }
      y.values.push_back(sum * scale);
    }
  }
  return y;
}

// Memory of [lines, length] numbers with gaps: every step-th number of a line, every element of it
// line_stride apart.
class Side {
 public:
  Side(int64_t lines, int64_t length, int64_t line_stride, int64_t step, graft_dtype dtype)
      : lines_(lines),
        length_(length),
        line_stride_(line_stride),
        step_(step),
        unit_(is_complex(dtype) ? 2 : 1),
        memory_({(lines * line_stride + length * step) * unit_}, part_of(dtype)),
        view_(memory_.as({lines, length}, {line_stride, step})) {
    view_.dtype = dtype;
    held_.assign(static_cast<size_t>((lines * line_stride + length * step) * unit_), 7);
    memory_.set(held_);
  }
  const TensorView& view() const { return view_; }
  Side& set(const Numbers& x) {
    each(x, [&](size_t at, double part) { held_[at] = part; });
    memory_.set(held_);
    return *this;
  }
  // Equal to x where the view lies, untouched elsewhere.
  testing::AssertionResult holds(const Numbers& x, double error) {
    each(x, [&](size_t at, double part) { held_[at] = part; });
    return near(memory_.get(), held_, 0, error);
  }

 private:
  template <class Body>
  void each(const Numbers& x, Body body) {
    for (int64_t line = 0; line < lines_; ++line) {
      for (int64_t k = 0; k < length_; ++k) {
        const auto at = static_cast<size_t>((line * line_stride_ + k * step_) * unit_);
        body(at, x.at(line, k).real());
        if (unit_ == 2) body(at + 1, x.at(line, k).imag());
      }
    }
  }

  const int64_t lines_, length_, line_stride_, step_, unit_;
  DeviceTensor memory_;
  TensorView view_;
  std::vector<double> held_;
};

// The error of sums of so many numbers of size 1, generously.
double error_of(graft_dtype dtype, int64_t length) {
  const double one = part_of(dtype) == GRAFT_FLOAT32 ? 1.2e-7 : 2.3e-16;
  return 4 * one * std::sqrt(static_cast<double>(length)) * (2 + std::log2(length));
}

const int kAlong[] = {1};
constexpr graft_dtype kComplex[] = {GRAFT_COMPLEX64, GRAFT_COMPLEX128};

// Butterflies of every radix, primes that are summed, primes that are not, splits, one number.
const int64_t kLengths[] = {1,  2,  3,  4,  5,   6,   7,   8,   9,   12,   15,   16,  17,
                            30, 61, 64, 67, 100, 122, 134, 256, 512, 1000, 1009, 1024};

void expect_complex(int64_t lines, int64_t length, bool side_by_side, graft_dtype dtype) {
  const Numbers x = Numbers::seeded(lines, length, dtype);
  const int64_t stride = side_by_side ? 1 : length + 3, step = side_by_side ? lines + 1 : 1;
  for (const bool backward : {false, true}) {
    Side from(lines, length, stride, step, dtype), to(lines, length, stride, step, dtype);
    from.set(x);
    fft(stream(), to.view(), from.view(), kAlong, backward, 0.5);
    EXPECT_TRUE(to.holds(transformed(x, length, backward, 0.5), error_of(dtype, length)))
        << lines << " lines of " << length << (side_by_side ? " side by side " : " ")
        << name_of(dtype) << (backward ? " backward" : "");
  }
}

TEST(Fft, EveryKindOfLength) {
  for (const graft_dtype dtype : kComplex) {
    for (const int64_t length : kLengths) {
      expect_complex(3, length, false, dtype);
      if (length <= 134) expect_complex(37, length, true, dtype);
    }
  }
}

TEST(Fft, RealNumbersThatAreOne) {
  for (const int64_t length : {2, 8, 9, 512, 1024, 4096}) {
    DeviceTensor number({3}, GRAFT_FLOAT32), parts({3, length / 2 + 1, 2}, GRAFT_FLOAT32);
    number.set({1, -2, 0.5});
    TensorView to = parts.as({3, length / 2 + 1}, {length / 2 + 1, 1});
    to.dtype = GRAFT_COMPLEX64;
    fft_from_real(stream(), to, number.as({3, length}, {1, 0}), kAlong, 1);
    std::vector<double> expected(static_cast<size_t>(parts.view().count()));
    const auto n = static_cast<double>(length);
    for (int64_t line = 0; line < 3; ++line) {
      expected[static_cast<size_t>(line * (length / 2 + 1) * 2)] = n * number.get()[line];
    }
    EXPECT_TRUE(near(parts.get(), expected, 1e-6, 1e-6 * n)) << length;
  }
}

TEST(Fft, ManyLines) {
  expect_complex(35, 96, false, GRAFT_COMPLEX64);
  expect_complex(16, 60, true, GRAFT_COMPLEX64);
}

TEST(Fft, RealInputAndItsHalfSpectrum) {
  for (const graft_dtype part : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    const graft_dtype dtype = part == GRAFT_FLOAT32 ? GRAFT_COMPLEX64 : GRAFT_COMPLEX128;
    for (const int64_t length : kLengths) {
      for (const bool side_by_side : {false, true}) {
        const int64_t lines = length > 200 ? 2 : 19, half = length / 2 + 1;
        const int64_t step = side_by_side ? lines : 1, apart = side_by_side ? 1 : length + 1;
        const Numbers x = Numbers::seeded(lines, length, part);
        const Numbers whole = transformed(x, length, false, 1);
        const Numbers spectrum = transformed(x, half, false, 1);
        Side from(lines, length, apart, step, part), back(lines, length, apart, step, part);
        Side all(lines, length, apart, step, dtype), to(lines, half, apart, step, dtype);
        from.set(x);
        fft(stream(), all.view(), from.view(), kAlong, false, 1);
        EXPECT_TRUE(all.holds(whole, error_of(dtype, length))) << length;
        fft_from_real(stream(), to.view(), from.view(), kAlong, 1);
        EXPECT_TRUE(to.holds(spectrum, error_of(dtype, length))) << length;
        fft_to_real(stream(), back.view(), to.view(), kAlong, 1 / static_cast<double>(length));
        EXPECT_TRUE(back.holds(x, error_of(dtype, length))) << length;
      }
    }
  }
}

TEST(Fft, ImaginaryPartsThatNoSignalHas) {
  for (const int64_t length : {2, 5, 8, 134}) {
    const int64_t half = length / 2 + 1;
    Numbers x = Numbers::seeded(1, half, GRAFT_COMPLEX128);
    Side from(1, half, half, 1, GRAFT_COMPLEX128), to(1, length, length, 1, GRAFT_FLOAT64);
    from.set(x);
    fft_to_real(stream(), to.view(), from.view(), kAlong, 1);
    Numbers whole{1, length, {}};
    for (int64_t k = 0; k < length; ++k) {
      Complex value = k < half ? x.at(0, k) : std::conj(x.at(0, length - k));
      if (k == 0 || 2 * k == length) value = value.real();
      whole.values.push_back(value);
    }
    EXPECT_TRUE(to.holds(transformed(whole, length, true, 1), 1e-12)) << length;
  }
}

// Sums over long lines take too long: a pure tone has one peak, and the way back gives the signal.
TEST(Fft, LongLines) {
  for (const int64_t length : {int64_t{4096}, int64_t{1} << 20, int64_t{1} << 21, int64_t{65537}}) {
    Numbers tone{1, length, {}}, peak{1, length, Signal(static_cast<size_t>(length))};
    const int64_t pitch = length / 3;
    for (int64_t j = 0; j < length; ++j) {
      tone.values.push_back(std::conj(fft_root(j * pitch, length)));
    }
    peak.values[static_cast<size_t>(pitch)] = static_cast<double>(length);
    Side from(1, length, length, 1, GRAFT_COMPLEX128), to(1, length, length, 1, GRAFT_COMPLEX128);
    from.set(tone);
    fft(stream(), to.view(), from.view(), kAlong, false, 1);
    EXPECT_TRUE(to.holds(peak, 1e-6)) << length;
    fft(stream(), from.view(), to.view(), kAlong, true, 1 / static_cast<double>(length));
    EXPECT_TRUE(from.holds(tone, 1e-12)) << length;
  }
}

TEST(Fft, LongRealLines) {
  for (const int64_t length : {3000, 4099, 5000}) {
    const int64_t half = length / 2 + 1;
    const Numbers x = Numbers::seeded(2, length, GRAFT_FLOAT64);
    Side from(2, length, length, 1, GRAFT_FLOAT64), back(2, length, length, 1, GRAFT_FLOAT64);
    Side to(2, half, half, 1, GRAFT_COMPLEX128);
    from.set(x);
    fft_from_real(stream(), to.view(), from.view(), kAlong, 1);
    EXPECT_TRUE(to.holds(transformed(x, half, false, 1), 1e-10)) << length;
    fft_to_real(stream(), back.view(), to.view(), kAlong, 1 / static_cast<double>(length));
    EXPECT_TRUE(back.holds(x, 1e-12)) << length;
  }
}

TEST(Fft, SeveralDimensionsOfAnyOrder) {
  const int64_t a = 3, b = 4, c = 5, d = 6;
  const std::vector<double> x = numbers(a * b * c * d * 2, 9, -1, 1);
  DeviceTensor from({a * b * c * d * 2}, GRAFT_FLOAT64), to({a * b * c * d * 2}, GRAFT_FLOAT64);
  from.set(x);
  // Dimensions b, d, a, c of memory that holds a, b, c, d.
  TensorView in = from.as({b, d, a, c}, {c * d, 1, b * c * d, d}), out = to.as({b, d, a, c}, {});
  in.dtype = out.dtype = GRAFT_COMPLEX128;
  out = contiguous_like(in, out.address, out.dtype);
  const int dims[] = {0, 2};
  fft(stream(), out, in, dims, false, 1);
  std::vector<double> expected;
  for (int64_t kb = 0; kb < b; ++kb) {
    for (int64_t id = 0; id < d; ++id) {
      for (int64_t ka = 0; ka < a; ++ka) {
        for (int64_t ic = 0; ic < c; ++ic) {
          Complex sum = 0;
          for (int64_t ib = 0; ib < b; ++ib) {
            for (int64_t ia = 0; ia < a; ++ia) {
              const auto at = static_cast<size_t>(2 * (((ia * b + ib) * c + ic) * d + id));
              sum += Complex(x[at], x[at + 1]) * fft_root(ib * kb, b) * fft_root(ia * ka, a);
            }
          }
          expected.push_back(sum.real());
          expected.push_back(sum.imag());
        }
      }
    }
  }
  EXPECT_TRUE(near(to.get(), expected, 0, 1e-13));
}

TEST(Fft, RefusesWhatDoesNotFit) {
  DeviceTensor real({4, 6}, GRAFT_FLOAT32), half({4, 6}, GRAFT_FLOAT16);
  TensorView complex = real.as({4, 3}, {3, 1});
  complex.dtype = GRAFT_COMPLEX64;
  EXPECT_THROW(fft(stream(), complex, real.view(), kAlong, false, 1), Error);
  EXPECT_THROW(fft_from_real(stream(), complex, real.view(), kAlong, 1), Error);
  EXPECT_THROW(fft(stream(), half.view(), half.view(), kAlong, false, 1), Error);
}

TEST(Fft, OldTablesAreDropped) {
  const int64_t before = device().allocator().statistics().allocated_bytes.all().current;
  for (int i = 0; i < 40; ++i) {
    const auto table = device_table(stream(), "fft_test_" + std::to_string(i),
                                    [] { return std::vector<std::byte>(4 << 20); });
    EXPECT_EQ(table->bytes(), 4u << 20);
  }
  EXPECT_LE(device().allocator().statistics().allocated_bytes.all().current - before, 68 << 20);
}

// A GPU keeps the arrays of all work-items that it can run at once: an H200 refuses 256 KiB of
// each.
TEST(FftKernel, GpusKeepSmallArrays) {
  for (const graft_dtype part : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    EXPECT_LE(ir::private_bytes(FftKernel{part, true}.build()), ir::kSharedStack);
  }
}

TEST(FftPlan, RadicesMakeTheLength) {
  for (int64_t length = 1; length <= 1024; ++length) {
    int64_t product = 1;
    const std::vector<int> radices = fft_radices(length);
    for (const int radix : radices) product *= radix;
    EXPECT_TRUE(radices.empty() || product == length) << length;
    EXPECT_LE(radices.size(), 8u) << length;
  }
  EXPECT_TRUE(fft_radices(67).empty());
  EXPECT_EQ(fft_good_length(1009 * 2 - 1), 2025);
  EXPECT_EQ(fft_divisor(1 << 20, 1024), 1024);
}

}  // namespace
