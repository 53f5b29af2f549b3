// src/kernels/fft/lines.cpp: transforms of lines of any length, made of launches of FftKernel.
#include "kernels/fft/lines.h"

#include <fmt/format.h>

#include "codegen/ops/op_table.h"
#include "kernels/fft/plan.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/copy.h"
#include "kernels/move/fill.h"
#include "kernels/pointwise/pointwise.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

// Fewer lines leave most lanes of a vector idle: then long ones are split, which makes more.
constexpr int64_t kFewLines = 8;
constexpr int64_t kWorthSplitting = 256;

graft_dtype complex_of(graft_dtype part) {
  return part == GRAFT_FLOAT32 ? GRAFT_COMPLEX64 : GRAFT_COMPLEX128;
}

int64_t lines_of(const FftLaunch& lines) {
  return lines.sizes[0] * lines.sizes[1] * lines.sizes[2];
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<std::complex<double>>& numbers) {
  std::vector<std::complex<T>> rounded(numbers.begin(), numbers.end());
  const auto* bytes = reinterpret_cast<const std::byte*>(rounded.data());
  return {bytes, bytes + rounded.size() * sizeof(std::complex<T>)};
}

std::vector<std::complex<double>> roots_of(int64_t length) {
  std::vector<std::complex<double>> roots;
  for (int64_t k = 0; k < length; ++k) roots.push_back(fft_root(k, length));
  return roots;
}

// What results of the first step of a split are multiplied by.
std::vector<std::complex<double>> split_factors(int64_t rows, int64_t columns) {
  std::vector<std::complex<double>> factors;
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t i = 0; i < columns; ++i) factors.push_back(fft_root(k * i, rows * columns));
  }
  return factors;
}

// The spectrum of the chirp that Bluestein's convolution is with, over good for the way back.
std::vector<std::complex<double>> chirp_spectrum(int64_t length, int64_t good, bool backward) {
  const auto chirp = fft_chirp(length, length);
  std::vector<std::complex<double>> around(static_cast<size_t>(good));
  for (size_t k = 0; k < chirp.size(); ++k) {
    const auto value = backward ? chirp[k] : std::conj(chirp[k]);
    around[k] = value;
    if (k > 0) around[around.size() - k] = value;
  }
  auto spectrum = fft_on_host(around);
  for (auto& number : spectrum) number /= static_cast<double>(good);
  return spectrum;
}

}  // namespace

TensorView view_of_side(const FftLaunch& lines, const FftSide& side, graft_dtype part) {
  const int64_t unit = side.part == 0 ? 1 : 2;
  TensorView view{};
  view.address = side.address;
  view.dtype = side.part == 0 ? part : complex_of(part);
  view.rank = 4;
  for (int d = 0; d < 3; ++d) {
    view.sizes[d] = lines.sizes[d];
    view.strides[d] = side.strides[d] / unit;
  }
  view.sizes[3] = side.count;
  view.strides[3] = side.step / unit;
  return view;
}

void make_dense(FftSide& side, const FftLaunch& lines, graft_address address, int64_t count,
                graft_dtype part) {
  side = FftSide{.address = address, .count = count, .plane = side.plane};
  side.bytes = static_cast<uint64_t>(lines_of(lines) * count) * 2 * size_of(part);
  int64_t stride = count * side.step;
  for (int d = 2; d >= 0; --d) {
    side.strides[d] = stride;
    stride *= lines.sizes[d];
  }
}

bool FftLines::direct(int64_t length) const {
  return length == 1 || (length <= kernel_.longest() && !fft_radices(length).empty());
}

TensorView FftLines::dense(graft_address address, int64_t lines, int64_t length) const {
  return {address, complex_of(kernel_.part), 2, {lines, length}, {length, 1}};
}

std::shared_ptr<const DeviceTable> FftLines::table(const std::string& name,
                                                   const std::function<Numbers()>& make) {
  const bool single = kernel_.part == GRAFT_FLOAT32;
  return device_table(stream_, fmt::format("fft_{}_{}", name, name_of(kernel_.part)),
                      [&] { return single ? bytes_of<float>(make()) : bytes_of<double>(make()); });
}

void FftLines::run(const FftLaunch& lines) {
  const int64_t length = lines.length;
  if (length > 1 && fft_radices(length).empty()) return convolve(lines);
  const bool whole = lines.middle == FftMiddle::kNone && lines.in.count == length &&
                     lines.out.count == length && lines.sizes[0] == 1;
  const int64_t rows = whole ? fft_divisor(length, kernel_.longest()) : 1;
  const bool few = lines_of(lines) < kFewLines && length >= kWorthSplitting && rows >= kFewLines;
  if (few || length > kernel_.longest()) return split(lines, rows);
  launch(lines);
}

void FftLines::launch(FftLaunch lines) {
  for (const int radix : fft_radices(lines.length)) {
    lines.radices |= static_cast<int64_t>(radix) << (8 * lines.stages++);
  }
  const int64_t period = lines.length * lines.root_step;
  const auto roots = table(fmt::format("roots_{}", period), [&] { return roots_of(period); });
  lines.roots = roots->address();
  Arguments arguments;
  uint64_t grid = 0;
  kernel_.append(arguments, lines, grid);
  launch_kernel(stream_, kernel_, grid, arguments);
}

