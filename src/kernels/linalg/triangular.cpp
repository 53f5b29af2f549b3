// src/kernels/linalg/triangular.cpp: the upper or lower triangle of matrices.
#include "kernels/linalg/triangular.h"

#include <algorithm>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/tensor/raw_dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

// A line is a row of raw elements, width of which make one element.
ir::Kernel build(const std::string& key, graft_dtype data, int64_t width, bool upper) {
  Builder b(key);
  const Address to = b.write(data), from = b.read(data);
  const Value lines = b.index(), per_item = b.index(), rows = b.index(), length = b.index();
  const Value diagonal = b.index();
  each_line(b, lines, per_item, [&](Value line) {
    const Value row = line * length, edge = line % rows + diagonal;
    b.vector_loop(b.i64(0), length, [&](Value i) {
      const Value column = width == 1 ? i : i / width;
      const Value keep = upper ? column >= edge : column <= edge;
      to.store(row + i, select(keep, from.load(row + i), 0));
    });
  });
  return b.finish();
}

std::string key_of(graft_dtype data, int64_t width, bool upper) {
  return std::string(upper ? "triu_" : "tril_") + name_of(data) + (width == 1 ? "" : "_pairs");
}

const PackEntry kPackedTriangles([](const PackEntry::Sink& add) {
  for (graft_dtype data : {GRAFT_UINT8, GRAFT_INT32, GRAFT_INT64}) {
    for (bool upper : {false, true}) {
      const std::string key = key_of(data, 1, upper);
      add(key, [=] { return build(key, data, 1, upper); });
    }
  }
});

}  // namespace

void triangular(Stream& stream, const TensorView& output, const TensorView& input, int64_t diagonal,
                bool upper) {
  if (offer(stream, Operation::triangular, [&](VendorCall& to) {
        to.write(output).read(input).integers({diagonal, upper});
      }))
    return;
  if (input.rank < 2) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "triangular: expected at least two dimensions, got " + std::to_string(input.rank));
  }
  if (output.count() == 0) return;
  StagedInput from(stream, input, !input.contiguous());
  StagedOutput to(stream, output, !output.contiguous());
  const graft_dtype data = raw_dtype(input.dtype);
  const int64_t width = raw_width(input.dtype), rows = input.sizes[input.rank - 2];
  const int64_t length = input.sizes[input.rank - 1] * width;
  const int64_t within = std::clamp(diagonal, -rows, length);  // beyond these nothing changes
  const WorkSplit split = split_work(input.count() * width / length, length);
  const std::string key = key_of(data, width, upper);
  Arguments arguments;
  arguments.write(to.view()).read(from.view());
  arguments.indices({split.lines, split.per_item, rows, length, within});
  launch_kernel(stream, key, split.grid, arguments, [&] { return build(key, data, width, upper); });
  to.finish();
}

}  // namespace graft
