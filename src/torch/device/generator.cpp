// src/torch/device/generator.cpp: torch.Generator of the device: a Philox seed and offset.
#include "torch/device/generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Utils.h>

#include <cstring>
#include <map>
#include <mutex>

#include "runtime/driver/fork.h"
#include "runtime/platform/platform.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"

namespace graft::binding {
namespace {

struct StateBytes {
  uint64_t seed;
  uint64_t offset;
};

class RecordedGenerator final : public RandomSource {
 public:
  explicit RecordedGenerator(c10::intrusive_ptr<GraftGenerator> generator)
      : generator_(std::move(generator)) {}
  RandomState advance(uint64_t blocks) override {
    const std::lock_guard lock(generator_->mutex_);
    const auto [seed, offset] = generator_->next(blocks);
    return {seed, offset};
  }

 private:
  const c10::intrusive_ptr<GraftGenerator> generator_;
};

struct DefaultGenerators {
  std::mutex mutex;
  uint64_t seed = c10::default_rng_seed_val;
  std::map<c10::DeviceIndex, at::Generator> made;
};

DefaultGenerators& defaults() {
  static auto* defaults = new DefaultGenerators;
  return *defaults;
}

}  // namespace

GraftGenerator::GraftGenerator(c10::DeviceIndex index, uint64_t seed)
    : GraftGenerator(index, c10::make_intrusive<State>()) {
  state_->seed = seed;
}

GraftGenerator::GraftGenerator(c10::DeviceIndex index, c10::intrusive_ptr<State> state)
    : c10::GeneratorImpl(device_of(index), c10::DispatchKeySet(kDispatchKey)),
      state_(std::move(state)) {}

std::shared_ptr<Recording> GraftGenerator::recording() const {
  const c10::DeviceIndex index = device().index();
  if (forked_child() || platform().open_device(index) == nullptr) return nullptr;
  return translate([&] { return current_stream(index).recording(); });
}

void GraftGenerator::check_seed(uint64_t seed) const {
  if (seed == state_->seed || recording() == nullptr) return;
  TORCH_CHECK(false, "A generator of ", device(), " cannot change its seed from ", state_->seed,
              " to ", seed, " while a graph is captured: each replay uses the seed of its ",
              "time. Set the seed before the capture, or between replays.");
}

void GraftGenerator::move_to(uint64_t seed, uint64_t offset) {
  const bool recorded = (offset & RecordedOffset::kFlag) != 0;
  if (!recorded) check_seed(seed);
  if (const auto recording = this->recording()) {
    return translate([&] { recording->rewind(unlocked_source(), offset); });
  }
  const RandomState place =
      recorded ? translate([&] { return replayed_state(offset); }) : RandomState{seed, offset};
  state_->seed = place.seed;
  state_->offset = place.offset;
}

uint64_t GraftGenerator::get_offset() const {
  const auto recording = this->recording();
  if (recording == nullptr) return state_->offset;
  auto* const self = const_cast<GraftGenerator*>(this);  // the source is a cache
  return translate([&] { return recording->draw(self->unlocked_source(), 0); });
}

void GraftGenerator::set_current_seed(uint64_t seed) { move_to(seed, 0); }

uint64_t GraftGenerator::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom(true));
  return state_->seed;
}

void GraftGenerator::set_state(const c10::TensorImpl& new_state) {
  at::detail::check_rng_state(new_state);
  TORCH_CHECK(new_state.numel() == sizeof(StateBytes), "the state of a generator of ", device(),
              " has ", sizeof(StateBytes), " bytes (seed and offset), got ", new_state.numel());
  StateBytes bytes;
  std::memcpy(&bytes, new_state.data(), sizeof bytes);
  move_to(bytes.seed, bytes.offset);
}

