// src/kernels/sort/radix_select.cpp: picks from long rows without sorting them.
//
// The key of the wanted element is found 8 bits at a time, from the top: each pass counts the next
// digit of the keys that begin as the wanted one does. state: how many of the keys that still match
// come before the wanted one, and the bits found so far.
#include "kernels/sort/radix_select.h"

#include <algorithm>
#include <functional>
#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/workspace.h"
#include "kernels/sort/key.h"

namespace graft {
namespace {

using namespace ir;

Value number(bool condition, Value a, Value b) { return condition ? a : b; }

// The part of a row that a work-item sees.
struct Chunk {
  Value begin, end;
  Chunk(Builder& b, Value chunk, Value n)
      : begin(b.item() * chunk), end(ir::minimum(begin + chunk, n)) {}
};

// counts[chunk] = how many keys are the one found, or, at first, how many are NaN's.
ir::Kernel build_matches(const std::string& name, graft_dtype dtype, bool of_nan) {
  Builder b(name);
  const Address input = b.read(key_storage(dtype)), state = b.read(GRAFT_INT64);
  const Address counts = b.write(GRAFT_INT64);
  const Value length = b.index(), n = b.index();
  const Chunk chunk(b, length, n);
  const uint64_t all = ~uint64_t{0} >> (64 - key_bits(dtype));
  const Value found = cast(key_type(dtype), bitcast(Type::kU64, state.load(b.i64(1))));
  const Value wanted = number(of_nan, b.constant(key_type(dtype), all), found);
  const auto same = [&](Value i) {
    return cast(Type::kI64, sort_key(input.load(i), dtype, false) == wanted);
  };
  counts.store(b.item(), ir::reduce(b.i64(0), chunk.begin, chunk.end, same, std::plus<>(), 16));
  return b.finish();
}

// One work-item: the rank that is wanted.
ir::Kernel build_rank(const std::string& name, Pick which) {
  Builder b(name);
  const Address state = b.write(GRAFT_INT64), counts = b.read(GRAFT_INT64);
  const Value chunks = b.index(), n = b.index(), nth = b.index();
  const Variable nan(b.i64(0));
  b.loop(b.i64(0), chunks, [&](Value i) { nan = nan.get() + counts.load(i); });
  const Value valid = n - nan.get();
  Value rank = nth;
  if (which == Pick::kMedian) rank = select(valid == n, (n - 1) / 2, valid);
  if (which == Pick::kNanMedian) rank = ir::maximum(valid - 1, b.i64(0)) / 2;
  state.store(b.i64(0), rank);
  state.store(b.i64(1), b.i64(0));
  return b.finish();
}

ir::Kernel build_digits(const std::string& name, graft_dtype dtype) {
  Builder b(name);
  const Address input = b.read(key_storage(dtype)), state = b.read(GRAFT_INT64);
  const Address counts = b.write(GRAFT_INT64);
  const Value length = b.index(), n = b.index(), shift = b.index();
  const Chunk chunk(b, length, n);
  const Lanes found(b, Type::kI64, kDigits);
  b.vector_loop(b.i64(0), b.i64(kDigits), [&](Value i) { found.store(i, b.i64(0)); });
  const Type type = key_type(dtype);
  const Value prefix = cast(type, bitcast(Type::kU64, state.load(b.i64(1))));
  const Value by = cast(type, shift);
  b.loop(chunk.begin, chunk.end, [&](Value i) {
    const Value rest = sort_key(input.load(i), dtype, false) >> by;
    const Value digit = cast(Type::kI64, rest & b.constant(type, kDigits - 1));
    const Value matches = (rest >> b.constant(type, 8)) == prefix;
    found.store(digit, found.load(digit) + cast(Type::kI64, matches));
  });
  b.vector_loop(b.i64(0), b.i64(kDigits),
                [&](Value i) { counts.store(b.item() * kDigits + i, found.load(i)); });
  return b.finish();
}

// One work-item: the digit within whose keys the rank falls.
ir::Kernel build_choice(const std::string& name) {
  Builder b(name);
  const Address state = b.update(GRAFT_INT64), counts = b.read(GRAFT_INT64);
  const Value chunks = b.index();
  const Value rank = state.load(b.i64(0)), prefix = state.load(b.i64(1));
  const Variable before(b.i64(0)), digit(b.i64(-1)), skipped(b.i64(0));
  b.loop(b.i64(0), b.i64(kDigits), [&](Value d) {
    const Variable count(b.i64(0));
    b.loop(b.i64(0), chunks, [&](Value c) { count = count.get() + counts.load(c * kDigits + d); });
    const Value after = before.get() + count.get();
    const Value here = (digit.get() < 0) & (after > rank);
    skipped = select(here, before.get(), skipped.get());
    digit = select(here, d, digit.get());
    before = after;
  });
  state.store(b.i64(0), rank - skipped.get());
  state.store(b.i64(1), prefix * kDigits + digit.get());
  return b.finish();
}

// One work-item: the element of the key found that has rank others before it.
ir::Kernel build_result(const std::string& name, graft_dtype dtype) {
  Builder b(name);
  const Address input = b.read(key_storage(dtype)), state = b.read(GRAFT_INT64);
  const Address counts = b.read(GRAFT_INT64), values = b.write(key_storage(dtype));
  const Address indices = b.write(GRAFT_INT64);
  const Value length = b.index(), n = b.index(), chunks = b.index();
  const Value wanted = cast(key_type(dtype), bitcast(Type::kU64, state.load(b.i64(1))));
  const Variable rank(state.load(b.i64(0))), chunk(b.i64(-1)), before(b.i64(0));
  b.loop(b.i64(0), chunks, [&](Value c) {
    const Value after = before.get() + counts.load(c);
    const Value here = (chunk.get() < 0) & (after > rank.get());
    rank = select(here, rank.get() - before.get(), rank.get());
    chunk = select(here, c, chunk.get());
    before = select(chunk.get() < 0, after, before.get());
  });
  const Value begin = chunk.get() * length;
  const Variable seen(b.i64(0)), place(begin);
  b.loop(begin, ir::minimum(begin + length, n), [&](Value i) {
    const Value same = sort_key(input.load(i), dtype, false) == wanted;
    place = select(same & (seen.get() == rank.get()), i, place.get());
    seen = seen.get() + cast(Type::kI64, same);
  });
  values.store(b.i64(0), input.load(place.get()));
  indices.store(b.i64(0), place.get());
  return b.finish();
}

// The launches of one row.
class LongSelect {
 public:
  LongSelect(Stream& stream, graft_dtype dtype, int64_t n)
      : stream_(stream),
        dtype_(dtype),
        n_(n),
        chunk_(std::max(kChunkElements, (n + kMostChunks - 1) / kMostChunks)),
        chunks_((n + chunk_ - 1) / chunk_),
        counts_(stream, count_bytes()),
        state_(stream, 16) {}

