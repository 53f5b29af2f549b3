// src/kernels/reduce/histogram.cpp: counts, or sums of weights, by bin.
#include "kernels/reduce/histogram.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr size_t kMostDimensions = 4;

std::string key_of(const char* what, graft_dtype dtype, const TensorView* weights) {
  std::string key = std::string(what) + "_" + name_of(dtype);
  if (weights != nullptr) key += std::string("_weighted_") + name_of(weights->dtype);
  return key;
}

// What one part of the elements does: clears its bins, then adds to them.
class Part {
 public:
  Part(Builder& b, graft_dtype partial, const TensorView* weights)
      : b_(b),
        partial_(b.update(partial)),
        type_(ir::compute_type(partial)),
        weighted_(weights != nullptr),
        weights_(weighted_ ? b.read(weights->dtype) : Address{}),
        chunk_(b.index()),
        n_(b.index()),
        bins_(b.index()) {}

  // add(i, into): calls into(bin, is counted) for element i.
  template <class Add>
  void each(Add add) {
    const Value base = b_.item() * bins_, begin = b_.item() * chunk_;
    b_.vector_loop(b_.i64(0), bins_,
                   [&](Value i) { partial_.store(base + i, b_.constant(type_, 0)); });
    b_.loop(begin, ir::minimum(begin + chunk_, n_), [&](Value i) {
      add(i, [&](Value bin, Value counted) {
        b_.if_(counted, [&] {
          const Value one = b_.constant(type_, 1);
          const Value weight = weighted_ ? cast(type_, weights_.load(i)) : one;
          partial_.store(base + bin, partial_.load(base + bin) + weight);
        });
      });
    });
  }

 private:
  Builder& b_;
  Address partial_;
  Type type_;
  bool weighted_;
  Address weights_;
  Value chunk_, n_, bins_;
};

// The arguments of Part.
void append_part(Arguments& arguments, const TensorView& partial, const TensorView* weights,
                 int64_t n) {
  const int64_t parts = partial.sizes[0];
  arguments.update(partial);
  if (weights != nullptr) arguments.read(*weights);
  arguments.index((n + parts - 1) / parts).index(n).index(partial.sizes[1]);
}

ir::Kernel build_integers(const std::string& name, graft_dtype partial, graft_dtype input,
                          const TensorView* weights) {
  Builder b(name);
  Part part(b, partial, weights);
  const Address from = b.read(input);
  part.each([&](Value i, auto into) { into(cast(Type::kI64, from.load(i)), b.boolean(true)); });
  return b.finish();
}

ir::Kernel build_range(const std::string& name, graft_dtype input) {
  Builder b(name);
  Part part(b, GRAFT_INT64, nullptr);
  const Address from = b.read(input);
  const Value low = b.index(), high = b.index(), bins = b.index();
  part.each([&](Value i, auto into) {
    const Value x = cast(Type::kI64, from.load(i));
    const Value inside = (x >= low) & (x <= high);
    const Value above = select(inside, x - low, 0);
    into(ir::minimum(above * bins / (high - low), bins - 1), inside);
  });
  return b.finish();
}

// One dimension's edges and the way to its bins.
struct Edges {
  Address edges;
  Value bins, steps;

  Value last(Value bin) const { return ir::minimum(bin, bins - 1); }

  // By halving; the first edge is not above x.
  Value searched(Builder& b, Value x) const {
    const Variable low(b.i64(0)), high(bins + 1);
    b.loop(b.i64(0), steps, [&](Value) {
      const Value middle = (low.get() + high.get()) / 2;
      const Value open = low.get() < high.get();
      const Value above = edges.load(ir::minimum(middle, bins)) > x;
      const Value next = select(open & !above, middle + 1, low.get());
      high = select(open & above, middle, high.get());
      low = next;
    });
    return last(low.get() - 1);
  }

  Value divided(Builder& b, Value x, bool checked) const {
    const Value first = edges.load(b.i64(0)), end = edges.load(bins);
    const Value share = (x - first) * cast(x.type(), bins) / (end - first);
    const Value near = ir::maximum(ir::minimum(cast(Type::kI64, share), bins - 1), b.i64(0));
    if (!checked) return near;
    const Value below = (x < edges.load(near)) & (near > 0);
    const Value beyond = (x >= edges.load(near + 1)) & (near < bins - 1);
    return near - cast(Type::kI64, below) + cast(Type::kI64, beyond);
  }
};