c10::intrusive_ptr<c10::TensorImpl> GraftGenerator::get_state() const {
  const StateBytes bytes{state_->seed, get_offset()};
  at::TensorBase state = at::detail::empty_cpu({sizeof bytes}, at::kByte);
  std::memcpy(state.mutable_data_ptr(), &bytes, sizeof bytes);
  return state.getIntrusivePtr();
}

void GraftGenerator::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& new_state) {
  const auto other = c10::dynamic_intrusive_pointer_cast<GraftGenerator>(new_state);
  TORCH_CHECK(other, "graphsafe_set_state of a generator of ", device(),
              " takes the state of a generator of the same device type");
  state_ = other->state_;
}

c10::intrusive_ptr<c10::GeneratorImpl> GraftGenerator::graphsafe_get_state() const {
  return c10::intrusive_ptr<c10::GeneratorImpl>::reclaim(
      new GraftGenerator(device().index(), state_));
}

std::pair<uint64_t, uint64_t> GraftGenerator::next(uint64_t increment) {
  const std::pair<uint64_t, uint64_t> taken{state_->seed, state_->offset};
  state_->offset += increment;
  return taken;
}

std::shared_ptr<RandomSource> GraftGenerator::source() {
  const std::lock_guard lock(mutex_);
  return unlocked_source();
}

std::shared_ptr<RandomSource> GraftGenerator::unlocked_source() {
  std::shared_ptr<RandomSource> source = source_.lock();
  if (source == nullptr) {
    source = std::make_shared<RecordedGenerator>(
        c10::intrusive_ptr<GraftGenerator>::unsafe_reclaim_from_nonowning(this));
    source_ = source;
  }
  return source;
}

GraftGenerator* GraftGenerator::clone_impl() const {
  auto* twin = new GraftGenerator(device().index());
  twin->state_->seed = state_->seed;
  twin->state_->offset = state_->offset;
  return twin;
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  index = resolve(index);
  DefaultGenerators& all = defaults();
  const std::lock_guard lock(all.mutex);
  const auto found = all.made.find(index);
  if (found != all.made.end()) return found->second;
  check_index(index);
  return all.made.try_emplace(index, at::make_generator<GraftGenerator>(index, all.seed))
      .first->second;
}

void seed_all(uint64_t seed) {
  DefaultGenerators& all = defaults();
  const std::lock_guard lock(all.mutex);
  for (auto& [index, generator] : all.made) {
    const std::lock_guard generator_lock(generator.mutex());
    static_cast<GraftGenerator*>(generator.unsafeGetGeneratorImpl())->check_seed(seed);
  }
  all.seed = seed;
  for (auto& [index, generator] : all.made) {
    const std::lock_guard generator_lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

std::pair<uint64_t, uint64_t> next_philox(const std::optional<at::Generator>& generator,
                                          c10::Device device, uint64_t increment) {
  const bool given = generator.has_value() && generator->defined();
  const c10::DeviceType found = given ? generator->device().type() : kDeviceType;
  TORCH_CHECK(found == device.type(), "Expected a '", c10::DeviceTypeName(device.type(), true),
              "' device type for generator but found '", c10::DeviceTypeName(found, true), "'");
  at::Generator source = given ? *generator : default_generator(device.index());
  auto* const state = static_cast<GraftGenerator*>(source.unsafeGetGeneratorImpl());
  if (const auto recording = current_stream(device.index()).recording()) {
    return {state->current_seed(), recording->draw(state->source(), increment)};
  }
  CommandCapture::spoil_current();  // the numbers are this call's alone
  const std::lock_guard lock(source.mutex());
  return state->next(increment);
}

std::pair<uint64_t, uint64_t> repeated_philox(uint64_t seed, uint64_t offset, c10::Device device) {
  const bool recorded = (offset & RecordedOffset::kFlag) != 0;
  if (!recorded || current_stream(device.index()).recording() != nullptr) return {seed, offset};
  const RandomState state = translate([&] { return replayed_state(offset); });
  return {state.seed, state.offset};
}

}  // namespace graft::binding
