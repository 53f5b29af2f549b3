// src/kernels/patch_pack.cpp: gathers the patches of images into panels.
#include "kernels/patch_pack.h"

#include "codegen/program_cache.h"
#include "kernels/arguments.h"
#include "kernels/work_split.h"
#include "runtime/dtype.h"

namespace graft {
namespace {

using ir::Address;
using ir::Builder;
using ir::Lanes;
using ir::Type;
using ir::Value;

constexpr int64_t kDepths = 64;  // of a panel that one item gathers

struct PatchKernel {
  graft_dtype dtype;
  int64_t width;
  PatchLines lines;

  std::string key() const {
    return std::string(lines == PatchLines::kRows ? "pack_patch_rows_" : "pack_patches_") +
           std::to_string(width) + "_" + name_of(dtype);
  }
};

class PatchWriter {
 public:
  explicit PatchWriter(const PatchKernel& kernel)
      : b_(kernel.key()),
        width_(kernel.width),
        rows_(kernel.lines == PatchLines::kRows),
        to_(b_.write(GRAFT_FLOAT32)),
        from_(b_.read(kernel.dtype)) {
    for (Value* value : {&blocks_, &per_item_, &height_, &images_, &image_, &channel_}) {
      *value = b_.index();
    }
    for (Value* triple : {input_, kernel_, output_, step_, padding_, dilation_, stride_}) {
      for (int d = 0; d < 3; ++d) triple[d] = b_.index();
    }
  }

  ir::Kernel write() {
    each_line(b_, blocks_, per_item_, [&](Value block) { gather(block); });
    return b_.finish();
  }

 private:
  // A place among the positions, or among the kernel's elements of a channel.
  struct Place {
    Value outer, at[3];
  };
  Place position(Value index) {
    Place place;
    for (int d = 2; d >= 0; --d) {
      place.at[d] = index % output_[d] * step_[d] - padding_[d];
      index = index / output_[d];
    }
    place.outer = index * image_;
    return place;
  }
  Place row(Value index) {
    Place place;
    for (int d = 2; d >= 0; --d) {
      place.at[d] = index % kernel_[d] * dilation_[d];
      index = index / kernel_[d];
    }
    place.outer = index * channel_;
    return place;
  }

  void gather(Value block) {
    const Value positions = output_[0] * output_[1] * output_[2];
    const Value lines = rows_ ? height_ : positions, depth = rows_ ? images_ * positions : height_;
    const Value panels = (lines + (width_ - 1)) / width_;
    const Value chunks = (depth + (kDepths - 1)) / kDepths;
    const Value first = block % chunks * kDepths, rest = block / chunks, panel = rest % panels;
    const Value image = rest / panels * image_;
    const auto width = static_cast<uint32_t>(width_);
    const Lanes outer(b_, Type::kI64, width);
    const Lanes at[3] = {{b_, Type::kI64, width}, {b_, Type::kI64, width}, {b_, Type::kI64, width}};
    b_.loop(b_.i64(0), b_.i64(width_), [&](Value i) {
      const Value line = panel * width_ + i;
      const Value beyond = line >= lines;
      const Place place = rows_ ? row(line) : position(line);
      outer.store(i, select(beyond, 0, place.outer));
      // What lies beyond the last line is outside of the input at every depth.
      for (int d = 0; d < 3; ++d) at[d].store(i, select(beyond, INT32_MIN, place.at[d]));
    });
    b_.loop(first, ir::minimum(depth, first + kDepths), [&](Value k) {
      const Place place = rows_ ? position(k) : row(k);
      const Value base = image + place.outer, target = (rest * depth + k) * width_;
      b_.vector_loop(b_.i64(0), b_.i64(width_), [&](Value i) {
        Value inside = b_.boolean(true), offset = rows_ ? base + outer.load(i) : base;
        const Value safe = offset;
        for (int d = 0; d < 3; ++d) {
          const Value from = at[d].load(i) + place.at[d];
          inside = inside & (from >= 0) & (from < input_[d]);
          offset = offset + from * stride_[d];
        }
        const Value value = from_.load(select(inside, offset, safe));
        to_.store(target + i, select(inside, value, 0));
      });
    });
  }

  Builder b_;
  const int64_t width_;
  const bool rows_;
  Address to_, from_;
  Value blocks_, per_item_, height_, images_, image_, channel_;
  Value input_[3], kernel_[3], output_[3], step_[3], padding_[3], dilation_[3];
  Value stride_[3];
};

// The last dimensions as three, with leading ones.
void append(Arguments& arguments, const int64_t* values, int rank, int64_t leading) {
  for (int d = rank; d < 3; ++d) arguments.index(leading);
  for (int d = 0; d < rank; ++d) arguments.index(values[d]);
}

struct Extent {
  int64_t panels, depth;  // panels of all matrices
};

Extent extent_of(const TensorView& input, const PatchGeometry& geometry, PatchLines lines,
                 int64_t width) {
  const int64_t height = input.sizes[1] * geometry.taps(), count = geometry.count();
  if (lines == PatchLines::kRows) return {(height + width - 1) / width, input.sizes[0] * count};
  return {input.sizes[0] * ((count + width - 1) / width), height};
}

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
  const Extent extent = extent_of(input, geometry, lines, width);
  return static_cast<uint64_t>(extent.panels * width * extent.depth) * sizeof(float);
}

void pack_patches(Stream& stream, graft_address panels, const TensorView& input,
                  const PatchGeometry& geometry, PatchLines lines, int64_t width) {
  const int rank = geometry.rank;
  const Extent extent = extent_of(input, geometry, lines, width);
  const WorkSplit split =
      split_work(extent.panels * ((extent.depth + kDepths - 1) / kDepths), width * kDepths);
  Arguments arguments;
  arguments.address(panels, patch_bytes(input, geometry, lines, width), GRAFT_ACCESS_WRITE);
  arguments.read(input).index(split.lines).index(split.per_item);
  arguments.index(input.sizes[1] * geometry.taps()).index(input.sizes[0]);
  arguments.index(input.strides[0]).index(input.strides[1]);
  append(arguments, input.sizes + 2, rank, 1);
  append(arguments, geometry.kernel, rank, 1);
  append(arguments, geometry.positions, rank, 1);
  append(arguments, geometry.step, rank, 1);
  append(arguments, geometry.padding, rank, 0);
  append(arguments, geometry.dilation, rank, 1);
  append(arguments, input.strides + 2, rank, 0);
  const PatchKernel kernel{input.dtype, width, lines};
  const auto make = [&] { return PatchWriter(kernel).write(); };
  stream.launch(get_kernel(stream.device(), kernel.key(), make), static_cast<uint64_t>(split.grid),
                arguments.span());
}

}  // namespace graft
