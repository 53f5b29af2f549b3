// src/kernels/resample/resample.cpp: linear maps along the last dimensions of tensors, one after
// another.
#include "kernels/resample/resample.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/copy.h"
#include "kernels/resample/kernel.h"
#include "kernels/tensor/raw_dtype.h"
#include "runtime/driver/error.h"
#include "runtime/stream/host_callback.h"

namespace graft {
namespace {

// Host memory that commands read, kept until they are done.
class Upload {
 public:
  template <class T>
  void append(const std::vector<T>& numbers) {
    const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
    bytes_->resize((bytes_->size() + 15) / 16 * 16);
    starts_.push_back(bytes_->size());
    sizes_.push_back(numbers.size() * sizeof(T));
    bytes_->insert(bytes_->end(), bytes, bytes + sizes_.back());
  }
  void send(Stream& stream) {
    memory_.emplace(stream, bytes_->size());
    stream.copy(memory_->address(), reinterpret_cast<uint64_t>(bytes_->data()), bytes_->size(),
                GRAFT_HOST_TO_DEVICE);
    host_callback(stream, [bytes = bytes_] {});
  }
  // Adds the part to the arguments. REQUIRES: send was called.
  void read(Arguments& arguments, size_t part) const {
    arguments.address(memory_->address() + starts_[part], sizes_[part], GRAFT_ACCESS_READ);
  }

 private:
  std::shared_ptr<std::vector<std::byte>> bytes_ = std::make_shared<std::vector<std::byte>>();
  std::vector<size_t> starts_, sizes_;
  std::optional<Workspace> memory_;
};

// The bits that weights of at most the given size can be shifted by and stay within 15.
int64_t fixed_bits(const std::vector<double>& weights) {
  double largest = 0;
  for (const double weight : weights) largest = std::max(largest, weight);
  int64_t bits = 0;
  while (bits < 22 && std::lround(largest * static_cast<double>(1 << (bits + 1))) < (1 << 15)) {
    ++bits;
  }
  return bits;
}

std::vector<int32_t> fixed_weights(const std::vector<double>& weights, int64_t bits) {
  std::vector<int32_t> result;
  for (const double weight : weights) {
    const double scaled = weight * static_cast<double>(1 << bits);
    result.push_back(static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
  }
  return result;
}

// A tensor without gaps, as the sizes of its dimensions in the order of memory.
struct Dense {
  graft_address address = 0;
  graft_dtype dtype = GRAFT_FLOAT32;
  std::vector<int64_t> sizes;
  int64_t product(size_t begin, size_t end) const {
    return std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(begin),
                           sizes.begin() + static_cast<std::ptrdiff_t>(end), int64_t{1},
                           std::multiplies<>());
  }
};

// One pass: to differs from from in the length of dimension at.
void pass(Stream& stream, const Dense& to, const Dense& from, size_t at, const LinearMap& map,
          graft_dtype sum) {
  const TapPlanes planes(map);
  const int64_t outer = from.product(0, at), inner = from.product(at + 1, from.sizes.size());
  ResampleKernel kernel;
  kernel.rows = inner >= 8;
  kernel.taps = planes.width <= ResampleKernel::kMostUnrolled ? static_cast<int>(planes.width) : 0;
  kernel.padded = kernel.taps > 0 && planes.padded;
  kernel.fixed = sum == GRAFT_INT32 && from.dtype == GRAFT_UINT8;
  kernel.weighted = kernel.fixed || std::any_of(map.list.begin(), map.list.end(),
                                                [](const Tap& tap) { return tap.weight != 1; });
  kernel.to = to.dtype;
  kernel.from = from.dtype;
  kernel.sum = sum;
  const int64_t bits = kernel.fixed ? fixed_bits(planes.weights) : 1;
  Upload upload;
  upload.append(planes.positions);
  if (kernel.fixed) {
    upload.append(fixed_weights(planes.weights, bits));
  } else if (kernel.weighted && sum == GRAFT_FLOAT64) {
    upload.append(planes.weights);
  } else if (kernel.weighted) {
    upload.append(std::vector<float>(planes.weights.begin(), planes.weights.end()));
  }
  if (kernel.taps == 0) upload.append(planes.counts);
  upload.send(stream);
  const int64_t length = kernel.rows ? inner : map.to;
  const int64_t blocks = (length + ResampleKernel::kBlock - 1) / ResampleKernel::kBlock;
  const int64_t width = std::min(length, ResampleKernel::kBlock) * (kernel.rows ? 1 : inner);
  const WorkSplit split = split_work(outer * (kernel.rows ? map.to : 1) * blocks,
                                     width * std::max<int64_t>(planes.width, 1));
  Arguments arguments;
  const uint64_t written = static_cast<uint64_t>(outer * map.to * inner) * size_of(to.dtype);
  const uint64_t read = static_cast<uint64_t>(outer * map.from * inner) * size_of(from.dtype);
  arguments.address(to.address, written, GRAFT_ACCESS_WRITE);
  arguments.address(from.address, read, GRAFT_ACCESS_READ);
  const size_t parts = 1 + (kernel.weighted ? 1 : 0) + (kernel.taps == 0 ? 1 : 0);
  for (size_t part = 0; part < parts; ++part) upload.read(arguments, part);
  arguments.index(split.lines).index(split.per_item).index(map.to).index(map.from).index(inner);
  arguments.index(blocks).index(bits);
  launch_kernel(stream, kernel, split.grid, arguments);
}

// The dimensions with long strides first.
std::vector<int> memory_order(const TensorView& view) {
  std::vector<int> order(static_cast<size_t>(view.rank));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return view.strides[a] > view.strides[b]; });
  return order;
}

