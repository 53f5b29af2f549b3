// src/kernels/pointwise/channel_affine.cpp: a linear function of images with factors for each
// channel.
#include "kernels/pointwise/channel_affine.h"

#include <utility>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

struct AffineKernel {
  bool columns;
  bool two;
  bool centered;
  graft_dtype output, input, factor;

  std::string key() const {
    return std::string("channel_affine") + (two ? "2_" : "_") + (centered ? "centered_" : "") +
           (columns ? "rows_" : "planes_") + name_of(output) + "_" + name_of(input) + "_" +
           name_of(factor);
  }

  // A line is a row of channels (columns) or a plane of one channel.
  ir::Kernel build() const {
    Builder b(key());
    const Address to = b.write(output), x = b.read(input), a = b.read(factor);
    const Address y = two ? b.read(input) : x, slope = two ? b.read(factor) : a;
    const Address d = b.read(factor), center = centered ? b.read(factor) : d;
    const Value lines = b.index(), per_item = b.index(), length = b.index(), channels = b.index();
    const ir::Type type = ir::compute_type(factor);
    each_line(b, lines, per_item, [&](Value line) {
      const Value row = line * length, channel = columns ? b.i64(0) : line % channels;
      auto factors = [&](Value at) {
        Values values{a.load(at), d.load(at)};
        values.push_back(two ? slope.load(at) : values[0]);
        if (centered) values.push_back(center.load(at));
        return values;
      };
      const Values fixed = columns ? Values{} : factors(channel);
      b.vector_loop(b.i64(0), length, [&](Value i) {
        const Values f = columns ? factors(i) : fixed;
        Value last = cast(type, two ? y.load(row + i) : x.load(row + i));
        if (centered) last = last - f[3];
        Value value = two ? f[0] * cast(type, x.load(row + i)) + f[1] : f[1];
        value = value + f[2] * last;
        to.store(row + i, value);
      });
    });
    return b.finish();
  }

 private:
  using Values = std::vector<Value>;
};

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (graft_dtype image : {GRAFT_FLOAT32, GRAFT_BFLOAT16}) {
    for (bool columns : {false, true}) {
      for (const auto& [two, centered] : {std::pair(false, false), {false, true}, {true, true}}) {
        PackEntry::put(add, AffineKernel{columns, two, centered, image, image, GRAFT_FLOAT32});
      }
    }
  }
});

}  // namespace

void channel_affine(Stream& stream, const ImageLayout& layout, const TensorView& output,
                    const TensorView& x, const TensorView& a, const TensorView* y,
                    const TensorView* b, const TensorView& d, const TensorView* center) {
  const bool columns = layout.channels_last || layout.plane == 1;
  const AffineKernel kernel{columns,      y != nullptr, center != nullptr,
                            output.dtype, x.dtype,      a.dtype};
  const int64_t length = columns ? layout.channels : layout.plane;
  const int64_t lines = layout.n * (columns ? layout.plane : layout.channels);
  const WorkSplit split = split_work(lines, length);
  Arguments arguments;
  arguments.write(output).read(x).read(a);
  if (y != nullptr) arguments.read(*y).read(*b);
  arguments.read(d);
  if (center != nullptr) arguments.read(*center);
  arguments.index(split.lines).index(split.per_item).index(length).index(layout.channels);
  launch_kernel(stream, kernel, split.grid, arguments);
}

}  // namespace graft
