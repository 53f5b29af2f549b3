// src/kernels/resample/linear_map.h: which elements of one line make each element of another, and
// how much.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/driver/export.h"

namespace graft {

// One term: to[to] += weight * from[from].
struct Tap {
  int32_t to = 0;
  int32_t from = 0;
  double weight = 1;
};

// A linear map between lines of two lengths, made on the host: interpolation, padding, averages.
// Plain data; the order of the terms of one element is the order in which they are summed.
struct GRAFT_EXPORT LinearMap {
  int64_t to = 0;    // length of the line that is written
  int64_t from = 0;  // length of the line that is read
  std::vector<Tap> list;

  // The map that moves every element i to i.
  static LinearMap identity(int64_t length);

  void add(int64_t at, int64_t source, double weight = 1) {
    list.push_back({static_cast<int32_t>(at), static_cast<int32_t>(source), weight});
  }
  // The reverse: what gradients follow. Its terms are in the order of to.
  LinearMap transposed() const;

  bool is_identity() const;
  // Every element is exactly one other one, unchanged: any dtype can be moved that way.
  bool picks() const;
  // Every weight is 1: elements are sums of others, or 0 without one.
  bool sums() const;
  // Each element's taps of the same source as one tap.
  void join();
};

// LinearMap as kernels read them: planes of one tap per element, [width][to]. Elements with fewer
// taps have -1 as the position and 0 as the weight of the others.
struct TapPlanes {
  explicit TapPlanes(const LinearMap& taps);

  int64_t width = 0;  // the most taps of one element
  bool padded = false;
  std::vector<int32_t> positions;
  std::vector<double> weights;
  std::vector<int32_t> counts;  // taps of each element
};

}  // namespace graft
