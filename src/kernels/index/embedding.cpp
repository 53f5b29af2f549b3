// src/kernels/index/embedding.cpp: the gradient of an embedding table.
#include "kernels/index/embedding.h"

#include <optional>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/work_split.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/copy.h"
#include "kernels/move/fill.h"
#include "kernels/operation/offer.h"
#include "kernels/reduce/programs.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kBlock = 64;

// One work-item counts how often each index occurs.
ir::Kernel build_counts(const std::string& key, graft_dtype index) {
  Builder b(key);
  const Address counts = b.update(GRAFT_INT64), indices = b.read(index);
  const Value rows = b.index(), count = b.index();
  b.loop(b.i64(0), count, [&](Value i) {
    const Value given = cast(ir::Type::kI64, indices.load(i));
    const Value row = ir::maximum(ir::minimum(given, rows - 1), b.i64(0));
    counts.store(row, counts.load(row) + 1);
  });
  return b.finish();
}

// A line adds all gradients to a block of columns, in order.
ir::Kernel build_sums(const std::string& key, graft_dtype sums, graft_dtype gradient,
                      graft_dtype index, bool scaled) {
  Builder b(key);
  const Address to = b.update(sums), from = b.read(gradient), indices = b.read(index);
  const Address counts = scaled ? b.read(GRAFT_INT64) : indices;
  const IndexChecker checker(b);
  const Value lines = b.index(), per_item = b.index(), rows = b.index(), n = b.index();
  const Value count = b.index(), padding = b.index();
  const ir::Type type = ir::compute_type(sums);
  each_line(b, lines, per_item, [&](Value line) {
    const Value column = line * kBlock, width = ir::minimum(n - column, b.i64(kBlock));
    b.loop(b.i64(0), count, [&](Value i) {
      const Value given = cast(ir::Type::kI64, indices.load(i));
      b.if_(given != padding, [&] {
        const Value row = checker.check(given, rows, false);
        const Value one = b.constant(type, 1.0);
        const Value scale = scaled ? one / cast(type, counts.load(row)) : one;
        const Value at = row * n + column, source = i * n + column;
        b.vector_loop(b.i64(0), width, [&](Value k) {
          const Value g = cast(type, from.load(source + k));
          to.store(at + k, to.load(at + k) + (scaled ? g * scale : g));
        });
      });
    });
  });
  return b.finish();
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  const std::string key = "embedding_sums_float32_float32_int64";
  add(key, [key] { return build_sums(key, GRAFT_FLOAT32, GRAFT_FLOAT32, GRAFT_INT64, false); });
});

}  // namespace

void embedding_dense_backward(Stream& stream, const TensorView& grad_weight,
                              const TensorView& grad_output, const TensorView& indices,
                              int64_t padding_idx, bool scale_by_frequency) {
  if (offer(stream, Operation::embedding_dense_backward, [&](VendorCall& to) {
        to.write(grad_weight).read(grad_output).read(indices);
        to.integers({padding_idx, scale_by_frequency});
      }))
    return;
  if (grad_weight.count() == 0) return;
  const graft_dtype wide = wide_dtype(grad_weight.dtype);
  const int64_t rows = grad_weight.sizes[0], n = grad_weight.count() / rows;
  const int64_t count = indices.count();
  TensorView sums = grad_weight;
  std::optional<ScratchTensor> memory;
  std::optional<Workspace> count_memory;
  if (wide != grad_weight.dtype) sums = memory.emplace(stream, grad_weight, wide).view();
  fill(stream, sums, Scalar::of(0.0));
  const std::string suffix = std::string("_") + name_of(indices.dtype);
  const uint64_t count_bytes = static_cast<uint64_t>(rows) * sizeof(int64_t);
  if (scale_by_frequency) {
    count_memory.emplace(stream, count_bytes);
    const uint64_t zero = 0;
    stream.fill(count_memory->address(), count_bytes, &zero, sizeof(zero));
    Arguments arguments;
    arguments.address(count_memory->address(), count_bytes, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
    arguments.read(indices).index(rows).index(count);
    const std::string key = "embedding_counts" + suffix;
    launch_kernel(stream, key, 1, arguments, [&] { return build_counts(key, indices.dtype); });
  }
  const std::string key = std::string("embedding_sums_") + (scale_by_frequency ? "scaled_" : "") +
                          name_of(wide) + "_" + name_of(grad_output.dtype) + suffix;
  Arguments arguments;
  arguments.update(sums).read(grad_output).read(indices);
  if (scale_by_frequency) {
    arguments.address(count_memory->address(), count_bytes, GRAFT_ACCESS_READ);
  }
  append_checker(arguments, stream);
  const WorkSplit split = split_work((n + kBlock - 1) / kBlock, count * kBlock);
  arguments.indices({split.lines, split.per_item, rows, n, count, padding_idx});
  launch_kernel(stream, key, split.grid, arguments, [&] {
    return build_sums(key, wide, grad_output.dtype, indices.dtype, scale_by_frequency);
  });
  if (memory) copy(stream, grad_weight, sums);
}

}  // namespace graft
