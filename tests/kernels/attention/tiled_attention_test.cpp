// tests/kernels/attention/tiled_attention_test.cpp: what attention in tiles of local memory must
// share with the blocks of CPU-like devices, on the device under test.
#include "kernels/attention/tiled_attention.h"

#include <cmath>

#include "kernels/attention/plan.h"
#include "kernels/attention/tile.h"
#include "kernels/random/random.h"
#include "tests/kernels/attention/reference.h"
#include "tests/kernels/tensor/device_tensor.h"

// labels of the file: opencl_cpu
namespace {

using namespace graft;
using namespace graft::test;

bool gpu_like() { return device().properties().device_class == GRAFT_GPU_LIKE; }

struct Options {
  graft_dtype dtype = GRAFT_FLOAT32;
  bool causal = false, saved = true;
  double dropout = 0;
  bool beside = false;  // heads beside the rows in memory; the output's gradient the other way
  std::vector<int64_t> bias = {};  // strides of a bias [columns] or [rows, columns]
  graft_dtype bias_dtype = GRAFT_FLOAT32;
};

// What dropout() keeps of the call's weights, block by block.
Numbers kept_of(const Attention& call) {
  const AttentionPlan plan(call);
  const TensorView &q = call.query, &k = call.key;
  const int64_t heads = q.sizes[1], rows = q.sizes[2], columns = k.sizes[2];
  Numbers kept(static_cast<size_t>(q.sizes[0] * heads * rows * columns), 0.0);
  plan.each(plan.whole({}), [&](const RowBlock& block) {
    DeviceTensor ones({block.heads, block.rows, block.columns}, GRAFT_FLOAT32);
    DeviceTensor mask({block.heads, block.rows, block.columns}, GRAFT_BOOL);
    ones.set(Numbers(static_cast<size_t>(ones.view().count()), 1.0));
    dropout(stream(), ones, mask, ones, {call.philox.seed, block.philox_offset}, call.dropout);
    const Numbers drawn = ones.get();
    for (int64_t i = 0; i < ones.view().count(); ++i) {
      const int64_t column = i % block.columns, row = i / block.columns % block.rows;
      const int64_t place = block.head + i / block.columns / block.rows;
      const int64_t head =
          block.slab.whole ? place
                           : block.slab.batch * heads + place * plan.members() + block.slab.member;
      kept[static_cast<size_t>((head * rows + block.row + row) * columns + column)] =
          drawn[static_cast<size_t>(i)];
    }
  });
  return kept;
}

std::vector<int64_t> strides(int64_t heads, int64_t n, int64_t depth, bool beside) {
  if (beside) return {n * heads * depth, depth, heads * depth, 1};
  return {heads * n * depth, n * depth, depth, 1};
}

void check(const AttentionShape& s, const Options& o) {
  SCOPED_TRACE(std::to_string(s.rows) + "x" + std::to_string(s.columns) + " " + name_of(o.dtype) +
               (o.causal ? " causal" : "") + (o.dropout > 0 ? " dropout" : ""));
  const graft_dtype sums = is_half(o.dtype) ? GRAFT_FLOAT32 : o.dtype;
  const auto tensor = [&](int64_t heads, int64_t n, int64_t depth, bool beside) {
    return DeviceTensor({s.batch, heads, n, depth}, strides(heads, n, depth, beside), o.dtype);
  };
  DeviceTensor q = tensor(s.heads, s.rows, s.depth, o.beside),
               k = tensor(s.key_heads, s.columns, s.depth, o.beside),
               v = tensor(s.key_heads, s.columns, s.value_depth, o.beside),
               out = tensor(s.heads, s.rows, s.value_depth, o.beside),
               g = tensor(s.heads, s.rows, s.value_depth, !o.beside),
               dq = tensor(s.heads, s.rows, s.depth, o.beside),
               dk = tensor(s.key_heads, s.columns, s.depth, o.beside),
               dv = tensor(s.key_heads, s.columns, s.value_depth, o.beside);
  DeviceTensor logs({s.batch, s.heads, s.rows}, sums), bias({s.rows, s.columns}, o.bias_dtype);
  const auto values = [&](const DeviceTensor& t, unsigned seed) {
    return numbers(t.view().count(), seed, -2, 2, o.dtype);
  };
  AttentionReference reference{s, values(q, 1), values(k, 2), values(v, 3), {}, o.causal, 0.3, {}};
  q.set(reference.q), k.set(reference.k), v.set(reference.v);
  Attention call;
  call.query = q, call.key = k, call.value = v;
  call.scale = 0.3, call.causal = o.causal, call.dropout = o.dropout, call.philox = {11, 5};
  TensorView spread{};
  if (!o.bias.empty()) {
    const Numbers drawn = numbers(s.rows * s.columns, 4, -2, 2, o.bias_dtype);
    bias.set(drawn);
    spread = bias.as({s.batch, s.heads, s.rows, s.columns}, o.bias);
    for (int64_t i = 0; i < s.rows * s.columns; ++i) {
      const int64_t at = i / s.columns * o.bias[2] + i % s.columns * o.bias[3];
      reference.bias.push_back(drawn[static_cast<size_t>(at)]);
    }
    call.bias = &spread;
  }
  if (o.dropout > 0) reference.kept = kept_of(call);
  const double e = is_half(o.dtype) ? (o.dtype == GRAFT_BFLOAT16 ? 2e-2 : 2e-3) : 2e-5;
  attention(stream(), out, logs, call);
  EXPECT_TRUE(near(out.get(), reference.forward(), 5 * e, e));
  EXPECT_TRUE(near(logs.get(), reference.logarithms(), 1e-4, 1e-5));
  const Numbers above = values(g, 5);
  g.set(above);
  if (o.saved) call.output = &out.view(), call.logsumexp = &logs.view();
  attention_backward(stream(), dq, dk, dv, g, call);
  Numbers eq, ek, ev;
  reference.backward(above, &eq, &ek, &ev);
  EXPECT_TRUE(near(dq.get(), eq, 5 * e, 5 * e));
  EXPECT_TRUE(near(dk.get(), ek, 5 * e, 10 * e));
  EXPECT_TRUE(near(dv.get(), ev, 5 * e, 10 * e));
}

TEST(TiledAttention, DropsWhatTheBlocksOfRowsDrop) {
  for (const bool causal : {false, true}) {
    check({2, 4, 2, 37, 45, 8, 8}, {.causal = causal, .dropout = 0.3});
    check({2, 3, 3, 21, 19, 8, 8}, {.causal = causal, .dropout = 0.3});
    check({2, 3, 3, 21, 19, 8, 8}, {.causal = causal, .dropout = 0.3, .beside = true});
    // Several blocks of heads and rows, both with a rest.
    check({1, 9, 9, 280, 500, 2, 2}, {.causal = causal, .saved = false, .dropout = 0.3});
  }
  check({1, 2, 2, 9, 9, 8, 8}, {.dropout = 1});
}

TEST(TiledAttention, BiasesOfAnyStridesAndTypes) {
  check({2, 2, 1, 18, 23, 8, 8}, {.bias = {0, 0, 0, 1}});
  check({2, 2, 1, 18, 18, 8, 8}, {.causal = true, .bias = {0, 0, 1, 18}});
  check({1, 2, 1, 18, 23, 8, 8}, {.bias = {0, 0, 23, 1}, .bias_dtype = GRAFT_BFLOAT16});
  check({1, 1, 1, 18, 23, 8, 8}, {.bias = {0, 0, 1, 0}});
}

TEST(TiledAttention, HeadsOfAnySize) {
  check({1, 2, 2, 17, 33, 80, 80}, {});
  check({1, 1, 1, 5, 9, 129, 72}, {.causal = true});
  check({1, 1, 1, 9, 5, 3, 300}, {.causal = true, .saved = false});
}

TEST(TiledAttention, LongRowsOfOneQuery) { check({2, 2, 1, 1, 1000, 8, 8}, {}); }

TEST(TiledAttention, HalfTypesAsTheyLie) {
  if (!gpu_like()) return;
  for (const graft_dtype dtype : {GRAFT_FLOAT16, GRAFT_BFLOAT16}) {
    check({1, 4, 2, 37, 20, 8, 8}, {.dtype = dtype, .causal = true});
  }
}

TEST(TiledAttention, TakesGpuLikeDevicesAlone) {
  DeviceTensor x({1, 1, 4, 4}, GRAFT_FLOAT32), logs({1, 1, 4}, GRAFT_FLOAT32);
  x.set(numbers(16, 1));
  Attention call;
  call.query = call.key = call.value = x;
  DeviceTensor out({1, 1, 4, 4}, GRAFT_FLOAT32);
  EXPECT_EQ(tiled_attention(stream(), out, logs, call), gpu_like());
  EXPECT_EQ(tiled_attention_backward(stream(), out, out, out, x, call), gpu_like());
}

// Every tile that a device gets holds its promises, down to devices with hardly any local memory.
TEST(AttentionTile, FitsDevices) {
  size_t found = 0;
  for (const char* vendor :
       {"NVIDIA", "AMD", "Intel", "Apple", "Arm", "Qualcomm", "", "GenuineIntel"}) {
    for (const uint64_t local : {0, 2048, 16384, 32768, 49152, 65536}) {
      for (const uint32_t group : {1, 64, 256, 1024}) {
        graft_device_properties properties{};
        properties.device_class = GRAFT_GPU_LIKE;
        std::snprintf(properties.vendor, sizeof(properties.vendor), "%s", vendor);
        properties.local_memory_bytes = local, properties.max_group_size = group;
        for (const int64_t width : {1, 40, 64, 80, 128, 256, 2000}) {
          const int64_t widths[] = {width, width};
          for (const uint32_t bytes : {4u, 8u}) {
            const auto tile = AttentionTile::fit(properties, bytes, 1024, 1024, 2, widths);
            if (!tile) continue;
            ++found;
            const TileShape& scores = tile->scores;
            EXPECT_LE(tile->local_elements() * bytes, static_cast<int64_t>(local));
            EXPECT_LE(scores.group(), static_cast<int64_t>(group));
            EXPECT_GE(tile->weights_elements(), scores.rows * scores.across());
            for (const TileShape& result : tile->results) {
              EXPECT_GE(result.columns, width);
              EXPECT_EQ(result.columns, result.item_columns * result.across());
              EXPECT_EQ(result.rows, scores.rows);
              EXPECT_EQ(result.across(), scores.across());
              EXPECT_EQ(result.item_columns % result.vector, 0);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(found, 500u);
}

}  // namespace
