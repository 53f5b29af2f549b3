// src/kernels/training/optimizer.cpp: steps of optimizers over lists of tensors.
#include "kernels/training/optimizer.h"

#include "codegen/cache/program_cache.h"
#include "kernels/launch/list_launch.h"
#include "kernels/operation/offer.h"
#include "kernels/training/optimizer_kernel.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

OptimizerKernel kernel_of(const OptimizerSettings& settings, graft_dtype dtype) {
  OptimizerKernel kernel;
  kernel.rule = settings.rule;
  kernel.dtype = dtype;
  kernel.rate_tensor = settings.rate_tensor != nullptr;
  if (kernel.rate_tensor) kernel.rate_dtype = settings.rate_tensor->dtype;
  kernel.scaled = settings.gradient_scale != nullptr;
  kernel.guarded = settings.found_inf != nullptr;
  return kernel;
}

void launch(Stream& stream, std::span<const OptimizerTensors> parameters,
            const OptimizerSettings& settings, const TensorGroup& group) {
  OptimizerKernel kernel =
      kernel_of(settings, parameters[static_cast<size_t>(group.members()[0])].parameter.dtype);
  kernel.slots = group.slots();
  kernel.lanes = is_gpu_like(stream.device());
  Arguments arguments;
  const auto each = [&](auto append) {
    for (int member : group.members()) append(parameters[static_cast<size_t>(member)]);
  };
  each([&](const OptimizerTensors& tensors) { arguments.update(tensors.parameter); });
  each([&](const OptimizerTensors& tensors) {
    kernel.scaled ? arguments.update(tensors.gradient) : arguments.read(tensors.gradient);
  });
  for (int i = 0; i < states_of(settings.rule); ++i) {
    each([&](const OptimizerTensors& tensors) { arguments.update(tensors.states[i]); });
  }
  if (counts_steps(settings.rule)) {
    each([&](const OptimizerTensors& tensors) { arguments.read(tensors.step); });
  }
  for (const TensorView* view :
       {settings.rate_tensor, settings.gradient_scale, settings.found_inf}) {
    if (view != nullptr) arguments.read(*view);
  }
  for (double number : optimizer_numbers(settings).values) {
    arguments.scalar(Scalar::of(number), sizeof(number));
  }
  const int64_t items = group.append(arguments, kernel.lanes);
  launch_kernel(stream, kernel, items, arguments);
}

// Numbers that the rule does not name are 0, so that plans do not differ by them.
bool offer_steps(Stream& stream, std::span<const OptimizerTensors> parameters,
                 const OptimizerSettings& given) {
  const OptimizerRule rule = given.rule;
  const bool momentum = rule == OptimizerRule::kMomentum, adagrad = rule == OptimizerRule::kAdagrad;
  const bool adam = counts_steps(rule) && !adagrad;
  return offer_list(
      stream, Operation::optimizer_step, parameters.size(), [&](size_t i, VendorCall& to) {
        const OptimizerTensors& one = parameters[i];
        to.write(one.parameter);
        for (int k = 0; k < 3; ++k) to.write(k < states_of(rule) ? &one.states[k] : nullptr);
        to.write(one.gradient).read(counts_steps(rule) ? &one.step : nullptr);
        to.read(given.rate_tensor).read(given.gradient_scale).read(given.found_inf);
        to.integers({static_cast<int>(rule), given.ascent, momentum && given.nesterov,
                     momentum && given.first_step, adam && given.decoupled});
        to.numbers({given.weight_decay, momentum ? given.momentum : 0,
                    momentum ? given.dampening : 0, adam ? given.beta1 : 0, adam ? given.beta2 : 0,
                    counts_steps(rule) ? given.epsilon : 0, adagrad ? given.rate_decay : 0});
        to.scalar(Scalar::of(given.rate));
      });
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (auto rule : {OptimizerRule::kSgd, OptimizerRule::kMomentum, OptimizerRule::kAdam,
                    OptimizerRule::kAmsgrad, OptimizerRule::kAdagrad}) {
    OptimizerKernel kernel;
    kernel.rule = rule;
    PackEntry::put(add, kernel);
  }
});

}  // namespace

int states_of(OptimizerRule rule) {
  static constexpr int kStates[] = {0, 1, 2, 3, 1};
  return kStates[static_cast<int>(rule)];
}

void optimizer_step(Stream& stream, std::span<const OptimizerTensors> parameters,
                    const OptimizerSettings& settings) {
  for (const OptimizerTensors& tensors : parameters) {
    const graft_dtype dtype = tensors.parameter.dtype;
    if (!is_floating(dtype)) {
      throw Error(GRAFT_UNSUPPORTED, std::string("optimizer step: no kernel for ") +
                                         name_of(dtype) + "; give floating parameters");
    }
  }
  if (offer_steps(stream, parameters, settings)) return;
  const OptimizerKernel kernel = kernel_of(settings, GRAFT_FLOAT32);
  const int slots = group_slots(stream.device(), {kernel.lists(), 0}, kernel.shared());
  each_group(
      parameters.size(), [&](size_t i) { return parameters[i].parameter.count(); },
      [&](size_t i) { return parameters[i].parameter.dtype; },
      [&](const TensorGroup& group) { launch(stream, parameters, settings, group); }, slots);
}

}  // namespace graft
