// src/kernels/convolution/winograd_tile.h: the small matrices of Winograd's convolutions.
#pragma once

#include <vector>

#include "codegen/ir/builder.h"

namespace graft {

// F(m x m, 3 x 3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015,
// arXiv 1509.09308): m x m results from side() x side() elements through side() squared products.
// A matrix holds its rows one after another.
struct WinogradTile {
  int results;                   // m
  std::vector<double> elements;  // B^T, side x side
  std::vector<double> weights;   // G, side x 3
  std::vector<double> sums;      // A^T, m x side

  int side() const { return results + 2; }
  int products() const { return side() * side(); }
};

// m is 2 or 4.
const WinogradTile& winograd_tile(int results);

// matrix * values * matrix^T of a square of values, row by row.
ir::Values both_sides(const std::vector<double>& matrix, const ir::Values& values, int side);

}  // namespace graft
