// src/kernels/weight_only/dequantize.cpp: the numbers that a weight of small integers stands for.
#include "kernels/weight_only/dequantize.h"

#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

struct DequantizeKernel {
  graft_dtype output, scales, zeros;
  bool asymmetric, packed;

  std::string key() const {
    std::string key = std::string("weight_only_dequantize_") + (packed ? "int4_" : "int8_") +
                      name_of(output) + "_" + name_of(scales);
    if (asymmetric) key += std::string("_") + name_of(zeros);
    return key;
  }

  // A line is a group of a row.
  ir::Kernel build() const {
    Builder b(key());
    const Type type = ir::compute_type(output);
    const Address to = b.write(output), from = b.read(packed ? GRAFT_INT32 : GRAFT_INT8);
    const Address scale_of = b.read(scales), zero_of = asymmetric ? b.read(zeros) : scale_of;
    Value lines, per_item, first_row, groups, group, k, row_stride, stride;
    Value scale_row, scale_group, zero_row, zero_group;
    for (Value* value : {&lines, &per_item, &first_row, &groups, &group, &k, &row_stride, &stride,
                         &scale_row, &scale_group, &zero_row, &zero_group}) {
      *value = b.index();
    }
    each_line(b, lines, per_item, [&](Value line) {
      const Value row = line / groups, in_weight = row + first_row, which = line % groups;
      const Value first = which * group;
      const Value scale = cast(type, scale_of.load(in_weight * scale_row + which * scale_group));
      Value zero = b.constant(type, 0);
      if (asymmetric) zero = cast(type, zero_of.load(in_weight * zero_row + which * zero_group));
      const auto number = [&](Value integer) {
        if (packed) return (cast(type, integer) - double{kNibbleBias}) * scale + zero;
        return (cast(type, integer) - zero) * scale;
      };
      if (packed) {
        const Value start = in_weight / kWords * (k / kNibblesOfWord) * kWords + in_weight % kWords;
        b.loop(first / kNibblesOfWord, (first + group) / kNibblesOfWord, [&](Value at) {
          const Value word = cast(Type::kU32, from.load(start + at * kWords));
          b.vector_loop(b.i64(0), b.i64(kNibblesOfWord), [&](Value j) {
            const Value integer = (word >> cast(Type::kU32, j * 4)) & 15;
            to.store(row * k + at * kNibblesOfWord + j, number(cast(Type::kI32, integer)));
          });
        });
      } else {
        b.vector_loop(first, first + group, [&](Value i) {
          to.store(row * k + i, number(from.load(in_weight * row_stride + i * stride)));
        });
      }
    });
    return b.finish();
  }
};

}  // namespace

void dequantize(Stream& stream, const TensorView& to, const TensorView& weight,
                const WeightScales& scales, int64_t first) {
  const bool packed = weight.dtype == GRAFT_INT32, asymmetric = scales.zeros != nullptr;
  const TensorView& zeros = asymmetric ? *scales.zeros : scales.scales;
  const DequantizeKernel kernel{to.dtype, scales.scales.dtype, zeros.dtype, asymmetric, packed};
  const int64_t k = to.sizes[1];
  const WorkSplit split = split_work(to.sizes[0] * scales.groups(), scales.group);
  Arguments arguments;
  arguments.write(to).read(weight).read(scales.scales);
  if (asymmetric) arguments.read(zeros);
  arguments.index(split.lines).index(split.per_item).index(first).index(scales.groups());
  arguments.index(scales.group).index(k);
  arguments.index(packed ? 0 : weight.strides[0]).index(packed ? 0 : weight.strides[1]);
  arguments.index(scales.scales.strides[1]).index(scales.scales.strides[0]);
  arguments.index(zeros.strides[1]).index(zeros.strides[0]);
  launch_kernel(stream, kernel, split.grid, arguments);
}

}  // namespace graft
