// src/kernels/scan/scan.cpp: cumulative sums and products along one dimension.
#include "kernels/scan/scan.h"

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/reduce/programs.h"
#include "kernels/scan/complex_scan.h"
#include "kernels/tensor/complex_parts.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kBlock = 64;
// Rows that are walked along together: each of their sums waits for the one before it.
constexpr int64_t kRows = 4;

struct ScanKernel {
  bool product;
  bool rows;  // inner is 1
  graft_dtype output, input;

  std::string key() const {
    return std::string(product ? "scan_product_" : "scan_sum_") + (rows ? "rows_" : "") +
           name_of(output) + "_" + name_of(input);
  }
  ir::Kernel build() const;
};

class ScanWriter {
 public:
  explicit ScanWriter(const ScanKernel& kernel)
      : product_(kernel.product),
        half_(is_half(kernel.output)),
        b_(kernel.key()),
        type_(is_floating(kernel.output) ? ir::Type::kF64 : ir::Type::kI64),
        to_(b_.write(kernel.output)),
        from_(b_.read(kernel.input)) {
    for (Value* value : {&lines_, &per_item_, &n_, &inner_, &outer_}) *value = b_.index();
  }

  // A line is a block of neighbouring columns of [outer, n, inner], walked down together.
  ir::Kernel columns() {
    each_line(b_, lines_, per_item_, [&](Value line) {
      const Value blocks = (inner_ + (kBlock - 1)) / kBlock;
      const Value column = line % blocks * kBlock;
      const Value width = ir::minimum(inner_ - column, b_.i64(kBlock));
      const Value base = line / blocks * n_ * inner_ + column;
      const Lanes totals(b_, type_, kBlock);
      b_.vector_loop(b_.i64(0), b_.i64(kBlock), [&](Value lane) { totals.store(lane, first()); });
      b_.loop(b_.i64(0), n_, [&](Value i) {
        const Value row = base + i * inner_;
        b_.vector_loop(b_.i64(0), width, [&](Value lane) {
          const Value before = totals.load(lane), x = load(row + lane);
          const Value total = product_ ? before * x : before + x;
          totals.store(lane, total);
          store(row + lane, total);
        });
      });
    });
    return b_.finish();
  }

  // A line is kRows rows of [outer, n], the last ones one by one.
  ir::Kernel rows() {
    each_line(b_, lines_, per_item_, [&](Value line) {
      const Value begin = line * kRows;
      b_.if_(
          begin + kRows <= outer_, [&] { walk(begin * n_, kRows); },
          [&] { b_.loop(begin, outer_, [&](Value row) { walk(row * n_, 1); }); });
    });
    return b_.finish();
  }

 private:
  Value first() { return b_.constant(type_, product_ ? 1 : 0); }
  Value load(Value at) const { return cast(type_, from_.load(at)); }
  void store(Value at, Value total) const {
    to_.store(at, cast(ir::compute_type(to_.dtype), total));
  }

  // Long rows of half types go through a private array in blocks, so that vectors convert them.
  void walk(Value base, int64_t rows) {
    std::vector<ir::Variable> totals;
    for (int64_t k = 0; k < rows; ++k) totals.emplace_back(first());
    auto step = [&](int64_t k, Value x) {
      const ir::Variable& total = totals[static_cast<size_t>(k)];
      total = product_ ? total.get() * x : total.get() + x;
      return total.get();
    };
    const Lanes block(b_, type_, static_cast<uint32_t>(kBlock * rows));
    b_.if_((n_ < kBlock) | b_.boolean(!half_),
           [&] {
             b_.loop(base, base + n_, [&](Value i) {
               std::vector<Value> sums;
               for (int64_t k = 0; k < rows; ++k) sums.push_back(step(k, load(i + n_ * k)));
               for (int64_t k = 0; k < rows; ++k) store(i + n_ * k, sums[static_cast<size_t>(k)]);
             });
           },
           [&] {
             b_.loop(
                 b_.i64(0), n_,
                 [&](Value begin) {
                   const Value width = ir::minimum(n_ - begin, b_.i64(kBlock));
                   auto each_row = [&](auto body) {
                     for (int64_t k = 0; k < rows; ++k) {
                       const Value at = base + begin + n_ * k;
                       b_.vector_loop(b_.i64(0), width,
                                      [&](Value i) { body(at + i, i + k * kBlock); });
                     }
                   };
                   each_row([&](Value at, Value lane) { block.store(lane, load(at)); });
                   b_.loop(b_.i64(0), width, [&](Value i) {
                     for (int64_t k = 0; k < rows; ++k) {
                       const Value lane = i + k * kBlock;
                       block.store(lane, step(k, block.load(lane)));
                     }
                   });
                   each_row([&](Value at, Value lane) { store(at, block.load(lane)); });
                 },
                 b_.i64(kBlock));
           });
  }

  const bool product_, half_;
  Builder b_;
  const ir::Type type_;
  const Address to_, from_;
  Value lines_, per_item_, n_, inner_, outer_;
};

ir::Kernel ScanKernel::build() const {
  ScanWriter writer(*this);
  return rows ? writer.rows() : writer.columns();
}

void scan(Stream& stream, bool product, const TensorView& output, const TensorView& input,
          int dim) {
  if (is_complex(input.dtype) || is_complex(output.dtype)) {
    throw Error(GRAFT_UNSUPPORTED,
                "scan: complex numbers keep their dtype; give an output of the input's dtype");
  }
  if (output.count() == 0) return;
  StagedInput from(stream, input);
  StagedOutput to(stream, output);
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < input.rank; ++d) (d < dim ? outer : inner) *= d == dim ? 1 : input.sizes[d];
  const int64_t n = input.rank == 0 ? 1 : input.sizes[dim];
  const bool rows = inner == 1;
  const ScanKernel kernel{product, rows, output.dtype, input.dtype};
  const WorkSplit split =
      rows ? split_work((outer + kRows - 1) / kRows, n * kRows)
           : split_work(outer * ((inner + kBlock - 1) / kBlock), n * std::min(inner, kBlock));
  Arguments arguments;
  arguments.write(to.view()).read(from.view());
  arguments.index(split.lines).index(split.per_item).index(n).index(inner).index(outer);
  launch_kernel(stream, kernel, split.grid, arguments);
  to.finish();
}

const PackEntry kPackedScans([](const PackEntry::Sink& add) {
  for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_INT64}) {
    for (bool rows : {false, true}) {
      PackEntry::put(add, ScanKernel{false, rows, dtype, dtype});
    }
  }
});

}  // namespace

void cumulative_sum(Stream& stream, const TensorView& output, const TensorView& input, int dim) {
  if (offer(stream, Operation::cumulative_sum, writes(output), reads(input), integers(dim))) return;
  if (is_complex(input.dtype) && input.dtype == output.dtype) {
    for (int part = 0; part < 2; ++part) {
      cumulative_sum(stream, complex_part(output, part), complex_part(input, part), dim);
    }
    return;
  }
  scan(stream, false, output, input, dim);
}

void cumulative_product(Stream& stream, const TensorView& output, const TensorView& input,
                        int dim) {
  if (offer(stream, Operation::cumulative_product, writes(output), reads(input), integers(dim)))
    return;
  if (is_complex(input.dtype) && input.dtype == output.dtype) {
    return complex_scan(stream, ComplexScan::kProduct, output, input, dim);
  }
  scan(stream, true, output, input, dim);
}

}  // namespace graft
