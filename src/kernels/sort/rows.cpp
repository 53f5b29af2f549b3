// src/kernels/sort/rows.cpp: sorts contiguous rows, each within one work-item.
#include "kernels/sort/rows.h"

#include <functional>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/launch/workspace.h"
#include "kernels/sort/key.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kScratchItems = 64;  // work-items that share the radix sort's scratch memory

std::string key_of(const char* name, graft_dtype dtype, bool descending, bool wide = false) {
  return std::string(name) + "_" + name_of(dtype) + (descending ? "_descending" : "") +
         (wide ? "_wide" : "");
}

ir::Kernel build_ranked(const std::string& name, graft_dtype dtype, bool descending) {
  Builder b(name);
  const Address values = b.write(key_storage(dtype)), indices = b.write(GRAFT_INT64);
  const Address input = b.read(key_storage(dtype));
  const Value rows = b.index(), per_item = b.index(), n = b.index();
  each_line(b, rows, per_item, [&](Value row) {
    const Value base = row * n;
    const Lanes keys(b, key_type(dtype), kRankedLength);
    b.vector_loop(b.i64(0), n, [&](Value j) {
      keys.store(j, sort_key(input.load(base + j), dtype, descending));
    });
    b.loop(b.i64(0), n, [&](Value i) {
      const Value key = keys.load(i);
      const auto before = [&](Value j) {
        const Value other = keys.load(j);
        return cast(Type::kI32, (other < key) | ((other == key) & (j < i)));
      };
      const Value zero = b.constant(Type::kI32, 0);
      const Value rank = cast(Type::kI64, ir::reduce(zero, b.i64(0), n, before, std::plus<>(), 16));
      values.store(base + rank, input.load(base + i));
      indices.store(base + rank, i);
    });
  });
  return b.finish();
}

// The radix sort of one row: keys and positions move between two halves of the item's scratch.
class DigitSort {
 public:
  DigitSort(Builder& b, graft_dtype dtype, bool descending, bool wide)
      : b_(b),
        dtype_(dtype),
        descending_(descending),
        values_(b.write(key_storage(dtype))),
        indices_(b.write(GRAFT_INT64)),
        input_(b.read(key_storage(dtype))),
        entries_(b, dtype, wide),
        passes_(size_of(dtype)),
        rows_(b.index()),
        per_item_(b.index()),
        n_(b.index()),
        counts_(b, Type::kU32, static_cast<uint32_t>(kDigits) * passes_) {}

  void build() {
    each_line(b_, rows_, per_item_, [&](Value row) {
      const Value base = row * n_, scratch = b_.item() * n_ * 2;
      const Variable from(scratch), to(scratch + n_);
      read(base, scratch);
      b_.loop(b_.i64(0), b_.i64(passes_), [&](Value pass) { move(pass, from, to); });
      b_.vector_loop(b_.i64(0), n_, [&](Value i) {
        const Value position = entries_.load(from.get() + i).position;
        indices_.store(base + i, position);
        values_.store(base + i, input_.load(base + position));
      });
    });
  }

 private:
  // The place in counts_ of key's digit in that pass.
  Value digit(Value key, Value pass) const {
    const Value shifted = key >> cast(key.type(), pass * 8);
    return pass * kDigits + cast(Type::kI64, shifted & b_.constant(key.type(), kDigits - 1));
  }

  Value key_at(Value at) const { return sort_key(input_.load(at), dtype_, descending_); }

  // Integers often lie close together: relative to the lowest, their upper digits are all 0 and the
  // passes over them are left out.
  Value lowest(Value base) const {
    const Type type = key_type(dtype_);
    if (is_floating(dtype_) || passes_ < 4) return b_.constant(type, 0);
    return ir::reduce(
        b_.constant(type, ~uint64_t{0} >> (64 - 8 * passes_)), b_.i64(0), n_,
        [&](Value i) { return key_at(base + i); },
        [](Value x, Value y) { return select(x < y, x, y); }, 16);
  }

