// drivers/host/onednn/plan.cpp: a row of oneDNN primitives that runs over given memory.
#include "plan.h"

#include <memory>
#include <utility>

#include "half.h"

namespace graft::host {
namespace {

// oneDNN's vectors like whole cache lines; hugepages follow from the workspace's own address.
constexpr uint64_t kAlignment = 64;

void convert_elements(const dnnl::memory& from, const dnnl::memory& to) {
  const dnnl::memory::desc desc = from.get_desc();
  size_t count = 1;
  for (const auto size : desc.get_dims()) count *= static_cast<size_t>(size);
  if (desc.get_data_type() == dnnl::memory::data_type::f16) {
    widen(static_cast<const uint16_t*>(from.get_data_handle()),
          static_cast<float*>(to.get_data_handle()), count);
  } else {
    narrow(static_cast<const float*>(from.get_data_handle()),
           static_cast<uint16_t*>(to.get_data_handle()), count);
  }
}

void copy(const std::optional<Panels>& panels, const dnnl::memory& from, const dnnl::memory& to) {
  if (panels) {
    fill(*panels, from.get_data_handle(), to.get_data_handle());
  } else {
    convert_elements(from, to);
  }
}

}  // namespace

dnnl::engine& engine() {
  static auto* instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *instance;
}

LibraryPlan::Slot LibraryPlan::tensor(uint32_t index, const dnnl::memory::desc& desc) {
  return add_slot(desc, Place::kTensor, index);
}

LibraryPlan::Slot LibraryPlan::operand(uint32_t index, const dnnl::memory::desc& desc) {
  return add_slot(desc, Place::kOperand, index);
}

LibraryPlan::Slot LibraryPlan::zero(int rank) {
  const dnnl::memory::dims ones(static_cast<size_t>(rank), 1);
  return add_slot({ones, dnnl::memory::data_type::f32, ones}, Place::kZero, 0);
}

LibraryPlan::Slot LibraryPlan::scratch(const dnnl::memory::desc& desc) {
  uint64_t offset = workspace_bytes_;
  workspace_bytes_ += (desc.get_size() + kAlignment - 1) / kAlignment * kAlignment;
  return add_slot(desc, Place::kWorkspace, offset);
}

LibraryPlan::Slot LibraryPlan::add_slot(const dnnl::memory::desc& desc, Place place, uint64_t at) {
  slots_.push_back({desc, place, at});
  return Slot(slots_.size() - 1);
}

void LibraryPlan::add(const dnnl::primitive& primitive,
                      std::vector<std::pair<int, Slot>> arguments) {
  steps_.push_back({primitive, std::move(arguments)});
}

void LibraryPlan::reorder(Slot from, Slot to) {
  if (auto copy = panels(desc(from), desc(to))) {
    steps_.push_back({{}, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, std::move(copy)});
    return;
  }
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::reorder::primitive_desc description(engine(), desc(from), engine(), desc(to), attributes);
  std::vector<std::pair<int, Slot>> arguments = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  if (description.scratchpad_desc().get_size() != 0) {
    arguments.emplace_back(DNNL_ARG_SCRATCHPAD, scratch(description.scratchpad_desc()));
  }
  add(dnnl::reorder(description), std::move(arguments));
}

void LibraryPlan::convert(Slot from, Slot to) {
  add({}, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void* LibraryPlan::address_of(const SlotPlace& slot, const LibraryExecution& execution) {
  static float zero = 0;
  switch (slot.place) {
    case Place::kTensor:
      return execution.tensors[slot.at];
    case Place::kOperand:
      return execution.operands[slot.at];
    case Place::kWorkspace:
      return static_cast<char*>(execution.workspace) + slot.at;
    default:
      return &zero;
  }
}

LibraryPlan::Run::Run(const LibraryPlan& plan) : arguments(plan.steps_.size()) {
  for (const SlotPlace& slot : plan.slots_) {
    memories.emplace_back(slot.desc, engine(), nullptr);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (const auto& [argument, slot] : plan.steps_[i].arguments) {
      arguments[i].push_back({argument, memories[slot].get()});
    }
  }
}

void LibraryPlan::execute(const LibraryExecution& execution) const {
  thread_local dnnl::stream stream(engine());
  std::unique_ptr<Run> run(spare_.exchange(nullptr));
  if (run == nullptr) run = std::make_unique<Run>(*this);
  for (size_t i = 0; i < slots_.size(); ++i) {
    run->memories[i].set_data_handle(address_of(slots_[i], execution));
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (!step.primitive) {
      copy(step.panels, run->memories[step.arguments[0].second],
           run->memories[step.arguments[1].second]);
      continue;
    }
    const auto& arguments = run->arguments[i];
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(step.primitive.get(), stream.get(),
                               static_cast<int>(arguments.size()), arguments.data()),
        "could not execute a primitive");
  }
  run.reset(spare_.exchange(run.release()));
}

}  // namespace graft::host
