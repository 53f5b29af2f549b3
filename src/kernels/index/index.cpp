// src/kernels/index/index.cpp: selecting rows and gathering.
#include "kernels/index/index.h"

#include "codegen/cache/program_cache.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/strided_loop.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/tensor/raw_dtype.h"

namespace graft {
namespace {

using namespace ir;

// A line copies one row of inner elements.
ir::Kernel build_select(const std::string& key, graft_dtype data, graft_dtype index) {
  Builder b(key);
  const Address output = b.write(data), input = b.read(data), indices = b.read(index);
  const IndexChecker checker(b);
  const Value lines = b.index(), per_item = b.index(), picks = b.index(), stride = b.index();
  const Value rows = b.index(), inner = b.index();
  each_line(b, lines, per_item, [&](Value line) {
    const Value at = checker.check(indices.load(line % picks * stride), rows, false);
    const Value from = (line / picks * rows + at) * inner, to = line * inner;
    b.vector_loop(b.i64(0), inner, [&](Value i) { output.store(to + i, input.load(from + i)); });
  });
  return b.finish();
}

// How the innermost loop runs through output and index, and through the input.
enum class Along {
  kStrides,  // anyhow
  kLines,    // side by side through output and index
  kInput,    // and what is gathered lies side by side, in the input's same line
};

// width: numbers of data in an element, 1 but for kStrides.
ir::Kernel build_gather(const std::string& key, graft_dtype data, graft_dtype index, int64_t width,
                        Along along) {
  Builder b(key);
  const Address output = b.write(data), input = b.read(data), indices = b.read(index);
  const IndexChecker checker(b);
  const Value size = b.index(), stride = b.index();
  StridedLoop loop(b, 3);
  if (along == Along::kStrides) {
    loop.each([&](const std::vector<Value>& at) {
      const Value position = checker.check(indices.load(at[2]), size, false);
      const Value from = (at[1] + position * stride) * width, to = at[0] * width;
      for (int64_t part = 0; part < width; ++part) output.store(to + part, input.load(from + part));
    });
    return b.finish();
  }
  loop.each_inner([&](const std::vector<Value>& first) {
    checker.each(
        b.i64(0), loop.inner_size(), size, [&](Value i) { return indices.load(first[2] + i); },
        [&](Value i, Value at) {
          const Value from =
              along == Along::kInput ? first[1] + at : loop.moved(i)[1] + at * stride;
          output.store(first[0] + i, input.load(from));
        });
  });
  return b.finish();
}

std::string key_of(const char* name, graft_dtype data, graft_dtype index) {
  return std::string(name) + "_" + name_of(data) + "_" + name_of(index);
}

Along along(const Axes& axes, const TensorView& input, int dim) {
  if (axes.rank == 0) return Along::kStrides;
  const Axis& inner = axes.at[axes.rank - 1];
  // Shorter loops are not worth the blocks.
  const bool lines = inner.strides[0] == 1 && inner.strides[2] == 1 && inner.size >= 16;
  if (!lines) return Along::kStrides;
  return inner.strides[1] == 0 && input.strides[dim] == 1 ? Along::kInput : Along::kLines;
}

const char* name_of_gather(Along along, int64_t width) {
  if (width > 1) return "gather_pairs";
  return along == Along::kInput   ? "gather_within"
         : along == Along::kLines ? "gather_dense"
                                  : "gather";
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (graft_dtype data : {GRAFT_UINT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}) {
    const std::string select = key_of("index_select", data, GRAFT_INT64);
    add(select, [=] { return build_select(select, data, GRAFT_INT64); });
    for (Along along : {Along::kStrides, Along::kLines, Along::kInput}) {
      const std::string gather = key_of(name_of_gather(along, 1), data, GRAFT_INT64);
      add(gather, [=] { return build_gather(gather, data, GRAFT_INT64, 1, along); });
    }
  }
});

}  // namespace

void index_select(Stream& stream, const TensorView& output, const TensorView& input, int dim,
                  const TensorView& indices) {
  if (offer(stream, Operation::index_select,
            [&](VendorCall& to) { to.write(output).read(input).read(indices).integers({dim}); }))
    return;
  if (output.count() == 0) return;
  if (input.rank > 0) require_elements(input.sizes[dim], dim);
  StagedInput from(stream, input, !input.contiguous());
  StagedOutput to(stream, output, !output.contiguous());
  const graft_dtype data = raw_dtype(input.dtype);
  const int64_t picks = indices.count();
  int64_t outer = 1, inner = raw_width(input.dtype);
  for (int d = 0; d < input.rank; ++d) (d < dim ? outer : inner) *= d == dim ? 1 : input.sizes[d];
  const WorkSplit split = split_work(outer * picks, inner + 16);
  Arguments arguments;
  arguments.write(to.view()).read(from.view()).read(indices);
  append_checker(arguments, stream);
  arguments.indices({split.lines, split.per_item, picks, indices.rank == 0 ? 0 : indices.strides[0],
                     input.rank == 0 ? 1 : input.sizes[dim], inner});
  const std::string key = key_of("index_select", data, indices.dtype);
  launch_kernel(stream, key, split.grid, arguments,
                [&] { return build_select(key, data, indices.dtype); });
  to.finish();
}

void gather(Stream& stream, const TensorView& output, const TensorView& input, int dim,
            const TensorView& index) {
  if (offer(stream, Operation::gather,
            [&](VendorCall& to) { to.write(output).read(input).read(index).integers({dim}); }))
    return;
  if (index.count() == 0) return;
  if (input.rank > 0) require_elements(input.sizes[dim], dim);
  TensorView fixed = input;
  if (input.rank > 0) fixed.strides[dim] = 0;
  const graft_dtype data = raw_dtype(input.dtype);
  Arguments arguments;
  arguments.write(output).read(input).read(index);
  append_checker(arguments, stream);
  arguments.indices(
      {input.rank > 0 ? input.sizes[dim] : 1, input.rank > 0 ? input.strides[dim] : 0});
  Axes axes = Axes::of({&output, &fixed, &index});
  axes.merge();
  const WorkSplit split = append_loops_as_given(arguments, axes);
  const int64_t width = raw_width(input.dtype);
  const Along inner = width == 1 ? along(axes, input, dim) : Along::kStrides;
  const std::string key = key_of(name_of_gather(inner, width), data, index.dtype);
  launch_kernel(stream, key, split.grid, arguments,
                [&] { return build_gather(key, data, index.dtype, width, inner); });
}

}  // namespace graft
