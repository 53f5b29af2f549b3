// src/kernels/random/dropout.cpp: dropout, its gradient, and random permutations.
#include "codegen/cache/program_cache.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/random/philox.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kPerBlock = 4;

ir::Kernel build_forward(const std::string& key, graft_dtype data, graft_dtype mask) {
  Builder b(key);
  const Address output = b.write(data), kept = b.write(mask), input = b.read(data);
  const PhiloxWriter philox(b);
  const Value threshold = bitcast(Type::kU32, b.index32());
  const Value scale = cast(ir::compute_type(data), b.scalar(GRAFT_FLOAT64));
  philox.each(
      kPerBlock, Type::kU32, [](const PhiloxWords& words) { return words; },
      [&](Value element, Value word) {
        const Value keep = word >= threshold, x = input.load(element);
        kept.store(element, select(keep, b.constant(Type::kI32, 1), b.constant(Type::kI32, 0)));
        output.store(element, select(keep, x * scale, 0.0));
      });
  return b.finish();
}

ir::Kernel build_backward(const std::string& key, graft_dtype data, graft_dtype mask) {
  Builder b(key);
  const Address to = b.write(data), gradient = b.read(data), kept = b.read(mask);
  const Value lines = b.index(), per_item = b.index();
  const Value scale = cast(ir::compute_type(data), b.scalar(GRAFT_FLOAT64));
  const Value begin = b.item() * per_item;
  b.vector_loop(begin, ir::minimum(begin + per_item, lines), [&](Value i) {
    const Value keep = kept.load(i);
    const Value on = keep.type() == Type::kBool ? keep : keep != 0;
    to.store(i, select(on, gradient.load(i) * scale, 0.0));
  });
  return b.finish();
}

// A number below range from a 64-bit word: the upper half of their product where range is at most
// 2^32, the remainder otherwise. Lemire: "Fast random integer generation in an interval",
// ACM TOMACS 2019, without its rejection: the bias is below range / 2^64.
Value below(Value word, Value range, bool narrow) {
  if (!narrow) return word % range;
  const Value mask = word.builder().constant(Type::kU64, int64_t{0xffffffff});
  return ((word >> 32) * range + ((word & mask) * range >> 32)) >> 32;
}

// One work-item: a Fisher-Yates shuffle from the back. The draws run ahead, in wide vectors.
ir::Kernel build_permutation(const std::string& key, bool narrow) {
  Builder b(key);
  const Address output = b.update(GRAFT_INT64);
  const PhiloxWriter philox(b);
  const Value n = philox.count();
  b.vector_loop(b.i64(0), n, [&](Value i) { output.store(i, i); });
  const Value step = b.i64(2 * kPhiloxGroup);
  b.loop(
      b.i64(0), n - 1,
      [&](Value first) {
        const ir::Lanes draws(b, Type::kU64, 2 * kPhiloxGroup);
        b.vector_loop(b.i64(0), b.i64(kPhiloxGroup), [&](Value lane) {
          const auto words = wide_words(philox.words({first / 2 + lane})[0]);
          for (int k = 0; k < 2; ++k) draws.store(lane * 2 + k, words[k]);
        });
        b.loop(first, ir::minimum(first + step, n - 1), [&](Value k) {
          const Value last = n - 1 - k, range = bitcast(Type::kU64, last + 1);
          const Value other = bitcast(Type::kI64, below(draws.load(k - first), range, narrow));
          const Value moved = output.load(last);
          output.store(last, output.load(other));
          output.store(other, moved);
        });
      },
      step);
  return b.finish();
}

std::string key_of(const char* name, graft_dtype data, graft_dtype mask) {
  return std::string(name) + "_" + name_of(data) + "_" + name_of(mask);
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (graft_dtype data : {GRAFT_FLOAT32, GRAFT_BFLOAT16}) {
    const std::string forward = key_of("dropout", data, GRAFT_BOOL);
    add(forward, [=] { return build_forward(forward, data, GRAFT_BOOL); });
    const std::string backward = key_of("dropout_backward", data, GRAFT_BOOL);
    add(backward, [=] { return build_backward(backward, data, GRAFT_BOOL); });
  }
  const std::string permutation = "random_permutation";
  add(permutation, [=] { return build_permutation(permutation, true); });
});

}  // namespace

void dropout(Stream& stream, const TensorView& output, const TensorView& mask,
             const TensorView& input, Philox philox, double p) {
  if (offer(stream, Operation::dropout, writes(output, mask), reads(input), numbers(p),
            draws(philox)))
    return;
  const int64_t count = output.count();
  if (count == 0) return;
  if (p >= 1.0) {
    fill(stream, output, Scalar::of(0.0));
    fill(stream, mask, Scalar::of(false));
    return;
  }
  StagedOutput to(stream, output), kept(stream, mask);
  StagedInput from(stream, input);
  const std::string key = key_of("dropout", output.dtype, mask.dtype);
  const double scale = 1.0 / (1.0 - p);
  Arguments arguments;
  arguments.write(to.view()).write(kept.view()).read(from.view());
  const int64_t grid = append_philox(arguments, philox, count, kPerBlock);
  const auto threshold = static_cast<uint32_t>(dropout_threshold(p));
  arguments.scalar(Scalar::of(static_cast<int32_t>(threshold)), sizeof(threshold));
  arguments.scalar(Scalar::of(scale), sizeof(scale));
  launch_built(stream, key, grid, arguments, build_forward, output.dtype, mask.dtype);
  to.finish();
  kept.finish();
}

void dropout_backward(Stream& stream, const TensorView& grad_input, const TensorView& grad_output,
                      const TensorView& mask, double scale) {
  if (offer(stream, Operation::dropout_backward, writes(grad_input), reads(grad_output, mask),
            numbers(scale)))
    return;
  const int64_t count = grad_input.count();
  if (count == 0) return;
  StagedOutput to(stream, grad_input);
  StagedInput from(stream, grad_output), kept(stream, mask);
  const std::string key = key_of("dropout_backward", grad_input.dtype, mask.dtype);
  const WorkSplit split = split_work(count, 1);
  Arguments arguments;
  arguments.write(to.view()).read(from.view()).read(kept.view());
  arguments.index(split.lines).index(split.per_item).scalar(Scalar::of(scale), sizeof(scale));
  launch_built(stream, key, split.grid, arguments, build_backward, grad_input.dtype, mask.dtype);
  to.finish();
}

void random_permutation(Stream& stream, const TensorView& output, Philox philox) {
  const int64_t count = output.count();
  if (count == 0) return;
  if (offer(stream, Operation::random_permutation, writes(output), draws(philox))) return;
  StagedOutput wide(stream, output, !output.contiguous(), GRAFT_INT64);
  Arguments arguments;
  arguments.update(wide.view());
  append_philox(arguments, philox, count, 2);
  const bool narrow = count <= int64_t{1} << 32;
  const std::string key = narrow ? "random_permutation" : "random_permutation_wide";
  launch_built(stream, key, 1, arguments, build_permutation, narrow);
  wide.finish();
}

}  // namespace graft