ir::Kernel build_bins(const std::string& name, graft_dtype input, size_t dimensions,
                      const TensorView* weights, BinSearch search) {
  Builder b(name);
  Part part(b, GRAFT_FLOAT64, weights);
  const Address from = b.read(input);
  std::vector<Edges> edges;
  for (size_t d = 0; d < dimensions; ++d) {
    const Address address = b.read(input);
    const Value bins = b.index();
    edges.push_back({address, bins, b.index()});
  }
  part.each([&](Value row, auto into) {
    Value bin = b.i64(0), counted = b.boolean(true);
    for (size_t d = 0; d < dimensions; ++d) {
      const Edges& axis = edges[d];
      const Value x = from.load(row * static_cast<int64_t>(dimensions) + static_cast<int64_t>(d));
      const Value inside = (x >= axis.edges.load(b.i64(0))) & (x <= axis.edges.load(axis.bins));
      // What is outside, and NaN, takes the way of the first edge, and is not counted.
      const Value safe = select(inside, x, axis.edges.load(b.i64(0)));
      const Value at = search == BinSearch::kEdges
                           ? axis.searched(b, safe)
                           : axis.divided(b, safe, search == BinSearch::kEvenChecked);
      bin = bin * axis.bins + at;
      counted = counted & inside;
    }
    into(bin, counted);
  });
  return b.finish();
}

const PackEntry kPackedHistogram([](const PackEntry::Sink& add) {
  const std::string key = key_of("count_integers", GRAFT_INT64, nullptr);
  add(key, [=] { return build_integers(key, GRAFT_INT64, GRAFT_INT64, nullptr); });
});

}  // namespace

int64_t histogram_parts(int64_t count, int64_t bins) {
  return std::clamp<int64_t>(count / std::max<int64_t>(32768, 4 * bins), 1, 64);
}

void count_integers(Stream& stream, const TensorView& partial, const TensorView& input,
                    const TensorView* weights) {
  if (offer(stream, Operation::count_integers, writes(partial), reads(input, weights))) return;
  if (partial.count() == 0) return;
  Arguments arguments;
  append_part(arguments, partial, weights, input.count());
  arguments.read(input);
  const std::string key = key_of("count_integers", input.dtype, weights);
  launch_built(stream, key, partial.sizes[0], arguments, build_integers, partial.dtype, input.dtype,
               weights);
}

void count_integers_in_range(Stream& stream, const TensorView& partial, const TensorView& input,
                             int64_t low, int64_t high) {
  if (offer(stream, Operation::count_integers_in_range, writes(partial), reads(input),
            integers(low, high)))
    return;
  if (partial.count() == 0) return;
  Arguments arguments;
  append_part(arguments, partial, nullptr, input.count());
  arguments.read(input).index(low).index(high).index(partial.sizes[1]);
  const std::string key = key_of("count_integers_in_range", input.dtype, nullptr);
  launch_built(stream, key, partial.sizes[0], arguments, build_range, input.dtype);
}

void count_in_bins(Stream& stream, const TensorView& partial, const TensorView& input,
                   std::span<const TensorView> edges, const TensorView* weights, BinSearch search) {
  if (offer(stream, Operation::count_in_bins, writes(partial), reads(input, weights, edges),
            integers(search)))
    return;
  if (partial.count() == 0) return;
  if (edges.size() > kMostDimensions || !is_floating(input.dtype)) {
    throw Error(GRAFT_UNSUPPORTED, "histogram: " + std::to_string(edges.size()) +
                                       " dimensions of " + name_of(input.dtype) +
                                       "; at most 4 of a floating dtype are supported");
  }
  Arguments arguments;
  append_part(arguments, partial, weights, input.sizes[0]);
  arguments.read(input);
  for (const TensorView& edge : edges) {
    const int64_t bins = edge.sizes[0] - 1;
    arguments.read(edge).index(bins).index(std::bit_width(static_cast<uint64_t>(bins + 1)));
  }
  const char* names[] = {"bins_by_edges", "bins_evenly", "bins_evenly_checked"};
  const std::string key = key_of(names[static_cast<size_t>(search)], input.dtype, weights) + "_" +
                          std::to_string(edges.size());
  launch_built(stream, key, partial.sizes[0], arguments, build_bins, input.dtype, edges.size(),
               weights, search);
}

}  // namespace graft