TensorView permuted(const TensorView& view, const std::vector<int>& order) {
  TensorView result = view;
  for (size_t i = 0; i < order.size(); ++i) {
    result.sizes[i] = view.sizes[order[i]];
    result.strides[i] = view.strides[order[i]];
  }
  return result;
}

// Parts of complex numbers as one more dimension.
TensorView in_parts(const TensorView& view) {
  TensorView result = view;
  result.dtype = part_of(view.dtype);
  for (int d = 0; d < view.rank; ++d) result.strides[d] *= 2;
  result.sizes[result.rank] = 2;
  result.strides[result.rank++] = 1;
  return result;
}

class Resampling {
 public:
  Resampling(Stream& stream, graft_dtype between, graft_dtype sum)
      : stream_(stream), between_(between), sum_(sum) {}

  // maps belong to the dimensions from first on; downwards: the last dimension first.
  void run(const TensorView& output, const TensorView& input, std::span<const LinearMap> maps,
           int first, bool downwards) {
    std::vector<int> order = memory_order(output);
    if (!permuted(output, order).contiguous()) std::iota(order.begin(), order.end(), 0);
    const TensorView target = permuted(output, order), source = permuted(input, order);
    const bool direct = target.contiguous();
    Dense now = densely(source);
    std::vector<size_t> passes;
    for (size_t i = 0; i < maps.size(); ++i) {
      const size_t m = maps.size() - 1 - i;
      if (maps[m].to != maps[m].from || !maps[m].is_identity()) passes.push_back(m);
    }
    if (!downwards) {
      std::stable_sort(passes.begin(), passes.end(), [&](size_t a, size_t b) {
        return maps[a].to * maps[b].from < maps[b].to * maps[a].from;
      });
    }
    for (size_t i = 0; i < passes.size(); ++i) {
      const bool last = i + 1 == passes.size();
      const int dimension = first + static_cast<int>(passes[i]);
      const size_t at =
          static_cast<size_t>(std::find(order.begin(), order.end(), dimension) - order.begin());
      Dense next = now;
      next.sizes[at] = maps[passes[i]].to;
      next.dtype = last ? output.dtype : between_;
      next.address = last && direct ? output.address : reserve(next);
      pass(stream_, next, now, at, maps[passes[i]], sum_);
      now = next;
    }
    if (now.address == output.address && !passes.empty()) return;
    copy(stream_, target, contiguous_like(target, now.address, now.dtype));
  }

