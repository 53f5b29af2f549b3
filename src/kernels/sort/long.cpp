// src/kernels/sort/long.cpp: radix sort of one long row by many work-items.
//
// The row is cut into chunks. Each pass counts the digits of every chunk, turns the counts into the
// places where the chunks' entries go, and moves the entries. A pass in which all entries have one
// digit moves nothing: state[p], which half the entries lie in before pass p, then stays.
#include <algorithm>

#include "kernels/launch/arguments.h"
#include "kernels/launch/workspace.h"
#include "kernels/sort/key.h"
#include "kernels/sort/rows.h"

namespace graft {
namespace {

using namespace ir;

Value digit(Value key, Value shift) {
  const Value low = (key >> cast(key.type(), shift)) & key.builder().constant(key.type(), 255);
  return cast(Type::kI64, low);
}

template <class Body>
void each_of_chunk(Builder& b, Value chunk, Value n, Body body) {
  const Value begin = b.item() * chunk;
  b.loop(begin, ir::minimum(begin + chunk, n), body);
}

ir::Kernel build_entries(const std::string& name, graft_dtype dtype, bool descending, bool wide) {
  Builder b(name);
  const SortEntries entries(b, dtype, wide);
  const Address state = b.write(GRAFT_INT64), input = b.read(key_storage(dtype));
  const Value chunk = b.index(), n = b.index();
  b.if_(b.item() == 0, [&] { state.store(b.i64(0), b.i64(0)); });
  each_of_chunk(b, chunk, n, [&](Value i) {
    entries.store(i, {sort_key(input.load(i), dtype, descending), i});
  });
  return b.finish();
}

ir::Kernel build_counts(const std::string& name, graft_dtype dtype, bool wide) {
  Builder b(name);
  const SortEntries entries(b, dtype, wide);
  const Address state = b.read(GRAFT_INT64), counts = b.write(GRAFT_INT64);
  const Value chunk = b.index(), n = b.index(), pass = b.index();
  const Lanes found(b, Type::kI64, kDigits);
  b.vector_loop(b.i64(0), b.i64(kDigits), [&](Value i) { found.store(i, b.i64(0)); });
  const Value from = state.load(pass) * n;
  each_of_chunk(b, chunk, n, [&](Value i) {
    const Value at = digit(entries.load(from + i).key, pass * 8);
    found.store(at, found.load(at) + 1);
  });
  b.vector_loop(b.i64(0), b.i64(kDigits),
                [&](Value i) { counts.store(b.item() * kDigits + i, found.load(i)); });
  return b.finish();
}

// One work-item: counts become places, in the order of digits, then of chunks.
ir::Kernel build_places(const std::string& name) {
  Builder b(name);
  const Address state = b.update(GRAFT_INT64), counts = b.update(GRAFT_INT64);
  const Value chunks = b.index(), n = b.index(), pass = b.index();
  const Variable total(b.i64(0)), moves(b.i64(1));
  b.loop(b.i64(0), b.i64(kDigits), [&](Value d) {
    const Value before = total.get();
    b.loop(b.i64(0), chunks, [&](Value c) {
      const Value count = counts.load(c * kDigits + d);
      counts.store(c * kDigits + d, total.get());
      total = total.get() + count;
    });
    moves = select(total.get() - before == n, b.i64(0), moves.get());
  });
  state.store(pass + 1, state.load(pass) ^ moves.get());
  return b.finish();
}

ir::Kernel build_move(const std::string& name, graft_dtype dtype, bool wide) {
  Builder b(name);
  const SortEntries entries(b, dtype, wide);
  const Address state = b.read(GRAFT_INT64), counts = b.read(GRAFT_INT64);
  const Value chunk = b.index(), n = b.index(), pass = b.index();
  const Value source = state.load(pass), target = state.load(pass + 1);
  b.if_(source != target, [&] {
    const Lanes places(b, Type::kI64, kDigits);
    b.vector_loop(b.i64(0), b.i64(kDigits),
                  [&](Value i) { places.store(i, counts.load(b.item() * kDigits + i)); });
    each_of_chunk(b, chunk, n, [&](Value i) {
      const SortEntries::Entry entry = entries.load(source * n + i);
      const Value d = digit(entry.key, pass * 8);
      const Value at = places.load(d);
      places.store(d, at + 1);
      entries.store(target * n + at, entry);
    });
  });
  return b.finish();
}

ir::Kernel build_results(const std::string& name, graft_dtype dtype, bool wide) {
  Builder b(name);
  const SortEntries entries(b, dtype, wide);
  const Address state = b.read(GRAFT_INT64), values = b.write(key_storage(dtype));
  const Address indices = b.write(GRAFT_INT64), input = b.read(key_storage(dtype));
  const Value chunk = b.index(), n = b.index(), passes = b.index();
  const Value from = state.load(passes) * n;
  each_of_chunk(b, chunk, n, [&](Value i) {
    const Value position = entries.load(from + i).position;
    indices.store(i, position);
    values.store(i, input.load(position));
  });
  return b.finish();
}

// The launches of one row.
class LongSort {
 public:
  LongSort(Stream& stream, graft_dtype dtype, bool descending, int64_t n)
      : stream_(stream),
        dtype_(dtype),
        descending_(descending),
        wide_(SortEntries::is_wide(dtype, n)),
        n_(n),
        chunk_(std::max(kChunkElements, (n + kMostChunks - 1) / kMostChunks)),
        chunks_((n + chunk_ - 1) / chunk_),
        entries_(stream, entry_bytes()),
        counts_(stream, count_bytes()),
        state_(stream, kStateBytes) {}

