// src/kernels/detection/box_suppression.cpp: which of several boxes that overlap are kept.
#include "kernels/detection/box_suppression.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "kernels/detection/exact_product.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/fill.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kBits = 32;                      // boxes of a word
constexpr int64_t kWords = 8;                      // words of a line
constexpr int64_t kMaskBytes = int64_t{64} << 20;  // of one pass over rows

struct Box {
  Value x1, y1, x2, y2;

  Value area() const { return exact_product(x2 - x1, y2 - y1); }
};

Box load(const Address& boxes, Value n, Value i) {
  return {boxes.load(i), boxes.load(n + i), boxes.load(n * 2 + i), boxes.load(n * 3 + i)};
}

// Of numbers, as std::max and std::min: a where either is no number.
Value larger(Value a, Value b) { return select(a < b, b, a); }
Value smaller(Value a, Value b) { return select(b < a, b, a); }

Value overlap(const Box& a, const Box& b) {
  const auto length = [](Value from, Value to) { return larger(like(from, 0), to - from); };
  const Value width = length(larger(a.x1, b.x1), smaller(a.x2, b.x2));
  const Value height = length(larger(a.y1, b.y1), smaller(a.y2, b.y2));
  const Value both = exact_product(width, height);
  return both / (a.area() + b.area() - both);
}

// masks[row][word]: bit k is set where box row + first overlaps box 32 * word + k, which comes
// after it. Words before that of the row's box stay unwritten.
ir::Kernel build_masks(const std::string& key, graft_dtype dtype) {
  Builder b(key);
  const Address masks = b.write(GRAFT_INT32), boxes = b.read(dtype);
  const Value lines = b.index(), per_item = b.index(), n = b.index(), words = b.index();
  const Value blocks = b.index(), first = b.index(), threshold = b.scalar(dtype);
  each_line(b, lines, per_item, [&](Value line) {
    const Value row = line / blocks, i = first + row, start = line % blocks * kWords;
    const Box one = load(boxes, n, i);
    b.loop(ir::maximum(start, i / kBits), ir::minimum(start + kWords, words), [&](Value word) {
      const auto bit = [&](Value k) {
        const Value j = word * kBits + k, at = ir::minimum(j, n - 1);
        const Value counts = (j > i) & (j < n) & (overlap(one, load(boxes, n, at)) > threshold);
        const Value set = b.constant(Type::kI32, 1) << cast(Type::kI32, k);
        return select(counts, set, 0);
      };
      masks.store(row * words + word, ir::reduce(b.constant(Type::kI32, 0), b.i64(0), b.i64(kBits),
                                                 bit, std::bit_or<>(), kBits));
    });
  });
  return b.finish();
}

// One work-item: goes through the rows in order with the bits of what is suppressed so far.
ir::Kernel build_sweep(const std::string& key) {
  Builder b(key);
  const Address kept = b.update(GRAFT_BOOL), suppressed = b.update(GRAFT_INT32);
  const Address masks = b.read(GRAFT_INT32);
  const Value first = b.index(), rows = b.index(), words = b.index();
  b.loop(b.i64(0), rows, [&](Value row) {
    const Value i = first + row, word = i / kBits;
    const Value bit = suppressed.load(word) >> cast(Type::kI32, i % kBits) & 1;
    kept.store(i, bit == 0);
    b.if_(bit == 0, [&] {
      b.vector_loop(word, words, [&](Value k) {
        suppressed.store(k, suppressed.load(k) | masks.load(row * words + k));
      });
    });
  });
  return b.finish();
}

// The largest number of the dtype that is not above the threshold: the quotients, numbers of that
// dtype, are above both or above none.
Scalar limit_of(graft_dtype dtype, double threshold) {
  if (dtype == GRAFT_FLOAT64) return Scalar::of(threshold);
  auto limit = static_cast<float>(threshold);
  if (limit > threshold) limit = std::nextafter(limit, -std::numeric_limits<float>::infinity());
  return Scalar::of(limit);
}

std::string masks_key(graft_dtype dtype) {
  return std::string("suppress_boxes_masks_") + name_of(dtype);
}
constexpr const char* kSweep = "suppress_boxes_sweep";

const PackEntry kPacked([](const PackEntry::Sink& add) {
  const std::string key = masks_key(GRAFT_FLOAT32);
  add(key, [key] { return build_masks(key, GRAFT_FLOAT32); });
  add(kSweep, [] { return build_sweep(kSweep); });
});

}  // namespace

void suppress_boxes(Stream& stream, const TensorView& kept, const TensorView& boxes,
                    double threshold) {
  if (offer(stream, Operation::suppress_boxes,
            [&](VendorCall& to) { to.write(kept).read(boxes).numbers({threshold}); }))
    return;
  if (boxes.dtype != GRAFT_FLOAT32 && boxes.dtype != GRAFT_FLOAT64) {
    throw Error(GRAFT_UNSUPPORTED,
                std::string("suppress_boxes: no kernel for ") + name_of(boxes.dtype));
  }
  const int64_t n = boxes.sizes[1], words = (n + kBits - 1) / kBits;
  if (n == 0) return;
  const int64_t most = std::clamp<int64_t>(kMaskBytes / (words * 4), 1, n);
  const auto mask_bytes = static_cast<uint64_t>(most * words * 4);
  const auto word_bytes = static_cast<uint64_t>(words * 4);
  const Workspace masks(stream, mask_bytes), suppressed(stream, word_bytes);
  const TensorView bits{suppressed.address(), GRAFT_INT32, 1, {words}, {1}};
  fill(stream, bits, Scalar::of(int32_t{0}));
  const std::string key = masks_key(boxes.dtype);
  for (int64_t first = 0; first < n; first += most) {
    const int64_t rows = std::min(most, n - first), blocks = (words + kWords - 1) / kWords;
    const WorkSplit split = split_work(rows * blocks, kWords * kBits * 4);
    Arguments comparing, sweeping;
    comparing.address(masks.address(), mask_bytes, GRAFT_ACCESS_WRITE).read(boxes);
    comparing.indices({split.lines, split.per_item, n, words, blocks, first});
    comparing.scalar(limit_of(boxes.dtype, threshold), size_of(boxes.dtype));
    launch_kernel(stream, key, split.grid, comparing,
                  [&] { return build_masks(key, boxes.dtype); });
    sweeping.update(kept).update(bits).address(masks.address(), mask_bytes, GRAFT_ACCESS_READ);
    sweeping.indices({first, rows, words});
    launch_kernel(stream, kSweep, 1, sweeping, [] { return build_sweep(kSweep); });
  }
}

}  // namespace graft
