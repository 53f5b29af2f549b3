// tests/kernels/attention/attention_test.cpp: attention and its gradients against loops in double.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention/mask.h"
#include "runtime/driver/dtype.h"
#include "tests/kernels/attention/reference.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

// Heads beside the rows, as a projection leaves them: [batch, rows, heads, depth] in memory.
std::vector<int64_t> strides(int64_t heads, int64_t n, int64_t depth, bool interleaved) {
  if (interleaved) return {n * heads * depth, depth, heads * depth, 1};
  return {heads * n * depth, n * depth, depth, 1};
}

void check(const AttentionShape& s, graft_dtype dtype, bool interleaved, bool causal, bool biased) {
  SCOPED_TRACE(std::to_string(s.rows) + "x" + std::to_string(s.columns) +
               (causal ? " causal" : ""));
  const auto tensor = [&](int64_t heads, int64_t n, int64_t depth) {
    return DeviceTensor({s.batch, heads, n, depth}, strides(heads, n, depth, interleaved), dtype);
  };
  DeviceTensor q = tensor(s.heads, s.rows, s.depth), k = tensor(s.key_heads, s.columns, s.depth),
               v = tensor(s.key_heads, s.columns, s.value_depth),
               o = tensor(s.heads, s.rows, s.value_depth),
               g = tensor(s.heads, s.rows, s.value_depth), dq = tensor(s.heads, s.rows, s.depth),
               dk = tensor(s.key_heads, s.columns, s.depth),
               dv = tensor(s.key_heads, s.columns, s.value_depth);
  AttentionReference reference{s,
                               numbers(q.view().count(), 1, -2, 2, dtype),
                               numbers(k.view().count(), 2, -2, 2, dtype),
                               numbers(v.view().count(), 3, -2, 2, dtype),
                               {},
                               causal,
                               0.3,
                               {}};
  q.set(reference.q), k.set(reference.k), v.set(reference.v);
  DeviceTensor bias({s.rows, s.columns}, GRAFT_FLOAT32);
  Attention call;
  call.query = q, call.key = k, call.value = v;
  TensorView spread = bias.as({s.batch, s.heads, s.rows, s.columns}, {0, 0, s.columns, 1});
  if (biased) {
    reference.bias = numbers(s.rows * s.columns, 4, -2, 2, GRAFT_FLOAT32);
    // A row that sees nothing.
    for (int64_t j = 0; j < s.columns; ++j) reference.bias[static_cast<size_t>(j)] = -INFINITY;
    bias.set(reference.bias);
    call.bias = &spread;
  }
  call.scale = 0.3;
  call.causal = causal;
  const bool half = is_half(dtype);
  DeviceTensor sums({s.batch, s.heads, s.rows}, half ? GRAFT_FLOAT32 : dtype);
  attention(stream(), o, sums, call);
  EXPECT_TRUE(near(o.get(), reference.forward(), half ? 1e-2 : 1e-4, half ? 1e-2 : 2e-5));
  EXPECT_TRUE(near(sums.get(), reference.logarithms(), 1e-4, 1e-5));
  if (half) return;  // the gradients' caller widens
  const Numbers above = numbers(g.view().count(), 5, -2, 2, dtype);
  g.set(above);
  attention_backward(stream(), dq, dk, dv, g, call);
  Numbers eq, ek, ev;
  reference.backward(above, &eq, &ek, &ev);
  EXPECT_TRUE(near(dq.get(), eq, 1e-4, 1e-4));
  EXPECT_TRUE(near(dk.get(), ek, 1e-4, 2e-4));
  EXPECT_TRUE(near(dv.get(), ev, 1e-4, 2e-4));
}

TEST(Attention, ForwardAndBackward) {
  const AttentionShape shapes[] = {{2, 3, 3, 7, 5, 4, 4},     {1, 1, 1, 1, 1, 1, 1},
                                   {2, 4, 2, 9, 12, 8, 6},    {1, 2, 2, 300, 70, 5, 3},
                                   {3, 1, 1, 20, 33, 16, 16}, {2, 6, 1, 4, 4, 2, 2}};
  for (const AttentionShape& shape : shapes) {
    for (bool interleaved : {false, true}) {
      for (bool causal : {false, true}) check(shape, GRAFT_FLOAT32, interleaved, causal, false);
      check(shape, GRAFT_FLOAT32, interleaved, false, true);
    }
  }
  check(shapes[2], GRAFT_FLOAT64, false, true, false);
  for (graft_dtype half : {GRAFT_BFLOAT16, GRAFT_FLOAT16}) check(shapes[2], half, true, true, true);
}

TEST(Attention, FewRowsOfHalves) {
  const AttentionShape shapes[] = {{2, 8, 2, 1, 70, 24, 32},   {1, 4, 4, 3, 33, 16, 16},
                                   {1, 2, 1, 4, 300, 64, 256}, {2, 4, 2, 1, 70, 32, 48},
                                   {1, 3, 3, 2, 5, 80, 80},    {1, 2, 2, 1, 1, 16, 144},
                                   {1, 3, 3, 1, 9, 7, 48}};
  for (const AttentionShape& shape : shapes) {
    for (graft_dtype half : {GRAFT_BFLOAT16, GRAFT_FLOAT16}) {
      for (bool interleaved : {false, true}) {
        check(shape, half, interleaved, false, false);
        check(shape, half, interleaved, true, true);
      }
    }
  }
}

