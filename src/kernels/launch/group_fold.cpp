// src/kernels/launch/group_fold.cpp: values of a group's work-items, combined into one.
#include "kernels/launch/group_fold.h"

namespace graft {

using namespace ir;

GroupFold::GroupFold(ir::Builder& builder, const std::vector<Type>& types, WorkMapping deal)
    : b_(builder), shuffles_(deal == WorkMapping::kShuffles) {
  for (Type type : types) parts_.emplace_back(b_, type, kLanes);
  lane_ = cast(Type::kI64, b_.local_item());
}

GroupFold::Values GroupFold::fold(const Values& own, const Combine& combine) {
  if (used_) b_.barrier();  // all have read the last result
  used_ = true;
  return shuffles_ ? exchange(own, combine) : climb(own, combine);
}

GroupFold::Values GroupFold::exchange(const Values& own, const Combine& combine) {
  const std::vector<Variable> totals(own.begin(), own.end());
  const Value size = b_.sub_group(SubGroup::kSize);
  for (int64_t mask = kLanes / 2; mask > 0; mask /= 2) {
    const Value within = size > mask;
    const Value to = select(within, b_.constant(Type::kI32, mask), 0);
    Values other;
    for (const Variable& total : totals) other.push_back(b_.shuffle(total.get(), to));
    const Values joined = combine({totals.begin(), totals.end()}, other);
    for (size_t k = 0; k < totals.size(); ++k) {
      totals[k] = select(within, joined[k], totals[k].get());
    }
  }
  b_.if_(b_.sub_group(SubGroup::kPlace) == 0, [&] {
    store(b_.sub_group(SubGroup::kIndex), {totals.begin(), totals.end()});
  });
  b_.barrier();
  const Values first = load(b_.i64(0), own.size());
  for (size_t k = 0; k < totals.size(); ++k) totals[k] = first[k];
  b_.loop(b_.i64(1), kLanes / size, [&](Value index) {
    const Values joined = combine({totals.begin(), totals.end()}, load(index, own.size()));
    for (size_t k = 0; k < totals.size(); ++k) totals[k] = joined[k];
  });
  return {totals.begin(), totals.end()};
}

GroupFold::Values GroupFold::climb(const Values& own, const Combine& combine) {
  const size_t count = own.size();
  store(lane_, own);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    b_.barrier();
    b_.if_(lane_ < half,
           [&] { store(lane_, combine(load(lane_, count), load(lane_ + half, count))); });
  }
  b_.barrier();
  return load(b_.i64(0), count);
}

GroupFold::Values GroupFold::load(Value place, size_t count) const {
  Values loaded;
  for (size_t k = 0; k < count; ++k) loaded.push_back(parts_[k].load(place));
  return loaded;
}

void GroupFold::store(Value place, const Values& values) const {
  for (size_t k = 0; k < values.size(); ++k) parts_[k].store(place, values[k]);
}

}  // namespace graft
