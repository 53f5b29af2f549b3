// src/kernels/convolution/winograd_tile.cpp: the small matrices of Winograd's convolutions.
#include "kernels/convolution/winograd_tile.h"

#include <cmath>
#include <optional>

namespace graft {
namespace {

using namespace ir;

const WinogradTile kTwo{2,
                        {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1},
                        {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1},
                        {1, 1, 1, 0, 0, 1, -1, -1}};

const WinogradTile kFour{
    4,
    {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
     0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1},
    {1.0 / 4, 0, 0, -1.0 / 6, -1.0 / 6, -1.0 / 6, -1.0 / 6, 1.0 / 6, -1.0 / 6, 1.0 / 24, 1.0 / 12,
     1.0 / 6, 1.0 / 24, -1.0 / 12, 1.0 / 6, 0, 0, 1},
    {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1}};

Value scaled(double factor, Value value) {
  if (factor == 1.0) return value;
  return factor == -1.0 ? -value : value * factor;
}

// The sum of factor * value over those that are not zero.
Value weighted(const double* factors, const Values& values) {
  std::optional<Value> sum;
  for (size_t i = 0; i < values.size(); ++i) {
    if (factors[i] == 0.0) continue;
    if (!sum) {
      sum = scaled(factors[i], values[i]);
    } else {
      const Value term = scaled(std::abs(factors[i]), values[i]);
      sum = factors[i] < 0 ? *sum - term : *sum + term;
    }
  }
  return *sum;
}

// matrix * values, where values has columns columns; transposed.
Values one_side(const std::vector<double>& matrix, const Values& values, size_t inner) {
  const size_t rows = matrix.size() / inner, columns = values.size() / inner;
  Values result;
  for (size_t c = 0; c < columns; ++c) {
    Values column;
    for (size_t i = 0; i < inner; ++i) column.push_back(values[i * columns + c]);
    for (size_t r = 0; r < rows; ++r) result.push_back(weighted(&matrix[r * inner], column));
  }
  return result;
}

}  // namespace

const WinogradTile& winograd_tile(int results) { return results == 2 ? kTwo : kFour; }

Values both_sides(const std::vector<double>& matrix, const Values& values, int side) {
  const auto inner = static_cast<size_t>(side);
  return one_side(matrix, one_side(matrix, values, inner), inner);
}

}  // namespace graft
