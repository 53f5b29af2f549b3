// src/kernels/index/advanced_index.cpp: reading and writing at positions that tensors of indices
// name.
#include "codegen/cache/program_cache.h"
#include "kernels/index/index.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/strided_loop.h"
#include "kernels/operation/offer.h"
#include "kernels/tensor/raw_dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr size_t kMaxIndices = kMaxOperands - 2;

struct IndexKernel {
  enum Mode { kGet, kPut, kAccumulate } mode;
  bool rows;  // indices do not move in the innermost loop, which is copied as a vector
  graft_dtype data, index;
  int indices;
  int64_t width = 1;  // numbers of data in an element
  bool wraps = true;  // negative indices count from the end

  std::string key() const {
    static const char* const kModes[] = {"get", "put", "accumulate"};
    return std::string("index_") + kModes[mode] + std::to_string(indices) +
           (rows ? "_rows_" : "_") + (width == 1 ? "" : "pairs_") + (wraps ? "" : "exact_") +
           name_of(data) + "_" + name_of(index);
  }

  // Operand 0 is the plain tensor, operand 1 the indexed one, then the indices.
  ir::Kernel build() const {
    Builder b(key());
    const Address plain = mode == kGet ? b.write(data) : b.read(data);
    const Address indexed = mode == kGet ? b.read(data) : b.update(data);
    std::vector<Address> positions;
    for (int k = 0; k < indices; ++k) positions.push_back(b.read(index));
    const IndexChecker checker(b);
    std::vector<Value> sizes, strides;
    for (int k = 0; k < indices; ++k) {
      sizes.push_back(b.index());
      strides.push_back(b.index());
    }
    StridedLoop loop(b, 2 + indices);
    auto shift = [&](const std::vector<Value>& at) {
      Value sum = b.i64(0);
      for (size_t k = 0; k < positions.size(); ++k) {
        const Value given = positions[k].load(at[2 + k]);
        sum = sum + checker.check(given, sizes[k], wraps) * strides[k];
      }
      return sum;
    };
    auto move = [&](const std::vector<Value>& at, Value offset) {
      for (int64_t part = 0; part < width; ++part) {
        const Value target = (at[1] + offset) * width + part, from = at[0] * width + part;
        if (mode == kGet) {
          plain.store(from, indexed.load(target));
          continue;
        }
        const Value x = plain.load(from);
        if (mode == kPut) {
          indexed.store(target, x);
          continue;
        }
        const Value before = indexed.load(target);
        indexed.store(target, x.type() == ir::Type::kBool ? before | x : before + x);
      }
    };
    if (!rows) {
      loop.each([&](const std::vector<Value>& at) { move(at, shift(at)); });
    } else {
      loop.each_inner([&](const std::vector<Value>& first) {
        const Value offset = shift(first);
        b.vector_loop(b.i64(0), loop.inner_size(), [&](Value i) { move(loop.moved(i), offset); });
      });
    }
    return b.finish();
  }
};

Axes axes_of(const TensorView& plain, const TensorView& indexed,
             std::span<const TensorView> indices) {
  Axes axes;
  axes.operands = static_cast<int>(2 + indices.size());
  for (int d = 0; d < plain.rank; ++d) {
    if (plain.sizes[d] == 1) continue;
    Axis axis;
    axis.size = plain.sizes[d];
    axis.strides[0] = plain.strides[d];
    axis.strides[1] = indexed.strides[d];
    for (size_t k = 0; k < indices.size(); ++k) axis.strides[2 + k] = indices[k].strides[d];
    axes.push(axis);
  }
  axes.merge();
  return axes;
}

// Loops whose elements never meet go outside, each to a work-item of its own; the others stay
// together and in order. A long innermost one of the first kind is cut into vectors and the rest.
int64_t separate(Axes& axes) {
  constexpr int64_t kVector = 64;
  const auto meets = [&](const Axis& axis) {
    bool indexed = axis.strides[1] == 0;
    for (int k = 2; k < axes.operands; ++k) indexed = indexed || axis.strides[k] != 0;
    return indexed;
  };
  Axes result;
  result.operands = axes.operands;
  const int inner = axes.rank - 1;
  Axis last = axes.at[inner];
  int64_t together = 1;
  for (int i = 0; i < inner; ++i) {
    if (!meets(axes.at[i])) result.push(axes.at[i]);
  }
  if (!meets(last) && last.size > kVector && axes.rank < kStridedRank) {
    int64_t length = kVector;
    while (last.size % length != 0) --length;
    if (length >= kVector / 4) {
      Axis blocks = last;
      blocks.size = last.size / length;
      for (int k = 0; k < axes.operands; ++k) blocks.strides[k] *= length;
      last.size = length;
      result.push(blocks);
    }
  }
  for (int i = 0; i < inner; ++i) {
    if (!meets(axes.at[i])) continue;
    result.push(axes.at[i]);
    together *= axes.at[i].size;
  }
  result.push(last);
  axes = result;
  return together;
}

