// src/torch/ops/packed_weight.h: int8 weights as kernels take them, and what surrounds their
// products.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

namespace graft::binding {

// A quantized weight with its output channels in dimension 0 (transposed: in dimension 1).
struct PackedWeight {
  at::Tensor quantized;  // as it was given
  at::Tensor values;     // its integers less their zero points: int8, or int16 where one is not 0
  at::Tensor scales;     // float32: one for each output channel, or for all
  at::Tensor offsets;    // int32: for each output channel less the sum of its values
  std::optional<at::Tensor> bias;  // float32

  // Reads the zero points, so it waits for the device. Throws RuntimeError unless weight is of
  // qint8, on a device of ours, and bias has one element for each output channel.
  static PackedWeight of(const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                         bool transposed = false);

  // The weight and the bias on the host. PyTorch makes host objects from them when a module is
  // copied or loaded; those find their way back by Converted.
  std::tuple<at::Tensor, std::optional<at::Tensor>> unpack() const;

  int64_t outputs(bool transposed = false) const { return quantized.size(transposed ? 1 : 0); }
};

// sums (int32; channels in dimension axis) times both scales, plus the bias: as a quantized tensor
// of type, scale and zero; relu: not below 0.
at::Tensor requantized(const at::Tensor& sums, int64_t axis, const PackedWeight& weight,
                       double input_scale, at::ScalarType type, double scale, int64_t zero,
                       bool relu);

// Numbers as uint8, with a scale that is chosen on the device from their range.
struct DynamicInput {
  at::Tensor integers, scale, zero;  // uint8 of the same sizes, float32 [1], int32 [1]

  // reduce_range: 7 bits, for devices whose sums of products would overflow. REQUIRES: float32 and
  // not empty.
  DynamicInput(const at::Tensor& numbers, bool reduce_range);
};

// sums times both scales, plus the bias, as float32; relu: not below 0.
at::Tensor rescaled(const at::Tensor& sums, int64_t axis, const PackedWeight& weight,
                    const at::Tensor& input_scale, bool relu);

// Packed weights of other makes, or on other devices, as ours on a device. Each is converted once
// and kept for as long as the given one lives.
template <class Ours, class Base>
class Converted {
 public:
  // given itself where it lies on device; tag: what else the result depends on.
  static c10::intrusive_ptr<Ours> find(const c10::intrusive_ptr<Base>& given, c10::Device device,
                                       const void* tag = nullptr) {
    if (auto own = c10::dynamic_intrusive_pointer_cast<Ours>(given); own && own->device() == device)
      return own;
    static auto* converted = new Converted;  // tensors must not outlive the device at exit
    return converted->look_up(given, device, tag);
  }

 private:
  struct Entry {
    c10::weak_intrusive_ptr<Base> given;  // keeps the address from being used again
    const void* tag;
    c10::intrusive_ptr<Ours> made;
  };

  c10::intrusive_ptr<Ours> look_up(const c10::intrusive_ptr<Base>& given, c10::Device device,
                                   const void* tag) {
    const std::pair key(given.get(), device.index());
    {
      const std::lock_guard lock(mutex_);
      const auto found = entries_.find(key);
      if (found != entries_.end() && found->second.tag == tag) return found->second.made;
    }
    auto made = Ours::from(*given, device);
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](const auto& entry) { return entry.second.given.expired(); });
    entries_.insert_or_assign(key, Entry{c10::weak_intrusive_ptr<Base>(given), tag, made});
    return made;
  }

  std::mutex mutex_;
  std::map<std::pair<Base*, c10::DeviceIndex>, Entry> entries_;
};

}  // namespace graft::binding
