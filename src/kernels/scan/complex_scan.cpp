// src/kernels/scan/complex_scan.cpp: cumulative products and logarithms of sums of complex numbers.
#include "kernels/scan/complex_scan.h"

#include <limits>

#include "codegen/ops/complex_functions.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/staging.h"
#include "kernels/tensor/complex_parts.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

ComplexValue neutral(Builder& b, ComplexScan scan) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double start = scan == ComplexScan::kProduct ? 1 : -infinity;
  return {b.constant(Type::kF64, start), b.constant(Type::kF64, 0.0)};
}

// A line is one of [outer, n, inner].
ir::Kernel build(const std::string& key, ComplexScan scan, graft_dtype part) {
  Builder b(key);
  const Address to = b.write(part), from = b.read(part);
  const Value lines = b.index(), per_item = b.index(), n = b.index(), inner = b.index();
  each_line(b, lines, per_item, [&](Value line) {
    const Value base = line / inner * n * inner + line % inner;
    const ComplexValue first = neutral(b, scan);
    const Variable re(first.re), im(first.im);
    b.loop(b.i64(0), n, [&](Value i) {
      const Value real = (base + i * inner) * 2, imaginary = real + 1;
      const ComplexValue x = widened({from.load(real), from.load(imaginary)});
      const ComplexValue before{re.get(), im.get()};
      const ComplexValue after =
          scan == ComplexScan::kProduct ? before * x : complex_log_add_exp(x, before);
      re = after.re;
      im = after.im;
      const ComplexValue stored = narrowed(ir::compute_type(part), after);
      to.store(real, stored.re);
      to.store(imaginary, stored.im);
    });
  });
  return b.finish();
}

}  // namespace

void complex_scan(Stream& stream, ComplexScan scan, const TensorView& output,
                  const TensorView& input, int dim) {
  if (output.count() == 0) return;
  const StagedInput from(stream, input);
  StagedOutput to(stream, output);
  const int64_t n = input.rank == 0 ? 1 : input.sizes[dim];
  int64_t inner = 1;
  for (int d = dim + 1; d < input.rank; ++d) inner *= input.sizes[d];
  const WorkSplit split = split_work(input.count() / n, n);
  Arguments arguments;
  arguments.write(to.view()).read(from.view());
  arguments.index(split.lines).index(split.per_item).index(n).index(inner);
  const std::string key =
      std::string(scan == ComplexScan::kProduct ? "scan_product_" : "running_log_sum_exp_") +
      name_of(input.dtype);
  launch_built(stream, key, split.grid, arguments, build, scan, part_of(input.dtype));
  to.finish();
}

}  // namespace graft