 private:
  graft_address reserve(const Dense& dense) {
    memory_.push_back(std::make_unique<Workspace>(
        stream_,
        static_cast<uint64_t>(dense.product(0, dense.sizes.size())) * size_of(dense.dtype)));
    return memory_.back()->address();
  }
  Dense densely(const TensorView& view) {
    Dense dense{view.address, view.dtype, {view.sizes, view.sizes + view.rank}};
    if (view.contiguous()) return dense;
    dense.address = reserve(dense);
    copy(stream_, contiguous_like(view, dense.address, view.dtype), view);
    return dense;
  }

  Stream& stream_;
  const graft_dtype between_, sum_;
  std::vector<std::unique_ptr<Workspace>> memory_;
};

// Nearest neighbours and padding of common dtypes, and (bi)linear and cubic float32.
const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (const bool rows : {false, true}) {
    for (graft_dtype data : {GRAFT_UINT8, GRAFT_INT16, GRAFT_INT32}) {
      PackEntry::put(add, ResampleKernel{rows, 1, false, false, false, data, data, data});
    }
    for (const int taps : {2, 4}) {
      PackEntry::put(add, ResampleKernel{rows, taps, false, true});
    }
    // Gradients of images that were doubled, and of those with a reflected border.
    for (const auto& [taps, padded, weighted] :
         {std::tuple(2, false, false), {2, true, false}, {5, true, true}}) {
      PackEntry::put(add, ResampleKernel{rows, taps, padded, weighted});
    }
  }
});

void check(const TensorView& output, const TensorView& input, std::span<const LinearMap> maps) {
  const int first = input.rank - static_cast<int>(maps.size());
  bool fits = first >= 0 && output.rank == input.rank && output.dtype == input.dtype;
  for (int d = 0; fits && d < input.rank; ++d) {
    fits = d < first ? output.sizes[d] == input.sizes[d]
                     : output.sizes[d] == maps[static_cast<size_t>(d - first)].to &&
                           input.sizes[d] == maps[static_cast<size_t>(d - first)].from;
  }
  if (!fits) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "resample: the maps do not fit the sizes and dtypes of input and output");
  }
}

}  // namespace

void resample(Stream& stream, const TensorView& output, const TensorView& input,
              std::span<const LinearMap> maps) {
  check(output, input, maps);
  if (output.count() == 0) return;
  const int first = input.rank - static_cast<int>(maps.size());
  const bool pairs = is_complex(input.dtype), picks = std::ranges::all_of(maps, &LinearMap::picks);
  if (pairs && input.rank == kMaxRank) {
    throw Error(GRAFT_UNSUPPORTED, "resample: no kernel for complex tensors of 16 dimensions");
  }
  TensorView to = pairs ? in_parts(output) : output, from = pairs ? in_parts(input) : input;
  graft_dtype sum = GRAFT_INT64;
  if (picks) {
    sum = to.dtype = from.dtype = raw_dtype(to.dtype);
  } else if (is_floating(to.dtype)) {
    sum = to.dtype == GRAFT_FLOAT64 ? GRAFT_FLOAT64 : GRAFT_FLOAT32;
  } else if (!std::ranges::all_of(maps, &LinearMap::sums)) {
    throw Error(GRAFT_UNSUPPORTED, std::string("resample: no kernel for ") + name_of(input.dtype) +
                                       "; give a floating or complex dtype");
  }
  Resampling(stream, sum, sum).run(to, from, maps, first, false);
}

void resample_back(Stream& stream, const TensorView& output, const TensorView& input,
                   std::span<const LinearMap> maps) {
  std::vector<LinearMap> back;
  for (const LinearMap& map : maps) back.push_back(map.transposed());
  resample(stream, output, input, back);
}

void resample_bytes(Stream& stream, const TensorView& output, const TensorView& input,
                    std::span<const LinearMap> maps) {
  check(output, input, maps);
  if (output.count() == 0) return;
  if (input.dtype != GRAFT_UINT8) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                std::string("resample_bytes: expected uint8, got ") + name_of(input.dtype));
  }
  std::vector<LinearMap> joined(maps.begin(), maps.end());
  for (LinearMap& map : joined) map.join();
  Resampling(stream, GRAFT_UINT8, GRAFT_INT32)
      .run(output, input, joined, input.rank - static_cast<int>(maps.size()), true);
}

}  // namespace graft