  void run(graft_address values, graft_address indices, graft_address input) {
    const uint64_t bytes = static_cast<uint64_t>(n_) * size_of(dtype_);
    const auto passes = static_cast<int64_t>(size_of(dtype_));
    const std::string direction = descending_ ? "_descending" : "";
    Arguments first = with_entries().address(state_.address(), kStateBytes, GRAFT_ACCESS_WRITE);
    first.address(input, bytes, GRAFT_ACCESS_READ).index(chunk_).index(n_);
    launch_built(stream_, key("sort_long_entries" + direction), chunks_, first, build_entries,
                 dtype_, descending_, wide_);
    for (int64_t pass = 0; pass < passes; ++pass) run_pass(pass);
    Arguments last = with_entries().address(state_.address(), kStateBytes, GRAFT_ACCESS_READ);
    last.address(values, bytes, GRAFT_ACCESS_WRITE);
    last.address(indices, static_cast<uint64_t>(n_) * 8, GRAFT_ACCESS_WRITE);
    last.address(input, bytes, GRAFT_ACCESS_READ).index(chunk_).index(n_).index(passes);
    launch_built(stream_, key("sort_long_results"), chunks_, last, build_results, dtype_, wide_);
  }

 private:
  static constexpr uint64_t kStateBytes = 9 * 8;  // before each of at most 8 passes, and after
  static constexpr uint32_t kUpdate = GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE;

  uint64_t entry_bytes() const { return SortEntries::bytes(wide_, 2 * n_); }
  uint64_t count_bytes() const { return static_cast<uint64_t>(chunks_ * kDigits) * 8; }
  Arguments with_entries() const {
    return Arguments().address(entries_.address(), entry_bytes(), kUpdate);
  }

  void run_pass(int64_t pass) {
    Arguments count = with_entries().address(state_.address(), kStateBytes, GRAFT_ACCESS_READ);
    count.address(counts_.address(), count_bytes(), GRAFT_ACCESS_WRITE);
    count.index(chunk_).index(n_).index(pass);
    launch_built(stream_, key("sort_long_counts"), chunks_, count, build_counts, dtype_, wide_);
    Arguments place;
    place.address(state_.address(), kStateBytes, kUpdate);
    place.address(counts_.address(), count_bytes(), kUpdate);
    place.index(chunks_).index(n_).index(pass);
    launch_built(stream_, key("sort_long_places"), 1, place, build_places);
    Arguments move = with_entries().address(state_.address(), kStateBytes, GRAFT_ACCESS_READ);
    move.address(counts_.address(), count_bytes(), GRAFT_ACCESS_READ);
    move.index(chunk_).index(n_).index(pass);
    launch_built(stream_, key("sort_long_move"), chunks_, move, build_move, dtype_, wide_);
  }

  std::string key(const std::string& what) const {
    return what + "_" + name_of(dtype_) + (wide_ ? "_wide" : "");
  }

  Stream& stream_;
  graft_dtype dtype_;
  bool descending_, wide_;
  int64_t n_, chunk_, chunks_;
  Workspace entries_, counts_, state_;
};

}  // namespace

void sort_long_rows(Stream& stream, const SortRows& rows) {
  LongSort sort(stream, rows.input.dtype, rows.descending, rows.n);
  for (int64_t row = 0; row < rows.rows; ++row) {
    const auto first = static_cast<uint64_t>(row * rows.n);
    const uint64_t bytes = first * size_of(rows.input.dtype);
    sort.run(rows.values.address + bytes, rows.indices.address + first * 8,
             rows.input.address + bytes);
  }
}

}  // namespace graft
