// src/kernels/convolution/patch_pack.cpp: gathers the patches of images into panels.
#include "kernels/convolution/patch_pack.h"

#include <algorithm>
#include <span>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/tensor/image_views.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr uint64_t kTurnBytes = uint64_t{64} << 20;
constexpr int64_t kDepths = 64;          // of a panel that one item gathers
constexpr int32_t kBeyond = -(1 << 30);  // outside of the input at every place

struct PatchKernel {
  graft_dtype dtype;
  int64_t width;
  PatchLines lines;
  int rank;

  std::string key() const {
    return std::string(lines == PatchLines::kRows ? "pack_patch_rows_" : "pack_patches_") +
           std::to_string(rank) + "d_" + std::to_string(width) + "_" + name_of(dtype);
  }
};

// A panel's depth goes over places (of the kernel, or positions) within outers (channels, or
// images). Which lanes lie inside depends on the place alone.
class PatchWriter {
 public:
  explicit PatchWriter(const PatchKernel& kernel)
      : b_(kernel.key()),
        width_(kernel.width),
        rows_(kernel.lines == PatchLines::kRows),
        rank_(kernel.rank),
        to_(b_.write(GRAFT_FLOAT32)),
        from_(b_.read(kernel.dtype)) {
    b_.indices({&blocks_, &per_item_, &lines_, &places_, &outers_, &together_[0], &together_[1],
                &image_, &channel_});
    b_.indices({input_, kernel_, output_, step_, padding_, dilation_, stride_}, rank_);
  }

  ir::Kernel write() {
    each_line(b_, blocks_, per_item_, [&](Value block) { gather(block); });
    return b_.finish();
  }

 private:
  // A place among the positions, or among the kernel's elements of a channel.
  struct Place {
    Value outer, at[3], offset;  // offset: of its element from the image's or channel's first
  };
  Place position(Value index) { return place(index, output_, step_, padding_); }
  Place tap(Value index) { return place(index, kernel_, dilation_, nullptr); }
  Place place(Value index, const Value* sizes, const Value* steps, const Value* padding) {
    Place place;
    place.offset = b_.i64(0);
    for (int d = rank_ - 1; d >= 0; --d) {
      Value at = index % sizes[d] * steps[d];
      if (padding != nullptr) at = at - padding[d];
      place.offset = place.offset + at * stride_[d];
      place.at[d] = cast(Type::kI32, at);
      index = index / sizes[d];
    }
    place.outer = index;
    return place;
  }

  void gather(Value block) {
    const Value across = ceiling(places_, together_[0]);
    const Value chunks = across * ceiling(outers_, together_[1]);
    const Value chunk = block % chunks, panel = block / chunks;
    const auto width = static_cast<uint32_t>(width_);
    const Lanes offset(b_, Type::kI32, width), reach(b_, Type::kI32, width);
    const Lanes inside(b_, Type::kI32, width);
    std::vector<Lanes> at;
    for (int d = 0; d < rank_; ++d) at.emplace_back(b_, Type::kI32, width);
    b_.loop(b_.i64(0), b_.i64(width_), [&](Value i) {
      const Value line = panel * width_ + i;
      const Place held = rows_ ? tap(line) : position(line);
      offset.store(i, cast(Type::kI32, held.offset + held.outer * (rows_ ? channel_ : image_)));
      for (int d = 0; d < rank_; ++d) {
        at[size_t(d)].store(i, select(line >= lines_, kBeyond, held.at[d]));
      }
    });
    each_of(places_, together_[0], chunk % across, [&](Value index) {
      const Place met = rows_ ? position(index) : tap(index);
      b_.vector_loop(b_.i64(0), b_.i64(width_), [&](Value i) {
        Value within = b_.boolean(true);
        for (int d = 0; d < rank_; ++d) {
          const Value from = at[size_t(d)].load(i) + met.at[d];
          within = within & (cast(Type::kU32, from) < cast(Type::kU32, input_[d]));
        }
        inside.store(i, select(within, b_.constant(Type::kI32, 1), 0));
        reach.store(i, select(within, offset.load(i) + cast(Type::kI32, met.offset), 0));
      });
      each_of(outers_, together_[1], chunk / across, [&](Value outer) {
        const Value base = outer * (rows_ ? image_ : channel_);
        const Value target = ((panel * outers_ + outer) * places_ + index) * width_;
        b_.vector_loop(b_.i64(0), b_.i64(width_), [&](Value i) {
          const Value value = from_.load(base + cast(Type::kI64, reach.load(i)));
          to_.store(target + i, select(inside.load(i) != 0, value, 0));
        });
      });
    });
  }

