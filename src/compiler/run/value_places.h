// src/compiler/run/value_places.h: where the values of a graph lie in a run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/analysis/effects.h"
#include "compiler/analysis/views.h"
#include "compiler/plan/memory_plan.h"
#include "compiler/plan/symbol_values.h"
#include "kernels/tensor/view.h"

namespace graft::compiler {

// Where the memory of a root comes from.
enum class Home : uint8_t { kInput, kConstant, kArena, kOutput, kNowhere };

struct Place {
  Home home = Home::kNowhere;
  size_t index = 0;           // of the input, the plan's buffer or the output
  graft_address address = 0;  // of the root in this run
  uint64_t offset = 0;        // of the value, in bytes
};

// By value. A value without a home lies in its base's memory, or in no memory at all.
class ValuePlaces {
 public:
  ValuePlaces() = default;
  ValuePlaces(const Graph& graph, const Effects& effects, const MemoryPlan& plan);

  size_t size() const { return places_.size(); }
  Place& operator[](ValueId value) { return places_[value]; }
  const Place& operator[](ValueId value) const { return places_[value]; }

  // Elements from the base's first to the value's own; none where a view on the way is unknown.
  const std::optional<Size>& offset(ValueId value) const { return views_.offsets[value]; }

  // Sets where the value, which has a home, and what lies in its memory begin. views: by value.
  void show(ValueId value, std::span<TensorView> views) const;

  // Throws Error INVALID_ARGUMENT, naming the input, where it is not as wanted: the view of a
  // graph's input at the sizes of the run.
  static void check_input(const Graph& graph, size_t index, const TensorView& wanted,
                          const ExecutionInput& given);

 private:
  std::vector<Place> places_;
  ViewPlaces views_;
  std::vector<std::vector<ValueId>> inside_;  // values without a home, by what they lie in
};

}  // namespace graft::compiler
