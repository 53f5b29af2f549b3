// src/kernels/sort/top_k.cpp: the first elements of lines, without sorting what is far from them.
#include <string>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/copy.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/sort/key.h"
#include "kernels/sort/sort.h"
#include "kernels/tensor/line_view.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kMostFiltered = 64;  // a larger k sorts whole lines
constexpr int64_t kBlock = 64;

// Keeps the best keys so far in order, with their positions. Blocks of the line are looked at as a
// whole: only one that holds a key below the last of the best is looked at key by key.
class TopKernel {
 public:
  TopKernel(Builder& b, graft_dtype dtype, bool largest)
      : b_(b),
        dtype_(dtype),
        largest_(largest),
        values_(b.write(key_storage(dtype))),
        indices_(b.write(GRAFT_INT64)),
        input_(b.read(key_storage(dtype))),
        rows_(b.index()),
        per_item_(b.index()),
        n_(b.index()),
        k_(b.index()),
        block_(b, key_type(dtype), kBlock),
        best_(b, key_type(dtype), kMostFiltered),
        positions_(b, Type::kI64, kMostFiltered) {}

  void build() {
    each_line(b_, rows_, per_item_, [&](Value row) {
      const Variable count(b_.i64(0)), limit(b_.constant(key_type(dtype_), 0));
      b_.loop(
          b_.i64(0), n_, [&](Value first) { look_at(row * n_ + first, first, count, limit); },
          b_.i64(kBlock));
      b_.vector_loop(b_.i64(0), k_, [&](Value i) {
        const Value position = positions_.load(i);
        indices_.store(row * k_ + i, position);
        values_.store(row * k_ + i, input_.load(row * n_ + position));
      });
    });
  }

 private:
  void look_at(Value base, Value first, const Variable& count, const Variable& limit) {
    const Value width = ir::minimum(n_ - first, b_.i64(kBlock));
    b_.vector_loop(b_.i64(0), width, [&](Value i) {
      block_.store(i, sort_key(input_.load(base + i), dtype_, largest_));
    });
    const Value smallest = ir::reduce(
        block_.load(b_.i64(0)), b_.i64(0), width, [&](Value i) { return block_.load(i); },
        [](Value a, Value b) { return ir::minimum(a, b); }, 16);
    b_.if_((count.get() < k_) | (smallest < limit.get()), [&] {
      b_.loop(b_.i64(0), width, [&](Value i) {
        const Value key = block_.load(i);
        b_.if_((count.get() < k_) | (key < limit.get()), [&] {
          insert(key, first + i, count);
          limit = best_.load(k_ - 1);
        });
      });
    });
  }

  // Behind the keys that are not above it; the last of k is pushed out.
  void insert(Value key, Value position, const Variable& count) {
    const Value last = ir::minimum(count.get(), k_ - 1);
    const Variable place(last);
    b_.loop(b_.i64(0), last, [&](Value) {
      const Value before = place.get() - 1, other = best_.load(before);
      b_.break_if(other <= key);
      best_.store(place.get(), other);
      positions_.store(place.get(), positions_.load(before));
      place = before;
    });
    best_.store(place.get(), key);
    positions_.store(place.get(), position);
    count = last + 1;
  }

  Builder& b_;
  graft_dtype dtype_;
  bool largest_;
  Address values_, indices_, input_;
  Value rows_, per_item_, n_, k_;
  Lanes block_, best_, positions_;
};

std::string key_of(graft_dtype dtype, bool largest) {
  return std::string(largest ? "top_k_largest_" : "top_k_smallest_") + name_of(dtype);
}

ir::Kernel build(const std::string& name, graft_dtype dtype, bool largest) {
  Builder b(name);
  TopKernel(b, dtype, largest).build();
  return b.finish();
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  const std::string key = key_of(GRAFT_FLOAT32, true);
  add(key, [=] { return build(key, GRAFT_FLOAT32, true); });
});

// Contiguous lines: the first k of input's, sorted, become the lines of values and indices.
void filter(Stream& stream, const TensorView& values, const TensorView& indices,
            const TensorView& input, bool largest) {
  const int64_t n = input.sizes[input.rank - 1], k = values.sizes[values.rank - 1];
  const WorkSplit split = split_work(input.count() / n, n + k * kBlock);
  Arguments arguments;
  arguments.write(values).write(indices).read(input);
  arguments.index(split.lines).index(split.per_item).index(n).index(k);
  const std::string key = key_of(input.dtype, largest);
  launch_built(stream, key, split.grid, arguments, build, input.dtype, largest);
}

// Sorts whole lines and copies their beginnings.
void sort_all(Stream& stream, const TensorView& values, const TensorView& indices,
              const TensorView& input, bool largest) {
  const int last = input.rank - 1;
  const ScratchTensor sorted(stream, input, input.dtype), places(stream, input, GRAFT_INT64);
  TensorView all = sorted.view(), all_places = places.view();
  sort(stream, all, all_places, input, last, largest);
  all.sizes[last] = all_places.sizes[last] = values.sizes[last];
  copy(stream, values, all);
  copy(stream, indices, all_places);
}

}  // namespace

void top_k(Stream& stream, const TensorView& values, const TensorView& indices,
           const TensorView& input, int dim, bool largest) {
  if (offer(stream, Operation::top_k, writes(values, indices), reads(input),
            integers(dim, largest)))
    return;
  require_order(input.dtype, "topk");
  if (values.count() == 0) return;
  const TensorView lines = with_lines_last(input, dim);
  const TensorView first = with_lines_last(values, dim), places = with_lines_last(indices, dim);
  if (first.sizes[first.rank - 1] > kMostFiltered) {
    return sort_all(stream, first, places, lines, largest);
  }
  const StagedInput from(stream, lines);
  StagedOutput to(stream, first), found(stream, places);
  filter(stream, to.view(), found.view(), from.view(), largest);
  to.finish();
  found.finish();
}

}  // namespace graft
