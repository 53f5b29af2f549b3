// src/kernels/launch/group_fold.h: values of a group's work-items, combined into one.
#pragma once

#include <functional>
#include <vector>

#include "codegen/ir/local_array.h"
#include "kernels/launch/lanes.h"

namespace graft {

// Combines tuples of values, one tuple of each of the kLanes work-items of a group, into one that
// all of them get: within sub-groups by exchange where the deal says so, otherwise in a tree in
// local memory.
class GroupFold {
 public:
  using Values = std::vector<ir::Value>;
  using Combine = std::function<Values(const Values& a, const Values& b)>;

  // Declares local memory for tuples of these types: before the kernel's first loop or if.
  GroupFold(ir::Builder& builder, const std::vector<ir::Type>& types, WorkMapping deal);

  // The work-item's place in the group, an i64.
  ir::Value lane() const { return lane_; }

  // own: the first of these types' values, at least one. combine: associative and commutative.
  // Outside of ifs and loops.
  Values fold(const Values& own, const Combine& combine);

 private:
  Values load(ir::Value place, size_t count) const;
  void store(ir::Value place, const Values& values) const;
  Values exchange(const Values& own, const Combine& combine);
  Values climb(const Values& own, const Combine& combine);

  ir::Builder& b_;
  const bool shuffles_;
  std::vector<ir::LocalArray> parts_;
  ir::Value lane_;
  bool used_ = false;
};

}  // namespace graft
