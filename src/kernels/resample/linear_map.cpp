// src/kernels/resample/linear_map.cpp: which elements of one line make each element of another, and
// how much.
#include "kernels/resample/linear_map.h"

#include <algorithm>

namespace graft {

LinearMap LinearMap::identity(int64_t length) {
  LinearMap taps{length, length, {}};
  for (int64_t i = 0; i < length; ++i) taps.add(i, i);
  return taps;
}

LinearMap LinearMap::transposed() const {
  LinearMap result{from, to, {}};
  result.list.reserve(list.size());
  for (const Tap& tap : list) result.list.push_back({tap.from, tap.to, tap.weight});
  std::stable_sort(result.list.begin(), result.list.end(), [](const Tap& a, const Tap& b) {
    return a.to != b.to ? a.to < b.to : a.from < b.from;
  });
  return result;
}

bool LinearMap::is_identity() const {
  return to == from && picks() &&
         std::all_of(list.begin(), list.end(), [](const Tap& tap) { return tap.to == tap.from; });
}

bool LinearMap::picks() const {
  if (static_cast<int64_t>(list.size()) != to) return false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].to != static_cast<int32_t>(i) || list[i].weight != 1) return false;
  }
  return true;
}

bool LinearMap::sums() const {
  return std::all_of(list.begin(), list.end(), [](const Tap& tap) { return tap.weight == 1; });
}

void LinearMap::join() {
  std::vector<Tap> joined;
  size_t first = 0;  // of the current element
  for (const Tap& tap : list) {
    if (joined.empty() || joined.back().to != tap.to) first = joined.size();
    const auto same = std::find_if(joined.begin() + static_cast<std::ptrdiff_t>(first),
                                   joined.end(), [&](const Tap& t) { return t.from == tap.from; });
    if (same == joined.end()) {
      joined.push_back(tap);
    } else {
      same->weight += tap.weight;
    }
  }
  list = std::move(joined);
}

TapPlanes::TapPlanes(const LinearMap& taps) : counts(static_cast<size_t>(taps.to)) {
  for (const Tap& tap : taps.list) ++counts[static_cast<size_t>(tap.to)];
  for (const int32_t count : counts) width = std::max<int64_t>(width, count);
  padded = static_cast<int64_t>(taps.list.size()) != width * taps.to;
  const size_t cells = static_cast<size_t>(width * taps.to);
  positions.assign(cells, -1);
  weights.assign(cells, 0);
  std::vector<int32_t> filled(counts.size());
  for (const Tap& tap : taps.list) {
    const int64_t plane = filled[static_cast<size_t>(tap.to)]++;
    const size_t cell = static_cast<size_t>(plane * taps.to + tap.to);
    positions[cell] = tap.from;
    weights[cell] = tap.weight;
  }
}

}  // namespace graft
