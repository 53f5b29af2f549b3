// src/kernels/index/embedding_bag.cpp: sums, means and maxima of rows of a table, bag by bag.
#include "kernels/index/embedding_bag.h"

#include <fmt/format.h>

#include <memory>

#include "kernels/launch/arguments.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kBlock = 64;

struct BagKernel {
  BagMode mode;
  bool weighted;
  graft_dtype data, index;

  std::string key() const {
    static const char* const kModes[] = {"sum", "mean", "max"};
    return fmt::format("embedding_bag_{}{}_{}_{}", kModes[static_cast<int>(mode)],
                       weighted ? "_weighted" : "", name_of(data), name_of(index));
  }
};

class BagWriter {
 public:
  explicit BagWriter(const BagKernel& kernel)
      : k_(kernel), b_(kernel.key()), type_(ir::compute_type(kernel.data)) {
    output_ = b_.write(k_.data);
    bags_ = b_.write(k_.index);
    sizes_ = b_.write(k_.index);
    if (k_.mode == BagMode::kMax) rows_ = b_.write(k_.index);
    table_ = b_.read(k_.data);
    indices_ = b_.read(k_.index);
    offsets_ = b_.read(k_.index);
    if (k_.weighted) weights_ = b_.read(k_.data);
    checker_ = std::make_unique<IndexChecker>(b_);
    b_.indices(
        {&lines_, &per_item_, &n_, &height_, &row_stride_, &stride_, &given_, &count_, &padding_});
  }

  ir::Kernel write() {
    each_line(b_, lines_, per_item_, [&](Value bag) {
      // The first bag begins with the indices; an offset may be their number.
      const Value places = select(bag == 0, b_.i64(1), count_ + 1);
      const Value begin = checker_->check(at(offsets_, bag), places, false);
      const Variable end(count_);
      b_.if_(bag + 1 < given_,
             [&] { end = checker_->check(at(offsets_, bag + 1), count_ + 1, false); });
      const Variable size(b_.i64(0));
      b_.loop(begin, end.get(), [&](Value i) {
        bags_.store(i, cast(integer(), bag));
        size = size.get() + select(at(indices_, i) == padding_, b_.i64(0), b_.i64(1));
      });
      sizes_.store(bag, cast(integer(), size.get()));
      b_.loop(
          b_.i64(0), n_, [&](Value column) { block(bag, begin, end.get(), size.get(), column); },
          b_.i64(kBlock));
    });
    return b_.finish();
  }

 private:
  ir::Type integer() const { return ir::compute_type(k_.index); }
  Value at(const Address& from, Value i) { return cast(ir::Type::kI64, from.load(i)); }

  void block(Value bag, Value begin, Value end, Value size, Value column) {
    const Value width = ir::minimum(n_ - column, b_.i64(kBlock)), zero = b_.i64(0);
    const Lanes best(b_, type_, kBlock), rows(b_, integer(), kBlock);
    const Value nothing = b_.constant(type_, 0), nowhere = b_.constant(integer(), -1);
    b_.vector_loop(zero, b_.i64(kBlock), [&](Value i) {
      best.store(i, nothing);
      if (k_.mode == BagMode::kMax) rows.store(i, nowhere);
    });
    b_.loop(begin, end, [&](Value i) {
      const Value given = at(indices_, i);
      b_.if_(given != padding_, [&] {
        const Value row = checker_->check(given, height_, false);
        const Value from = row * row_stride_ + column * stride_;
        const Value scale = k_.weighted ? weights_.load(i) : nothing;
        const Value name = cast(integer(), row);
        b_.vector_loop(zero, width, [&](Value j) {
          Value x = table_.load(from + j * stride_);
          if (k_.weighted) x = x * scale;
          if (k_.mode != BagMode::kMax) return best.store(j, best.load(j) + x);
          const Value wins = (rows.load(j) < 0) | (x > best.load(j));
          best.store(j, select(wins, x, best.load(j)));
          rows.store(j, select(wins, name, rows.load(j)));
        });
      });
    });
    const Value to = bag * n_ + column;
    const Value divisor = cast(type_, ir::maximum(size, b_.i64(1)));
    b_.vector_loop(zero, width, [&](Value j) {
      const Value x = best.load(j);
      output_.store(to + j, k_.mode == BagMode::kMean ? x / divisor : x);
      if (k_.mode == BagMode::kMax) rows_.store(to + j, rows.load(j));
    });
  }

  const BagKernel k_;
  Builder b_;
  const ir::Type type_;
  Address output_, bags_, sizes_, rows_, table_, indices_, offsets_, weights_;
  std::unique_ptr<IndexChecker> checker_;
  Value lines_, per_item_, n_, height_, row_stride_, stride_, given_, count_, padding_;
};

}  // namespace

void embedding_bag(Stream& stream, const BagOutputs& outputs, const TensorView& table,
                   const TensorView& indices, const TensorView& offsets, const TensorView* weights,
                   BagMode mode, int64_t padding) {
  if (offer(stream, Operation::embedding_bag, [&](VendorCall& to) {
        to.write(outputs.output).write(outputs.bags).write(outputs.sizes).write(outputs.rows);
        to.read(table).read(indices).read(offsets).read(weights);
        to.integers({static_cast<int>(mode), padding});
      }))
    return;
  const int64_t bags = outputs.output.sizes[0], n = outputs.output.sizes[1];
  if (bags == 0) return;
  const BagKernel kernel{mode, weights != nullptr, table.dtype, indices.dtype};
  const int64_t count = indices.count();
  if (count > 0) require_elements(table.sizes[0], 0);
  const WorkSplit split = split_work(bags, (count / bags + 1) * (n + 4));
  Arguments arguments;
  arguments.write(outputs.output).write(outputs.bags).write(outputs.sizes);
  if (mode == BagMode::kMax) arguments.write(*outputs.rows);
  arguments.read(table).read(indices).read(offsets);
  if (weights != nullptr) arguments.read(*weights);
  append_checker(arguments, stream);
  arguments.indices({split.lines, split.per_item, n, table.sizes[0], table.strides[0],
                     table.strides[1], offsets.count(), count, padding});
  launch_kernel(stream, kernel.key(), split.grid, arguments,
                [&] { return BagWriter(kernel).write(); });
}

}  // namespace graft
