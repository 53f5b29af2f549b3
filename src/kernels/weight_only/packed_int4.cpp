// src/kernels/weight_only/packed_int4.cpp: lays weights of 4 bits out for the products.
#include "kernels/weight_only/packed_int4.h"

#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "kernels/weight_only/weight.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kPairs = kNibblesOfWord / 2;  // of a word

struct PackKernel {
  std::string key() const { return "weight_only_pack_int4"; }

  ir::Kernel build() const {
    Builder b(key());
    const Address to = b.write(GRAFT_INT32), from = b.read(GRAFT_UINT8);
    const Value lines = b.index(), per_item = b.index(), words = b.index();
    const Value row_stride = b.index(), stride = b.index();
    each_line(b, lines, per_item, [&](Value line) {
      const Value row = line / words * kWords, first = line % words * kPairs;
      b.vector_loop(b.i64(0), b.i64(kWords), [&](Value i) {
        const Value start = (row + i) * row_stride;
        Value word = b.constant(Type::kU32, 0);
        for (int64_t pair = 0; pair < kPairs; ++pair) {
          const Value both = cast(Type::kU32, from.load(start + (first + pair) * stride));
          const Value turned = (both >> 4) | ((both & 15) << 4);
          word = word | (turned << (8 * pair));
        }
        to.store(line * kWords + i, cast(Type::kI32, word));
      });
    });
    return b.finish();
  }
};

}  // namespace

void pack_int4(Stream& stream, const TensorView& packed, const TensorView& pairs) {
  const bool fits = pairs.dtype == GRAFT_UINT8 && pairs.rank == 2 && packed.dtype == GRAFT_INT32 &&
                    packed.contiguous() && pairs.sizes[0] % kWords == 0 &&
                    pairs.sizes[1] % kPairs == 0 && packed.count() * kPairs == pairs.count();
  if (!fits) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                std::string("pack_int4: got ") + name_of(pairs.dtype) + " of rank " +
                    std::to_string(pairs.rank) + " for " + std::to_string(packed.count()) + " " +
                    name_of(packed.dtype) +
                    "; give uint8 [n, k / 2] and dense int32 of n k / 8 elements, n and k "
                    "multiples of 8");
  }
  if (packed.count() == 0) return;
  if (offer(stream, Operation::pack_int4, writes(packed), reads(pairs))) return;
  const int64_t words = pairs.sizes[1] / kPairs;
  const WorkSplit split = split_work(pairs.sizes[0] / kWords * words, kWords * kNibblesOfWord);
  Arguments arguments;
  arguments.write(packed).read(pairs).index(split.lines).index(split.per_item).index(words);
  arguments.index(pairs.strides[0]).index(pairs.strides[1]);
  launch_kernel(stream, PackKernel{}, split.grid, arguments);
}

}  // namespace graft