  void run(Pick which, graft_address values, graft_address indices, graft_address input,
           int64_t nth) {
    const auto over_input = [&](uint64_t bytes, uint32_t access) {
      Arguments arguments;
      arguments.address(input, static_cast<uint64_t>(n_) * size_of(dtype_), GRAFT_ACCESS_READ);
      arguments.address(state_.address(), 16, GRAFT_ACCESS_READ);
      return arguments.address(counts_.address(), bytes, access);
    };
    const auto per_chunk = static_cast<uint64_t>(chunks_) * 8;
    Arguments matches = over_input(per_chunk, GRAFT_ACCESS_WRITE).index(chunk_).index(n_);
    const bool of_nan = is_floating(dtype_) && which != Pick::kNth;
    if (of_nan) {
      launch_built(stream_, key("select_nan"), chunks_, matches, build_matches, dtype_, true);
    }
    rank(which, of_nan ? chunks_ : 0, nth);
    for (int shift = static_cast<int>(key_bits(dtype_)) - 8; shift >= 0; shift -= 8) {
      Arguments digits =
          over_input(count_bytes(), GRAFT_ACCESS_WRITE).index(chunk_).index(n_).index(shift);
      launch_built(stream_, key("select_digits"), chunks_, digits, build_digits, dtype_);
      choose();
    }
    launch_built(stream_, key("select_matches"), chunks_, matches, build_matches, dtype_, false);
    Arguments result = over_input(per_chunk, GRAFT_ACCESS_READ);
    result.address(values, size_of(dtype_), GRAFT_ACCESS_WRITE);
    result.address(indices, 8, GRAFT_ACCESS_WRITE);
    result.index(chunk_).index(n_).index(chunks_);
    launch_built(stream_, key("select_result"), 1, result, build_result, dtype_);
  }

 private:
  uint64_t count_bytes() const { return static_cast<uint64_t>(chunks_ * kDigits) * 8; }

  void rank(Pick which, int64_t counted, int64_t nth) {
    Arguments arguments;
    arguments.address(state_.address(), 16, GRAFT_ACCESS_WRITE);
    arguments.address(counts_.address(), count_bytes(), GRAFT_ACCESS_READ);
    arguments.index(counted).index(n_).index(nth);
    const std::string what = "select_rank_" + std::to_string(static_cast<int>(which));
    launch_built(stream_, key(what), 1, arguments, build_rank, which);
  }

  void choose() {
    Arguments arguments;
    arguments.address(state_.address(), 16, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
    arguments.address(counts_.address(), count_bytes(), GRAFT_ACCESS_READ).index(chunks_);
    launch_built(stream_, key("select_choice"), 1, arguments, build_choice);
  }

  std::string key(const std::string& what) const { return what + "_" + name_of(dtype_); }

  Stream& stream_;
  graft_dtype dtype_;
  int64_t n_, chunk_, chunks_;
  Workspace counts_, state_;
};

}  // namespace

void pick_from_long_rows(Stream& stream, Pick which, const TensorView& values,
                         const TensorView& indices, const TensorView& input, int64_t n,
                         int64_t nth) {
  LongSelect select(stream, input.dtype, n);
  const uint64_t bytes = size_of(input.dtype);
  for (int64_t row = 0; row < input.count() / n; ++row) {
    const auto at = static_cast<uint64_t>(row);
    select.run(which, values.address + at * bytes, indices.address + at * 8,
               input.address + at * static_cast<uint64_t>(n) * bytes, nth);
  }
}

}  // namespace graft
