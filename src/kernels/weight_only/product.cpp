// src/kernels/weight_only/product.cpp: products with weights of 8 and 4 bits.
#include "kernels/weight_only/product.h"

#include <algorithm>
#include <string>

#include "kernels/launch/workspace.h"
#include "kernels/matmul/matmul.h"
#include "kernels/operation/offer.h"
#include "kernels/tensor/image_views.h"
#include "kernels/weight_only/dequantize.h"
#include "kernels/weight_only/int4_decoding.h"
#include "kernels/weight_only/int8_decoding.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

constexpr int64_t kShallow = 32;  // below it there is too little to sum

[[noreturn]] void refuse(const char* name, const std::string& given, const std::string& expected) {
  throw Error(GRAFT_INVALID_ARGUMENT, std::string(name) + ": got " + given + "; give " + expected);
}

void check(const char* name, const TensorView& output, const TensorView& a,
           const WeightScales& scales) {
  if (!is_floating(a.dtype) || output.dtype != a.dtype) {
    refuse(name, std::string(name_of(a.dtype)) + " and an output of " + name_of(output.dtype),
           "one floating dtype");
  }
  if (output.rank != 2 || a.rank != 2 || output.sizes[0] != a.sizes[0]) {
    refuse(name, "shapes that do not multiply", "a [m, k] and an output [m, n]");
  }
  const int64_t n = output.sizes[1], k = a.sizes[1];
  const auto fits = [&](const TensorView& view) {
    return view.rank == 2 && view.sizes[1] == n && view.sizes[0] * scales.group == k;
  };
  if (scales.group <= 0 || !is_floating(scales.scales.dtype) || !fits(scales.scales) ||
      (scales.zeros != nullptr && !fits(*scales.zeros))) {
    refuse(name, "scales or zeros that do not fit groups of " + std::to_string(scales.group),
           "floating scales [k / group, n] and zeros of the same shape");
  }
}

// Whether the decoding kernels take it.
bool is_decoding(const TensorView& output, const TensorView& a) {
  return output.sizes[0] <= kDecodedRows && a.dtype != GRAFT_FLOAT64 && a.sizes[1] >= kShallow;
}

// Calls decode(output, a) for as many rows as a kernel takes.
template <class Decode>
void decode_rows(const TensorView& output, const TensorView& a, const Decode& decode) {
  for (int64_t first = 0; first < output.sizes[0]; first += kMostRows) {
    const int64_t count = std::min(kMostRows, output.sizes[0] - first);
    decode(part(output, 0, first, count), part(a, 0, first, count));
  }
}

// Multiplies by the numbers of blocks of the weight's rows, whole panels.
void multiply_blocks(Stream& stream, const TensorView& output, const TensorView& a,
                     const TensorView& weight, const WeightScales& scales) {
  const int64_t n = output.sizes[1], k = a.sizes[1];
  const int64_t row_bytes = std::max<int64_t>(1, k) * static_cast<int64_t>(size_of(a.dtype));
  const int64_t most = std::max<int64_t>(1, kDequantizedBytes / row_bytes / kWords) * kWords;
  const Workspace workspace(stream, static_cast<uint64_t>(std::min(n, most) * row_bytes));
  for (int64_t first = 0; first < n; first += most) {
    TensorView numbers = a;
    numbers.address = workspace.address();
    numbers.sizes[0] = std::min(most, n - first);
    numbers.strides[0] = k, numbers.strides[1] = 1;
    if (k > 0) dequantize(stream, numbers, weight, scales, first);
    TensorView turned = numbers;
    std::swap(turned.sizes[0], turned.sizes[1]);
    std::swap(turned.strides[0], turned.strides[1]);
    matmul(stream, part(output, 1, first, numbers.sizes[0]), a, turned);
  }
}

}  // namespace

void int8_weight_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                        const TensorView& weight, const WeightScales& scales) {
  check("int8_weight_matmul", output, a, scales);
  if (weight.dtype != GRAFT_INT8 || weight.rank != 2 || weight.sizes[0] != output.sizes[1] ||
      weight.sizes[1] != a.sizes[1]) {
    refuse("int8_weight_matmul", std::string("a weight of ") + name_of(weight.dtype),
           "int8 [n, k] of the output's n and the first factor's k");
  }
  if (output.count() == 0) return;
  const bool by_row = scales.groups() == 1 && scales.zeros == nullptr;
  const auto call = [&](VendorCall& to) {
    to.write(output).read(a).read(weight);
    if (!by_row) {
      to.read(scales.scales).read(scales.zeros).integers({scales.group});
      return;
    }
    TensorView line = scales.scales;
    line.rank = 1, line.sizes[0] = line.sizes[1], line.strides[0] = line.strides[1];
    to.read(line);
  };
  const Operation operation = by_row ? Operation::int8_weight_matmul : Operation::int8_group_matmul;
  if (scales.scales.dtype == a.dtype && offer(stream, operation, call)) return;
  if (is_decoding(output, a) && fits_int8_decoding(weight, scales)) {
    return decode_rows(output, a, [&](const TensorView& to, const TensorView& from) {
      int8_decoding(stream, to, from, weight, scales);
    });
  }
  multiply_blocks(stream, output, a, weight, scales);
}

void int4_weight_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                        const TensorView& packed, const WeightScales& scales) {
  check("int4_weight_matmul", output, a, scales);
  const int64_t n = output.sizes[1], k = a.sizes[1];
  if (packed.dtype != GRAFT_INT32 || !packed.contiguous() || n % kWords != 0 ||
      k % kNibblesOfWord != 0 || packed.count() * kNibblesOfWord != n * k) {
    refuse("int4_weight_matmul",
           std::to_string(packed.count()) + " " + name_of(packed.dtype) + " as the weight of " +
               std::to_string(n) + " rows of " + std::to_string(k),
           "dense int32 of n k / 8 elements, n and k multiples of 8");
  }
  if (scales.group % kNibblesOfWord != 0) {
    refuse("int4_weight_matmul", "groups of " + std::to_string(scales.group),
           "groups of a multiple of 8");
  }
  if (output.count() == 0) return;
  if (scales.scales.dtype == a.dtype &&
      offer(stream, Operation::int4_weight_matmul, writes(output),
            reads(a, packed, scales.scales, scales.zeros), integers(scales.group)))
    return;
  if (is_decoding(output, a)) {
    return decode_rows(output, a, [&](const TensorView& to, const TensorView& from) {
      int4_decoding(stream, to, from, packed, scales);
    });
  }
  multiply_blocks(stream, output, a, packed, scales);
}

}  // namespace graft
