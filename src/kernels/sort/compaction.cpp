// src/kernels/sort/compaction.cpp: finds the elements that are marked, in order.
#include "kernels/sort/compaction.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "kernels/tensor/axes.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kChunkElements = 16384;
constexpr int64_t kMostChunks = 4096;

std::string key_of(const char* what, graft_dtype dtype) {
  return std::string("compaction_") + what + "_" + name_of(dtype);
}

Value is_marked(Value element) { return element.type() == Type::kBool ? element : element != 0; }

std::string positions_key(graft_dtype dtype, int rank) {
  return key_of("positions", dtype) + "_" + std::to_string(rank);
}

std::string runs_key(graft_dtype dtype) { return std::string("mark_runs_") + name_of(dtype); }

ir::Kernel build_count(const std::string& name, graft_dtype dtype) {
  Builder b(name);
  const Address marks = b.read(dtype), offsets = b.write(GRAFT_INT64);
  const Value chunk = b.index(), n = b.index();
  const Value begin = b.item() * chunk;
  const auto one = [&](Value i) { return cast(Type::kI64, is_marked(marks.load(i))); };
  offsets.store(b.item(),
                ir::reduce(b.i64(0), begin, ir::minimum(begin + chunk, n), one, std::plus<>(), 64));
  return b.finish();
}

// One work-item: counts become the numbers before each chunk; the total comes last.
ir::Kernel build_scan(const std::string& name) {
  Builder b(name);
  const Address offsets = b.update(GRAFT_INT64);
  const Value chunks = b.index();
  const Variable total(b.i64(0));
  b.loop(b.i64(0), chunks, [&](Value i) {
    const Value count = offsets.load(i);
    offsets.store(i, total.get());
    total = total.get() + count;
  });
  offsets.store(chunks, total.get());
  return b.finish();
}

ir::Kernel build_total(const std::string& name) {
  Builder b(name);
  const Address output = b.write(GRAFT_INT64), offsets = b.read(GRAFT_INT64);
  output.store(b.i64(0), offsets.load(b.index()));
  return b.finish();
}

// The position in the last dimension runs along; the others are taken apart where one is marked.
ir::Kernel build_positions(const std::string& name, graft_dtype dtype, int rank) {
  Builder b(name);
  const Address output = b.write(GRAFT_INT64), marks = b.read(dtype);
  const Address offsets = b.read(GRAFT_INT64);
  const Value chunk = b.index(), n = b.index(), limit = b.index();
  const Value line = b.index(), step = b.index();
  std::vector<Value> sizes;
  for (int d = 0; d < rank; ++d) sizes.push_back(b.index());
  const Value begin = b.item() * chunk, width = sizes.back();
  const Variable number(offsets.load(b.item())), row(begin / width), column(begin % width);
  b.loop(begin, ir::minimum(begin + chunk, n), [&](Value i) {
    const Value at = number.get(), marked = is_marked(marks.load(i));
    b.if_(marked & (at < limit), [&] {
      output.store(at * line + step * (rank - 1), column.get());
      Value rest = row.get();
      for (int d = rank - 2; d >= 0; --d) {
        const Value size = sizes[static_cast<size_t>(d)];
        const Value above = d == 0 ? b.i64(0) : rest / size;
        output.store(at * line + step * d, rest - above * size);
        rest = above;
      }
    });
    number = at + cast(Type::kI64, marked);
    const Value next = column.get() + 1;
    row = row.get() + cast(Type::kI64, next == width);
    column = select(next == width, b.i64(0), next);
  });
  return b.finish();
}

ir::Kernel build_numbers(const std::string& name, graft_dtype dtype, bool with_places) {
  Builder b(name);
  const Address output = b.write(GRAFT_INT64), marks = b.read(dtype);
  const Address offsets = b.read(GRAFT_INT64);
  const Address places = with_places ? b.read(GRAFT_INT64) : Address{};
  const Value chunk = b.index(), n = b.index();
  const Value begin = b.item() * chunk;
  const Variable number(offsets.load(b.item()) - 1);
  b.loop(begin, ir::minimum(begin + chunk, n), [&](Value i) {
    number = number.get() + cast(Type::kI64, is_marked(marks.load(i)));
    output.store(with_places ? places.load(i) : i, number.get());
  });
  return b.finish();
}