  // Makes the entries and counts the digits of every pass.
  void read(Value base, Value scratch) {
    const Value origin = lowest(base);
    b_.vector_loop(b_.i64(0), b_.i64(kDigits * passes_),
                   [&](Value i) { counts_.store(i, b_.constant(Type::kU32, 0)); });
    b_.loop(b_.i64(0), n_, [&](Value i) {
      const Value key = key_at(base + i) - origin;
      entries_.store(scratch + i, {key, i});
      for (int64_t pass = 0; pass < passes_; ++pass) {
        const Value place = digit(key, b_.i64(pass));
        counts_.store(place, counts_.load(place) + 1);
      }
    });
  }

  // One pass, left out where all keys have the same digit.
  void move(Value pass, const Variable& from, const Variable& to) {
    const Value first = entries_.load(from.get()).key;
    const Value same = cast(Type::kI64, counts_.load(digit(first, pass)));
    b_.if_(same != n_, [&] {
      const Variable total(b_.constant(Type::kU32, 0));
      b_.loop(pass * kDigits, (pass + 1) * kDigits, [&](Value place) {
        const Value count = counts_.load(place);
        counts_.store(place, total.get());
        total = total.get() + count;
      });
      const Value source = from.get(), target = to.get();
      b_.loop(b_.i64(0), n_, [&](Value i) {
        const SortEntries::Entry entry = entries_.load(source + i);
        const Value place = digit(entry.key, pass);
        const Value at = counts_.load(place);
        counts_.store(place, at + 1);
        entries_.store(target + cast(Type::kI64, at), entry);
      });
      from = target;
      to = source;
    });
  }

  Builder& b_;
  graft_dtype dtype_;
  bool descending_;
  Address values_, indices_, input_;
  SortEntries entries_;
  int64_t passes_;
  Value rows_, per_item_, n_;
  Lanes counts_;
};

ir::Kernel build_digits(const std::string& name, graft_dtype dtype, bool descending) {
  Builder b(name);
  DigitSort(b, dtype, descending, SortEntries::is_wide(dtype, 0)).build();
  return b.finish();
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_INT64}) {
    for (bool descending : {false, true}) {
      const std::string ranked = key_of("sort_ranked", dtype, descending);
      add(ranked, [=] { return build_ranked(ranked, dtype, descending); });
      const std::string digits = key_of("sort_digits", dtype, descending);
      add(digits, [=] { return build_digits(digits, dtype, descending); });
    }
  }
});

}  // namespace

void sort_rows_by_rank(Stream& stream, const SortRows& rows) {
  const graft_dtype dtype = rows.input.dtype;
  const WorkSplit split = split_work(rows.rows, rows.n * 16);
  Arguments arguments;
  arguments.write(rows.values).write(rows.indices).read(rows.input);
  arguments.index(split.lines).index(split.per_item).index(rows.n);
  const std::string key = key_of("sort_ranked", dtype, rows.descending);
  launch_built(stream, key, split.grid, arguments, build_ranked, dtype, rows.descending);
}

void sort_rows_by_digits(Stream& stream, const SortRows& rows) {
  const graft_dtype dtype = rows.input.dtype;
  WorkSplit split = split_work(rows.rows, rows.n * 8);
  split.per_item = std::max(split.per_item, (rows.rows + kScratchItems - 1) / kScratchItems);
  split.grid = (rows.rows + split.per_item - 1) / split.per_item;
  const uint64_t bytes =
      SortEntries::bytes(SortEntries::is_wide(dtype, rows.n), split.grid * rows.n * 2);
  const Workspace scratch(stream, bytes);
  Arguments arguments;
  arguments.write(rows.values).write(rows.indices).read(rows.input);
  arguments.address(scratch.address(), bytes, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
  arguments.index(split.lines).index(split.per_item).index(rows.n);
  const std::string key = key_of("sort_digits", dtype, rows.descending);
  launch_built(stream, key, split.grid, arguments, build_digits, dtype, rows.descending);
}

}  // namespace graft
