// src/kernels/assertion.cpp: conditions on data that are reported late.
#include "kernels/assertion.h"

#include <string>

#include "codegen/builder.h"
#include "codegen/program_cache.h"
#include "kernels/arguments.h"
#include "kernels/error_record.h"
#include "kernels/strided_loop.h"
#include "runtime/dtype.h"
#include "runtime/op_tag.h"

namespace graft {
namespace {

using ir::Address;
using ir::Builder;
using ir::Type;
using ir::Value;

ir::Kernel build(const std::string& key, graft_dtype dtype) {
  Builder b(key);
  const Address smallest = b.read(dtype), largest = b.read(dtype), record = b.update(GRAFT_INT64);
  const Value low = b.scalar(GRAFT_FLOAT64), high = b.scalar(GRAFT_FLOAT64);
  const Value head = b.index(), message = b.index();
  const Value least = cast(Type::kF64, smallest.load(b.i64(0)));
  const Value most = cast(Type::kF64, largest.load(b.i64(0)));
  b.if_(!((least >= low) & (most <= high)), [&] {
    record.store(b.i64(1), message);
    record.store(b.i64(0), head);
  });
  return b.finish();
}

ir::Kernel build_nonzero(const std::string& key, graft_dtype dtype) {
  Builder b(key);
  const Address integers = b.read(dtype), record = b.update(GRAFT_INT64);
  const Value head = b.index(), message = b.index();
  StridedLoop loop(b, 1);
  loop.each([&](const std::vector<Value>& at) {
    const Value integer = integers.load(at[0]);
    b.if_(integer.type() == Type::kBool ? !integer : integer == 0, [&] {
      record.store(b.i64(1), message);
      record.store(b.i64(0), head);
    });
  });
  return b.finish();
}

void append_record(Arguments& arguments, Stream& stream) {
  arguments.address(error_record(stream), sizeof(IndexError),
                    GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
}

// What a failed condition writes there.
void append_words(Arguments& arguments, std::string_view message) {
  const uint64_t code = static_cast<uint64_t>(IndexErrorCode::kAssertion);
  arguments.index(static_cast<int64_t>(static_cast<uint64_t>(current_tag()) << 32 | code));
  arguments.index(static_cast<int64_t>(op_tag(message)));
}

}  // namespace

void require_within(Stream& stream, const TensorView& smallest, const TensorView& largest,
                    double low, double high, std::string_view message) {
  const std::string key = std::string("require_within_") + name_of(smallest.dtype);
  Arguments arguments;
  arguments.read(smallest).read(largest);
  append_record(arguments, stream);
  arguments.scalar(Scalar::of(low), sizeof(low)).scalar(Scalar::of(high), sizeof(high));
  append_words(arguments, message);
  stream.launch(get_kernel(stream.device(), key, [&] { return build(key, smallest.dtype); }), 1,
                arguments.span());
}

void require_nonzero(Stream& stream, const TensorView& integers, std::string_view message) {
  TensorView each = integers;
  for (int d = 0; d < each.rank; ++d) {
    if (each.strides[d] == 0 && each.sizes[d] > 0) each.sizes[d] = 1;
  }
  if (each.count() == 0) return;
  const std::string key = std::string("require_nonzero_") + name_of(each.dtype);
  Arguments arguments;
  arguments.read(each);
  append_record(arguments, stream);
  append_words(arguments, message);
  const WorkSplit split = append_loops(arguments, Axes::of({&each}));
  stream.launch(get_kernel(stream.device(), key, [&] { return build_nonzero(key, each.dtype); }),
                static_cast<uint64_t>(split.grid), arguments.span());
}

}  // namespace graft