void run(Stream& stream, IndexKernel::Mode mode, const TensorView& plain, const TensorView& indexed,
         std::span<const TensorView> indices, std::span<const int64_t> sizes,
         std::span<const int64_t> strides, bool wraps) {
  if (plain.count() == 0 || indices.empty()) return;
  for (size_t k = 0; k < sizes.size(); ++k) require_elements(sizes[k], static_cast<int>(k));
  if (indices.size() > kMaxIndices) {
    throw Error(GRAFT_UNSUPPORTED, "index: got " + std::to_string(indices.size()) +
                                       " index tensors; at most " + std::to_string(kMaxIndices) +
                                       " are supported");
  }
  for (const TensorView& view : indices) {
    if (view.dtype == indices[0].dtype) continue;
    throw Error(GRAFT_INVALID_ARGUMENT,
                "index: the index tensors have several dtypes; give them one dtype");
  }
  Axes axes = axes_of(plain, indexed, indices);
  bool rows = axes.rank > 0;
  for (size_t k = 0; rows && k < indices.size(); ++k) {
    rows = axes.at[axes.rank - 1].strides[2 + k] == 0;
  }
  // Rows of a vector must not meet in one element.
  if (rows && mode != IndexKernel::kGet) rows = axes.at[axes.rank - 1].strides[1] != 0;
  const bool adds = mode == IndexKernel::kAccumulate;
  const graft_dtype data = adds ? part_of(plain.dtype) : raw_dtype(plain.dtype);
  const int64_t width = size_of(plain.dtype) / size_of(data);
  const IndexKernel kernel{mode,  rows, data, indices[0].dtype, static_cast<int>(indices.size()),
                           width, wraps};
  uint64_t reach = extent_bytes(indexed);
  for (size_t k = 0; k < indices.size(); ++k) {
    reach += static_cast<uint64_t>((sizes[k] - 1) * strides[k]) * size_of(indexed.dtype);
  }
  const uint32_t writes = mode == IndexKernel::kGet ? 0 : GRAFT_ACCESS_WRITE;
  Arguments arguments;
  if (mode == IndexKernel::kGet) {
    arguments.write(plain);
  } else {
    arguments.read(plain);
  }
  arguments.address(indexed.address, reach, GRAFT_ACCESS_READ | writes);
  for (const TensorView& view : indices) arguments.read(view);
  append_checker(arguments, stream);
  for (size_t k = 0; k < indices.size(); ++k) arguments.index(sizes[k]).index(strides[k]);
  const int64_t together = adds && axes.rank > 0 ? separate(axes) : 1;
  const WorkSplit split = append_loops_as_given(arguments, axes, false, together);
  launch_kernel(stream, kernel, split.grid, arguments);
}

const PackEntry kPackedIndexing([](const PackEntry::Sink& add) {
  const auto put = [&](const IndexKernel& kernel) { PackEntry::put(add, kernel); };
  for (bool rows : {false, true}) {
    for (graft_dtype data : {GRAFT_UINT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}) {
      for (int indices : {1, 2}) put({IndexKernel::kGet, rows, data, GRAFT_INT64, indices});
      put({IndexKernel::kPut, rows, data, GRAFT_INT64, 1});
    }
    for (int indices : {1, 2}) {
      put({IndexKernel::kAccumulate, rows, GRAFT_FLOAT32, GRAFT_INT64, indices});
    }
  }
});

}  // namespace

void index(Stream& stream, const TensorView& output, const TensorView& input,
           std::span<const TensorView> indices, std::span<const int64_t> sizes,
           std::span<const int64_t> strides) {
  if (offer(stream, Operation::index, [&](VendorCall& to) {
        to.write(output).read(input).read(indices).integers(sizes).integers(strides);
      }))
    return;
  run(stream, IndexKernel::kGet, output, input, indices, sizes, strides, true);
}

void index_put(Stream& stream, const TensorView& to, const TensorView& values,
               std::span<const TensorView> indices, std::span<const int64_t> sizes,
               std::span<const int64_t> strides, bool accumulate, bool wraps) {
  if (offer(stream, Operation::index_put, [&](VendorCall& offered) {
        offered.write(to).read(values).read(indices);
        offered.integers({accumulate, wraps}).integers(sizes).integers(strides);
      }))
    return;
  run(stream, accumulate ? IndexKernel::kAccumulate : IndexKernel::kPut, values, to, indices, sizes,
      strides, wraps);
}

}  // namespace graft