// The line as a matrix of rows x columns: its columns first, times factors, then its rows, whose
// results go to memory column by column.
void FftLines::split(const FftLaunch& lines, int64_t rows) {
  const int64_t columns = lines.length / rows, length = lines.length;
  const uint64_t bytes =
      static_cast<uint64_t>(lines_of(lines) * length) * 2 * size_of(kernel_.part);
  const Workspace between(stream_, bytes);
  const int64_t outer = lines.sizes[1], inner = lines.sizes[2];
  const auto factors = table(fmt::format("factors_{}_{}", rows, columns),
                             [&] { return split_factors(rows, columns); });
  FftLaunch first = lines;
  first.scale = 1;
  first.length = rows;
  first.factors = factors->address();
  FftLaunch second = lines;
  second.length = columns;
  for (FftLaunch* step : {&first, &second}) {
    step->sizes[0] = outer;
    step->sizes[1] = inner;
    step->sizes[2] = length / step->length;
  }
  const auto nest = [](FftSide& side, int64_t along, int64_t step, int64_t count) {
    side.strides[0] = side.strides[1];
    side.strides[1] = side.strides[2];
    side.strides[2] = along;
    side.step = step;
    side.count = count;
  };
  nest(first.in, lines.in.step, lines.in.step * columns, rows);
  FftSide dense{.address = between.address(), .bytes = bytes};
  dense.strides[0] = 2 * inner * length;
  dense.strides[1] = 2 * length;
  first.out = second.in = dense;
  first.out.strides[2] = 2;
  first.out.step = 2 * columns;
  first.out.count = rows;
  second.in.strides[2] = 2 * columns;
  second.in.count = columns;
  nest(second.out, lines.out.step, lines.out.step * rows, columns);
  launch(first);
  if (columns <= kernel_.longest()) return launch(second);
  const Workspace after(stream_, bytes);
  FftLaunch flat = second;
  flat.sizes[0] = flat.sizes[1] = 1;
  flat.sizes[2] = outer * inner * rows;
  make_dense(flat.in, flat, between.address(), columns, kernel_.part);
  make_dense(flat.out, flat, after.address(), columns, kernel_.part);
  run(flat);
  TensorView to = view_of_side(second, second.out, kernel_.part);
  copy(stream_, to, contiguous_like(to, after.address(), complex_of(kernel_.part)));
}

void FftLines::convolve(const FftLaunch& lines) {
  const int64_t length = lines.length, count = lines_of(lines);
  const int64_t good = fft_good_length(2 * length - 1);
  const bool backward = lines.in.plane == 1;
  const auto chirp = table(fmt::format("chirp_{}_{}", length, backward), [&] {
    Numbers numbers = fft_chirp(length, length);
    for (auto& number : numbers) number = backward ? std::conj(number) : number;
    return numbers;
  });
  const auto spectrum = table(fmt::format("chirp_spectrum_{}_{}", length, backward),
                              [&] { return chirp_spectrum(length, good, backward); });
  static const Op& product = *find_op("mul");
  const graft_dtype complex = complex_of(kernel_.part);
  const auto multiply = [&](const TensorView& to, const TensorView& from, graft_address factors) {
    TensorView repeated = contiguous_like(from, factors, complex);
    for (int d = 0; d + 1 < from.rank; ++d) repeated.strides[d] = 0;
    const Operand operands[] = {from, repeated};
    pointwise(stream_, product, complex, {&to, 1}, operands);
  };
  const uint64_t bytes = static_cast<uint64_t>(count * good) * 2 * size_of(kernel_.part);
  const Workspace memory(stream_, bytes);
  FftLaunch longer;
  longer.sizes[2] = count;
  longer.length = good;
  for (FftSide* side : {&longer.in, &longer.out}) {
    make_dense(*side, longer, memory.address(), good, kernel_.part);
  }
  const TensorView all = dense(memory.address(), count, good);
  fill(stream_, all, Scalar::of(part_of(complex), 0));
  const auto head = [&](const FftSide& side) {
    TensorView view =
        contiguous_like(view_of_side(lines, side, kernel_.part), memory.address(), complex);
    for (int64_t d = 2, stride = good; d >= 0; stride *= lines.sizes[d--]) view.strides[d] = stride;
    return view;
  };
  multiply(head(lines.in), view_of_side(lines, lines.in, kernel_.part), chirp->address());
  run(longer);
  multiply(all, all, spectrum->address());
  longer.in.plane = longer.out.plane = 1;
  longer.scale = lines.scale;
  run(longer);
  const TensorView result = head(lines.out), to = view_of_side(lines, lines.out, kernel_.part);
  multiply(lines.out.part == 0 ? result : to, result, chirp->address());
  if (lines.out.part == 0) copy(stream_, to, result);
}

}  // namespace graft
