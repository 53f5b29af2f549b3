// src/kernels/index/cat.cpp: joining tensors, a launch for several small ones.
#include <algorithm>
#include <vector>

#include "codegen/cache/program_cache.h"
#include "kernels/index/index.h"
#include "kernels/launch/list_launch.h"
#include "kernels/move/copy.h"
#include "kernels/operation/offer.h"
#include "kernels/tensor/image_views.h"
#include "kernels/tensor/raw_dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

// Larger inputs fill a launch of their own; shorter pieces are better copied element by element.
constexpr int64_t kLargeInput = 8 * kGroupTile, kShortPiece = 16;

// An input as it lies in the output: each row of the output has a piece of it.
struct Piece {
  const TensorView* input;
  int64_t length;  // in raw elements, as the next
  int64_t offset;
};

Value of_slot(const Value (&values)[kGroupSlots], Value slot) {
  Value found = values[0];
  for (int i = 1; i < kGroupSlots; ++i) found = select(slot == i, values[i], found);
  return found;
}

ir::Kernel build(const std::string& key, graft_dtype data) {
  Builder b(key);
  const Address output = b.write(data);
  const GroupList inputs(b, data, GRAFT_ACCESS_READ);
  Value lengths[kGroupSlots], offsets[kGroupSlots];
  for (Value& length : lengths) length = b.index();
  for (Value& offset : offsets) offset = b.index();
  const Value row = b.index();
  const GroupShare share(b);
  const Address input = inputs.at(share.slot);
  const Value length = of_slot(lengths, share.slot), offset = of_slot(offsets, share.slot);
  b.loop(share.begin / length, (share.end + length - 1) / length, [&](Value line) {
    const Value first = line * length, to = line * row + offset - first;
    b.vector_loop(ir::maximum(share.begin, first), ir::minimum(share.end, first + length),
                  [&](Value i) { output.store(to + i, input.load(i)); });
  });
  return b.finish();
}

std::string key_of(graft_dtype data) { return std::string("cat_") + name_of(data); }

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (graft_dtype data : {GRAFT_UINT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}) {
    const std::string key = key_of(data);
    add(key, [=] { return build(key, data); });
  }
});

// Elements of a row of the output, for a position in dim.
int64_t below(const TensorView& view, int dim) {
  int64_t elements = raw_width(view.dtype);
  for (int d = dim + 1; d < view.rank; ++d) elements *= view.sizes[d];
  return elements;
}

bool can_group(const TensorView& output, std::span<const Piece> pieces) {
  return pieces.size() > 1 && output.contiguous() &&
         std::ranges::all_of(pieces, [&](const Piece& piece) {
           return piece.input->dtype == output.dtype && piece.input->contiguous() &&
                  piece.length >= kShortPiece && piece.input->count() <= kLargeInput;
         });
}

void launch(Stream& stream, const TensorView& output, std::span<const Piece> pieces, int64_t row,
            const TensorGroup& group) {
  Arguments arguments;
  const auto each = [&](auto append) {
    for (int member : group.members()) append(pieces[static_cast<size_t>(member)]);
  };
  arguments.write(output);
  each([&](const Piece& piece) { arguments.read(*piece.input); });
  each([&](const Piece& piece) { arguments.index(piece.length); });
  each([&](const Piece& piece) { arguments.index(piece.offset); });
  arguments.index(row);
  const int64_t items = group.append(arguments);
  const graft_dtype data = raw_dtype(output.dtype);
  const std::string key = key_of(data);
  launch_kernel(stream, key, items, arguments, [&] { return build(key, data); });
}

void copy_each(Stream& stream, const TensorView& output, std::span<const Piece> pieces, int dim) {
  int64_t done = 0;
  for (const Piece& piece : pieces) {
    const TensorView to = part(output, dim, done, piece.input->sizes[dim]);
    done += to.sizes[dim];
    if (to.count() > 0) copy(stream, to, *piece.input);
  }
}

}  // namespace

void cat(Stream& stream, const TensorView& output, std::span<const TensorView> inputs, int dim) {
  if (offer(stream, Operation::cat,
            [&](VendorCall& to) { to.write(output).read(inputs).integers({dim}); }))
    return;
  const int64_t unit = below(output, dim), row = output.sizes[dim] * unit;
  std::vector<Piece> pieces;
  int64_t done = 0;
  for (const TensorView& input : inputs) {
    const int64_t length = input.sizes[dim] * unit;
    if (length != 0) pieces.push_back({&input, length, done});
    done += length;
  }
  if (done > row) {
    throw Error(GRAFT_INVALID_ARGUMENT, "cat: the inputs have more than output's " +
                                            std::to_string(output.sizes[dim]) +
                                            " positions in dimension " + std::to_string(dim));
  }
  if (!can_group(output, pieces)) return copy_each(stream, output, pieces, dim);
  each_group(
      pieces.size(), [&](size_t i) { return pieces[i].input->count() * raw_width(output.dtype); },
      [](size_t) { return 0; },
      [&](const TensorGroup& group) { launch(stream, output, pieces, row, group); });
}

}  // namespace graft
