// src/kernels/attention/kernel.cpp: the kernel that makes weights of a block of scores.
#include "kernels/attention/kernel.h"

#include <functional>
#include <limits>

#include "codegen/ir/builder.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {

using namespace ir;

std::string AttentionKernel::key() const {
  return std::string("attention_weights_") + name_of(dtype) +
         (biased ? std::string("_") + name_of(bias) : "");
}

ir::Kernel AttentionKernel::build() const {
  Builder b(key());
  const Type type = ir::compute_type(dtype);
  const Address scores = b.update(dtype), logsumexp = b.write(dtype);
  const Address added = biased ? b.read(bias) : scores;
  const Value lines = b.index(), per_item = b.index(), rows = b.index(), columns = b.index();
  const Value first_row = b.index(), out_stride = b.index();
  const Value bias_head = b.index(), bias_row = b.index(), bias_column = b.index();
  const Value lowest = b.constant(type, -std::numeric_limits<double>::infinity());
  each_line(b, lines, per_item, [&](Value line) {
    const Value row = line % rows, head = line / rows, at = line * columns;
    const Value seen = select(first_row < 0, columns, ir::minimum(columns, first_row + row + 1));
    const Value from = head * bias_head + row * bias_row;
    const auto score = [&](Value i) {
      const Value x = scores.load(at + i);
      return biased ? x + cast(type, added.load(from + i * bias_column)) : x;
    };
    const Value largest = ir::reduce(lowest, b.i64(0), seen, score, ir::maximum);
    const Value base = select(largest == lowest, 0, largest);
    b.vector_loop(b.i64(0), seen, [&](Value i) { scores.store(at + i, exp(score(i) - base)); });
    const Value sum = ir::reduce(
        b.constant(type, 0), b.i64(0), seen, [&](Value i) { return scores.load(at + i); },
        std::plus<>());
    const Value factor = select(sum == 0, 0, 1 / sum);
    b.vector_loop(b.i64(0), seen,
                  [&](Value i) { scores.store(at + i, scores.load(at + i) * factor); });
    b.vector_loop(seen, columns, [&](Value i) { scores.store(at + i, b.constant(type, 0)); });
    logsumexp.store(head * out_stride + row, base + log(sum));
  });
  return b.finish();
}

}  // namespace graft
