// src/kernels/pointwise/row_call.cpp: a row of the op table as a call of the vendor's own kernel.
#include "kernels/pointwise/row_call.h"

#include <array>

#include "kernels/pointwise/kernel.h"
#include "kernels/tensor/axes.h"

namespace graft {
namespace {

// Rows that the vendor refused to the calling thread, as they were called: describing such a call
// anew would cost more than a small kernel. A refusal stands as long as the process.
class RefusedRows {
 public:
  struct Row {
    const OpenDevice& device;
    const Op& op;
    graft_dtype compute;
    std::span<const TensorView> outputs;
    std::span<const Operand> inputs;

    // Calls take(word) for all that a refusal depends on, until it says false.
    template <class Take>
    bool each_word(const Take& take) const {
      const auto view = [&](const TensorView& one) {
        bool goes_on = take(static_cast<uint64_t>(one.dtype) | uint64_t(one.rank) << 32);
        for (int d = 0; d < one.rank && goes_on; ++d) {
          goes_on = take(static_cast<uint64_t>(one.sizes[d])) &&
                    take(static_cast<uint64_t>(one.strides[d]));
        }
        return goes_on;
      };
      if (!take(uint64_t{op.id} | static_cast<uint64_t>(compute) << 32)) return false;
      for (const TensorView& output : outputs) {
        if (!view(output)) return false;
      }
      for (const Operand& input : inputs) {
        if (!(input.is_scalar ? take(UINT64_MAX) : view(input.view))) return false;
      }
      return true;
    }
  };

  // The words say how many there are: a row that agrees up to the kept one's end has no more.
  bool has(const Row& row) const {
    const Place& place = places_[number_of(row)];
    if (place.device != &row.device) return false;
    const uint64_t* next = place.words.data();
    return row.each_word([&](uint64_t word) { return *next++ == word; });
  }

  void add(const Row& row) {
    Place& place = places_[number_of(row)];
    place.device = nullptr;
    size_t count = 0;
    const bool fits = row.each_word([&](uint64_t word) {
      if (count == kWords) return false;
      place.words[count++] = word;
      return true;
    });
    if (fits) place.device = &row.device;
  }

 private:
  static constexpr size_t kWords = 32, kPlaces = 8;
  struct Place {
    const OpenDevice* device = nullptr;
    std::array<uint64_t, kWords> words{};
  };

  static size_t number_of(const Row& row) {
    const TensorView& output = row.outputs[0];
    const int64_t last = output.rank == 0 ? 1 : output.sizes[output.rank - 1];
    return (row.op.id + static_cast<size_t>(last)) % kPlaces;
  }

  std::array<Place, kPlaces> places_{};
};

}  // namespace

void describe_row(VendorCall& call, graft_dtype compute, std::span<const TensorView> outputs,
                  std::span<const Operand> inputs, std::span<const Scalar> scalars) {
  const TensorView* views[kMaxStrides];
  size_t count = 0;
  if (outputs.size() + inputs.size() > kMaxStrides) return call.refuse();
  for (const TensorView& view : outputs) views[count++] = &view;
  for (const Operand& input : inputs) {
    if (!input.is_scalar) views[count++] = &input.view;
  }
  const Axes axes = Axes::joined({views, count});
  int at = 0;
  for (const TensorView& view : outputs) call.write(axes, at++, view);
  for (const Operand& input : inputs) {
    input.is_scalar ? call.read(nullptr) : call.read(axes, at++, input.view);
  }
  const graft_dtype number = scalar_dtype(compute);
  call.integers({compute});
  for (const Operand& input : inputs) {
    if (input.is_scalar) call.scalar(input.scalar.to(number));
  }
  for (const Scalar& scalar : scalars) call.scalar(scalar.to(number));
}

bool offer_row(Stream& stream, const Op& op, graft_dtype compute,
               std::span<const TensorView> outputs, std::span<const Operand> inputs,
               std::span<const Scalar> scalars) {
  OpenDevice& device = stream.device();
  if (!vendor_knows(device, op)) return false;
  static thread_local constinit RefusedRows refused;
  const RefusedRows::Row row{device, op, compute, outputs, inputs};
  if (refused.has(row)) return false;
  VendorCall call(stream, op);
  describe_row(call, compute, outputs, inputs, scalars);
  if (call.run()) return true;
  refused.add(row);
  return false;
}

}  // namespace graft