ir::Kernel build_runs(const std::string& name, graft_dtype dtype) {
  Builder b(name);
  const Address marks = b.write(GRAFT_BOOL), input = b.read(dtype);
  const Value rows = b.index(), per_item = b.index(), n = b.index();
  each_line(b, rows, per_item, [&](Value row) {
    const Value base = row * n;
    marks.store(base, b.boolean(true));
    b.vector_loop(b.i64(1), n, [&](Value i) {
      marks.store(base + i, input.load(base + i) != input.load(base + i - 1));
    });
  });
  return b.finish();
}

const PackEntry kPackedCompaction([](const PackEntry::Sink& add) {
  const graft_dtype marks = GRAFT_BOOL;
  const auto put = [&](const std::string& key, const auto& build, auto... values) {
    add(key, [=] { return build(key, values...); });
  };
  put("compaction_scan", build_scan);
  put("compaction_total", build_total);
  put(key_of("count", marks), build_count, marks);
  for (int rank : {1, 2, 3}) put(positions_key(marks, rank), build_positions, marks, rank);
  for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_INT64}) put(runs_key(dtype), build_runs, dtype);
});

}  // namespace

Compaction::Compaction(Stream& stream, const TensorView& marks)
    : stream_(stream),
      marks_(marks),
      n_(marks.count()),
      chunk_(std::max(kChunkElements, (n_ + kMostChunks - 1) / kMostChunks)),
      chunks_((n_ + chunk_ - 1) / chunk_),
      offsets_(stream, GRAFT_INT64, {chunks_ + 1}) {
  if (chunks_ > 0) {
    Arguments counting;
    counting.read(marks_).write(offsets_.view()).index(chunk_).index(n_);
    launch_built(stream, key_of("count", marks.dtype), chunks_, counting, build_count, marks.dtype);
  }
  Arguments scanning;
  scanning.update(offsets_.view()).index(chunks_);
  launch_built(stream, "compaction_scan", 1, scanning, build_scan);
}

Compaction::~Compaction() = default;

void Compaction::count(const TensorView& output) {
  Arguments arguments;
  arguments.write(output).read(offsets_.view()).index(chunks_);
  launch_built(stream_, "compaction_total", 1, arguments, build_total);
}

void Compaction::positions(const TensorView& output, int rank, const int64_t* sizes,
                           int64_t limit) {
  if (output.count() == 0 || chunks_ == 0) return;
  const graft_dtype dtype = marks_.dtype;
  Arguments arguments;
  arguments.update(output).read(marks_).read(offsets_.view());
  arguments.index(chunk_).index(n_).index(limit);
  arguments.index(output.strides[0]).index(output.rank > 1 ? output.strides[1] : 0);
  for (int d = 0; d < rank; ++d) arguments.index(sizes[d]);
  launch_built(stream_, positions_key(dtype, rank), chunks_, arguments, build_positions, dtype,
               rank);
}

void Compaction::numbers(const TensorView& output, const TensorView* places) {
  if (chunks_ == 0) return;
  const bool placed = places != nullptr;
  Arguments arguments;
  arguments.write(output).read(marks_).read(offsets_.view());
  if (placed) arguments.read(*places);
  arguments.index(chunk_).index(n_);
  launch_built(stream_, key_of(placed ? "numbers_at" : "numbers", marks_.dtype), chunks_, arguments,
               build_numbers, marks_.dtype, placed);
}

void mark_runs(Stream& stream, const TensorView& marks, const TensorView& input) {
  if (offer(stream, Operation::mark_runs, writes(marks), reads(input))) return;
  if (input.count() == 0) return;
  const int64_t n = input.sizes[input.rank - 1];
  const WorkSplit split = split_work(input.count() / n, n);
  Arguments arguments;
  arguments.write(marks).read(input);
  arguments.index(split.lines).index(split.per_item).index(n);
  launch_built(stream, runs_key(input.dtype), split.grid, arguments, build_runs, input.dtype);
}

}  // namespace graft