TEST(Attention, FewRowsReadNoKeysOutsideOfTheirMask) {
  const int64_t columns = 40, depth = 16, begin = 9, end = 30;
  DeviceTensor q({1, 4, 1, depth}, GRAFT_BFLOAT16), k({1, 2, columns, depth}, GRAFT_BFLOAT16),
      v({1, 2, columns, depth}, GRAFT_BFLOAT16), o({1, 4, 1, depth}, GRAFT_BFLOAT16),
      sums({1, 4, 1}, GRAFT_FLOAT32), bias({columns}, GRAFT_FLOAT32),
      apart({columns}, {2}, GRAFT_FLOAT32);
  AttentionReference reference{{1, 4, 2, 1, columns, depth, depth},
                               numbers(q.view().count(), 1, -2, 2, GRAFT_BFLOAT16),
                               numbers(k.view().count(), 2, -2, 2, GRAFT_BFLOAT16),
                               numbers(v.view().count(), 3, -2, 2, GRAFT_BFLOAT16),
                               Numbers(static_cast<size_t>(columns), -INFINITY),
                               false,
                               0.3,
                               {}};
  for (const int64_t seen : {begin, int64_t{20}, end - 1}) {
    reference.bias[static_cast<size_t>(seen)] = 0.5;
  }
  Numbers keys = reference.k, values = reference.v;
  for (int64_t i = 0; i < 2 * columns * depth; ++i) {
    const int64_t column = i / depth % columns;
    if (column >= begin && column < end) continue;
    keys[static_cast<size_t>(i)] = values[static_cast<size_t>(i)] = NAN;
  }
  q.set(reference.q), k.set(keys), v.set(values);
  bias.set(reference.bias), apart.set(reference.bias);
  Attention call;
  call.query = q, call.key = k, call.value = v, call.scale = 0.3;
  for (const TensorView& spread :
       {bias.as({1, 4, 1, columns}, {0, 0, 0, 1}), apart.as({1, 4, 1, columns}, {0, 0, 0, 2})}) {
    call.bias = &spread;
    attention(stream(), o, sums, call);
    EXPECT_TRUE(near(o.get(), reference.forward(), 1e-2, 1e-2));
    EXPECT_TRUE(near(sums.get(), reference.logarithms(), 1e-4, 1e-5));
  }
}

TEST(Attention, LongRowsComeInSeveralBlocks) {
  check({1, 2, 1, 600, 520, 4, 4}, GRAFT_FLOAT32, true, true, false);
}

TEST(Attention, DropsTheSameWeightsInBothDirections) {
  // Values of 1 and one column's weight each: the output is the share of the weights that was kept,
  // and the gradient of the values is the dropped weights' sum.
  const int64_t rows = 300, columns = 40;
  DeviceTensor q({1, 2, rows, 4}, GRAFT_FLOAT32), k({1, 2, columns, 4}, GRAFT_FLOAT32),
      v({1, 2, columns, 1}, GRAFT_FLOAT32), o({1, 2, rows, 1}, GRAFT_FLOAT32),
      sums({1, 2, rows}, GRAFT_FLOAT32), dq({1, 2, rows, 4}, GRAFT_FLOAT32),
      dk({1, 2, columns, 4}, GRAFT_FLOAT32), dv({1, 2, columns, 1}, GRAFT_FLOAT32),
      g({1, 2, rows, 1}, GRAFT_FLOAT32);
  q.set(numbers(2 * rows * 4, 1)), k.set(Numbers(static_cast<size_t>(2 * columns * 4), 0.0));
  v.set(Numbers(static_cast<size_t>(2 * columns), 1.0));
  g.set(Numbers(static_cast<size_t>(2 * rows), 1.0));
  Attention call;
  call.query = q, call.key = k, call.value = v;
  call.dropout = 0.25;
  call.philox = {7, 3};
  attention(stream(), o, sums, call);
  attention_backward(stream(), dq, dk, dv, g, call);
  double forward = 0, backward = 0;
  for (double x : o.get()) forward += x;
  for (double x : dv.get()) backward += x;
  EXPECT_NEAR(forward, backward, 1e-2);
  EXPECT_NEAR(forward / static_cast<double>(2 * rows), 1, 0.02);
  EXPECT_GT(attention_increment(call), static_cast<uint64_t>(2 * rows * columns / 4));
  // The host draws the same: the share of each row's weights that it keeps is the output.
  std::vector<char> kept(static_cast<size_t>(2 * rows * columns));
  attention_mask(call, reinterpret_cast<bool*>(kept.data()));
  const Numbers shares = o.get();
  for (int64_t row = 0; row < 2 * rows; ++row) {
    const auto line = kept.begin() + row * columns;
    const double share = std::count(line, line + columns, 1) / (0.75 * columns);
    ASSERT_NEAR(shares[static_cast<size_t>(row)], share, 1e-4) << row;
  }
  const Numbers once = o.get();
  attention(stream(), o, sums, call);
  EXPECT_EQ(o.get(), once);
}

TEST(Attention, DroppingAllGivesZeros) {
  DeviceTensor q({1, 2, 64, 32}, GRAFT_FLOAT32), k({1, 2, 64, 32}, GRAFT_FLOAT32),
      v({1, 2, 64, 32}, GRAFT_FLOAT32), o({1, 2, 64, 32}, GRAFT_FLOAT32),
      sums({1, 2, 64}, GRAFT_FLOAT32);
  for (DeviceTensor* one : {&q, &k, &v}) one->set(Numbers(size_t{2 * 64 * 32}, 1.0));
  Attention call;
  call.query = q, call.key = k, call.value = v;
  call.dropout = 1;
  attention(stream(), o, sums, call);
  EXPECT_EQ(o.get(), Numbers(size_t{2 * 64 * 32}, 0.0));
  std::vector<char> kept(size_t{2 * 64 * 64}, 1);
  attention_mask(call, reinterpret_cast<bool*>(kept.data()));
  EXPECT_EQ(std::count(kept.begin(), kept.end(), 0), 2 * 64 * 64);
}

}  // namespace
