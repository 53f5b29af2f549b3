// src/torch/ve/generator.cpp: torch.Generator of the slot.
#include "torch/ve/generator.h"

#include <mutex>
#include <utility>

#include "torch/device/generator.h"

namespace graft::binding::ve {
namespace {

class Generator final : public c10::GeneratorImpl {
 public:
  Generator(c10::DeviceIndex index, at::Generator inner)
      : c10::GeneratorImpl({kType, index}, c10::DispatchKeySet(kKey)), inner_(std::move(inner)) {}

  static c10::DeviceType device_type() { return kType; }
  const at::Generator& inner() const { return inner_; }

  void set_current_seed(uint64_t seed) override { Locked(inner_)->set_current_seed(seed); }
  uint64_t current_seed() const override { return Locked(inner_)->current_seed(); }
  uint64_t seed() override { return Locked(inner_)->seed(); }
  void set_offset(uint64_t offset) override { Locked(inner_)->set_offset(offset); }
  uint64_t get_offset() const override { return Locked(inner_)->get_offset(); }
  void set_state(const c10::TensorImpl& state) override { Locked(inner_)->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return Locked(inner_)->get_state();
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override {
    const auto other = c10::dynamic_intrusive_pointer_cast<Generator>(state);
    TORCH_CHECK(other, "graphsafe_set_state of a generator of ", device(),
                " takes the state of a generator of the same device type");
    Locked(inner_)->graphsafe_set_state(other->inner_.getIntrusivePtr());
  }
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::make_intrusive<Generator>(device().index(),
                                          at::Generator(Locked(inner_)->graphsafe_get_state()));
  }

 private:
  // The inner generator under its lock, for one call.
  class Locked {
   public:
    explicit Locked(at::Generator generator)
        : lock_(generator.mutex()), impl_(generator.unsafeGetGeneratorImpl()) {}
    c10::GeneratorImpl* operator->() const { return impl_; }

   private:
    std::lock_guard<std::mutex> lock_;
    c10::GeneratorImpl* impl_;
  };

  Generator* clone_impl() const override { return new Generator(device().index(), inner_.clone()); }

  at::Generator inner_;
};

}  // namespace

at::Generator default_generator(c10::DeviceIndex index) {
  index = resolve(index);
  return at::make_generator<Generator>(index, binding::default_generator(platform_index(index)));
}

at::Generator new_generator(c10::DeviceIndex index) {
  index = resolve(index);
  return at::make_generator<Generator>(index,
                                       at::make_generator<GraftGenerator>(platform_index(index)));
}

at::Generator inner_generator(const at::Generator& outer) {
  if (!outer.defined() || outer.device().type() != kType) return outer;
  return static_cast<const Generator*>(outer.unsafeGetGeneratorImpl())->inner();
}

}  // namespace graft::binding::ve
