// src/torch/device/generator.h: torch.Generator of the device: a Philox seed and offset.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/stream/recording.h"
#include "torch/device/type.h"

namespace graft::binding {

// Numbers come from Philox 4x32-10 (kernels/random/random.h) under seed; offset counts the blocks
// that were drawn. Not thread-safe: callers hold mutex_, as PyTorch asks. While the current stream
// of its device captures a graph, the offset is a place in the recording (RecordedOffset), which
// set_offset and set_state go back to; any other offset makes each replay draw the same. The seed
// is that of the replay: another one, and states with one, are refused with RuntimeError. Outside,
// a place in a recording means the numbers of its last replay.
class GraftGenerator final : public c10::GeneratorImpl {
 public:
  explicit GraftGenerator(c10::DeviceIndex index, uint64_t seed = c10::default_rng_seed_val);

  static c10::DeviceType device_type() { return kDeviceType; }

  void set_current_seed(uint64_t seed) override;  // the offset starts at 0 again
  uint64_t current_seed() const override { return state_->seed; }
  uint64_t seed() override;  // a new seed that nobody can foretell; returns it
  void set_offset(uint64_t offset) override { move_to(state_->seed, offset); }
  uint64_t get_offset() const override;

  // Throws RuntimeError when the seed cannot become this one: in a capture.
  void check_seed(uint64_t seed) const;

  // 16 bytes: seed, offset, as the machine stores them.
  void set_state(const c10::TensorImpl& new_state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // The state itself, shared rather than copied.
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& new_state) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

  // Returns {seed, offset} and advances the offset by increment.
  std::pair<uint64_t, uint64_t> next(uint64_t increment);

  // What a captured graph draws from in the place of this generator: the same object as long as
  // somebody holds it. It keeps the generator, and takes the lock itself.
  std::shared_ptr<RandomSource> source();

 private:
  struct State : c10::intrusive_ptr_target {
    uint64_t seed = c10::default_rng_seed_val;
    uint64_t offset = 0;
  };
  GraftGenerator(c10::DeviceIndex index, c10::intrusive_ptr<State> state);
  GraftGenerator* clone_impl() const override;
  std::shared_ptr<Recording> recording() const;     // that this thread captures; null for none
  std::shared_ptr<RandomSource> unlocked_source();  // REQUIRES: mutex_ is held
  void move_to(uint64_t seed, uint64_t offset);

  c10::intrusive_ptr<State> state_;
  std::weak_ptr<RandomSource> source_;
};

// The generator that a device uses when none is given. Throws RuntimeError out of range. Opens no
// device.
const at::Generator& default_generator(c10::DeviceIndex index);

// Gives every device's default generator this seed, also devices that are counted later.
void seed_all(uint64_t seed);

// {seed, offset} for a kernel that draws from generator, or from the device's default one, and
// takes increment blocks. Locks the generator, which does not move while the device's current
// stream captures a graph: each replay draws anew. Throws RuntimeError for a generator of another
// device type.
std::pair<uint64_t, uint64_t> next_philox(const std::optional<at::Generator>& generator,
                                          c10::Device device, uint64_t increment);

// The same for a kernel that repeats the numbers of an earlier one, whose seed and offset
// next_philox gave. Those of a captured graph stand, outside of a capture, for its last replay.
// Throws RuntimeError when there was none.
std::pair<uint64_t, uint64_t> repeated_philox(uint64_t seed, uint64_t offset, c10::Device device);

}  // namespace graft::binding