  static Value ceiling(Value count, Value of) { return (count + of - 1) / of; }

  template <class Body>
  void each_of(Value count, Value together, Value chunk, Body body) {
    const Value first = chunk * together;
    b_.loop(first, ir::minimum(count, first + together), body);
  }

  Builder b_;
  const int64_t width_;
  const bool rows_;
  const int rank_;
  Address to_, from_;
  Value blocks_, per_item_, lines_, places_, outers_, together_[2], image_, channel_;
  Value input_[3], kernel_[3], output_[3], step_[3], padding_[3], dilation_[3];
  Value stride_[3];
};

struct Extent {
  int64_t lines, places, outers;

  int64_t depth() const { return places * outers; }
};

Extent extent_of(const TensorView& input, const PatchGeometry& geometry, PatchLines lines) {
  const int64_t images = input.sizes[0], channels = input.sizes[1];
  const int64_t taps = geometry.taps(), count = geometry.count();
  if (lines == PatchLines::kRows) return {channels * taps, count, images};
  return {images * count, taps, channels};
}

int64_t ceiling(int64_t count, int64_t of) { return (count + of - 1) / of; }

int64_t product(const int64_t* sizes, int rank) {
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) count *= sizes[d];
  return count;
}

}  // namespace

int64_t PatchGeometry::taps() const { return product(kernel, rank); }
int64_t PatchGeometry::count() const { return product(positions, rank); }

uint64_t patch_bytes(const TensorView& input, const PatchGeometry& geometry, PatchLines lines,
                     int64_t width) {
  const Extent extent = extent_of(input, geometry, lines);
  const int64_t lanes = ceiling(extent.lines, width) * width;
  return static_cast<uint64_t>(lanes * extent.depth()) * sizeof(float);
}

int64_t images_in_a_turn(const TensorView& input, const PatchGeometry& geometry, PatchLines lines,
                         int64_t width) {
  const uint64_t each = patch_bytes(part(input, 0, 0, 1), geometry, lines, width);
  return std::clamp<int64_t>(static_cast<int64_t>(kTurnBytes / each), 1, input.sizes[0]);
}

void pack_patches(Stream& stream, graft_address panels, const TensorView& input,
                  const PatchGeometry& geometry, PatchLines lines, int64_t width) {
  const int rank = geometry.rank;
  const Extent extent = extent_of(input, geometry, lines);
  const int64_t places = std::min(extent.places, kDepths), outers = kDepths / places;
  const int64_t chunks = ceiling(extent.places, places) * ceiling(extent.outers, outers);
  const WorkSplit split =
      split_work(ceiling(extent.lines, width) * chunks, width * places * outers);
  Arguments arguments;
  arguments.address(panels, patch_bytes(input, geometry, lines, width), GRAFT_ACCESS_WRITE);
  arguments.read(input).index(split.lines).index(split.per_item);
  arguments.indices({extent.lines, extent.places, extent.outers, places, outers, input.strides[0],
                     input.strides[1]});
  for (const int64_t* each : {input.sizes + 2, geometry.kernel, geometry.positions, geometry.step,
                              geometry.padding, geometry.dilation, input.strides + 2}) {
    arguments.indices(std::span(each, static_cast<size_t>(rank)));
  }
  const PatchKernel kernel{input.dtype, width, lines, rank};
  const auto make = [&] { return PatchWriter(kernel).write(); };
  launch_kernel(stream, kernel.key(), split.grid, arguments, make);
}

}  // namespace graft
