// src/kernels/launch/arguments.h: the argument list of one kernel launch, and the launch.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

#include "codegen/cache/program_cache.h"
#include "graft/driver.h"
#include "kernels/tensor/axes.h"
#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft {

// Built in the order of the kernel's parameters; no memory is allocated. At most kCapacity.
class Arguments {
 public:
  static constexpr int kCapacity = 256;  // 16 loops over 12 operands and their scalars

  // A tensor's elements, to be read, written (every byte anew) or both.
  Arguments& read(const TensorView& view) {
    return address(view.address, extent_bytes(view), GRAFT_ACCESS_READ);
  }
  Arguments& write(const TensorView& view) {
    return address(view.address, extent_bytes(view), GRAFT_ACCESS_WRITE);
  }
  Arguments& update(const TensorView& view) {
    return address(view.address, extent_bytes(view), GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
  }
  // Plain memory; access: GRAFT_ACCESS_ bits.
  Arguments& address(graft_address address, uint64_t bytes, uint32_t access) {
    return push({GRAFT_ARGUMENT_ADDRESS, 0, static_cast<uint8_t>(access), 0, address, bytes});
  }
  // A number of bytes bytes, in the low bytes of the scalar.
  Arguments& scalar(const Scalar& scalar, uint64_t bytes) {
    return push(
        {GRAFT_ARGUMENT_SCALAR, static_cast<uint8_t>(scalar.dtype), 0, 0, scalar.bits[0], bytes});
  }
  // A size, stride or position: int64, or int32 where narrow.
  Arguments& index(int64_t value, bool narrow = false) {
    const graft_dtype dtype = narrow ? GRAFT_INT32 : GRAFT_INT64;
    return push({GRAFT_ARGUMENT_SCALAR, static_cast<uint8_t>(dtype), 0, 0,
                 static_cast<uint64_t>(value), narrow ? 4u : 8u});
  }
  Arguments& indices(std::span<const int64_t> values, bool narrow = false) {
    for (const int64_t value : values) index(value, narrow);
    return *this;
  }
  Arguments& indices(std::initializer_list<int64_t> values, bool narrow = false) {
    return indices(std::span(values.begin(), values.size()), narrow);
  }
  // A generator's state, at most one: the key's low and high half, the offset.
  Arguments& random(uint64_t seed, uint64_t offset) {
    state_ = count_;
    for (const uint64_t part : {seed & 0xffffffffu, seed >> 32, offset}) {
      index(static_cast<int64_t>(part));
    }
    return *this;
  }

  // Bit i: argument i, an address, is read as well.
  void also_read(uint64_t which) {
    for (int i = 0; which >> i != 0; ++i) {
      if ((which >> i & 1) != 0) arguments_[i].access |= GRAFT_ACCESS_READ;
    }
  }

  // Valid until the next change.
  LaunchArguments span() const {
    return {std::span(arguments_, static_cast<size_t>(count_)), state_};
  }

 private:
  Arguments& push(const graft_argument& argument) {
    arguments_[count_++] = argument;
    return *this;
  }

  graft_argument arguments_[kCapacity];
  int count_ = 0, state_ = LaunchArguments::kDrawsNothing;
};

// Launches the kernel of that key, as get_kernel gives it, over grid groups of group work-items.
template <class Make>
void launch_kernel(Stream& stream, const std::string& key, int64_t grid, const Arguments& arguments,
                   const Make& make, int64_t group = 1) {
  stream.launch(get_kernel(stream.device(), key, make), static_cast<uint64_t>(grid),
                arguments.span(), static_cast<uint32_t>(group));
}

// The same for what knows its key() and how to build() it.
template <class Kernel>
void launch_kernel(Stream& stream, const Kernel& kernel, int64_t grid, const Arguments& arguments,
                   int64_t group = 1) {
  launch_kernel(
      stream, kernel.key(), grid, arguments, [&] { return kernel.build(); }, group);
}

// The same for what build(key, values...) makes.
template <class... Values>
void launch_built(Stream& stream, const std::string& key, int64_t grid, const Arguments& arguments,
                  ir::Kernel (*build)(const std::string& key, Values...),
                  std::type_identity_t<Values>... values) {
  launch_kernel(stream, key, grid, arguments, [&] { return build(key, values...); });
}

}  // namespace graft
