// tests/codegen/print/tile_test.cpp: loops over float16, with and without whole tiles.
#include "codegen/print/tile.h"

#include <gtest/gtest.h>

#include <vector>

#include "codegen/ir/builder.h"
#include "tests/codegen/compiled.h"

namespace graft::ir {
namespace {

constexpr uint16_t kOne = 0x3c00, kTwo = 0x4000;

std::vector<TileAccess> accesses_of(const Kernel& kernel, const char* dialect = "c") {
  Id loop = 0;
  while (kernel.body[loop].opcode != Opcode::kVectorLoop) ++loop;
  Id after = loop;
  while (kernel.body[after].opcode != Opcode::kEnd) ++after;
  return tile_accesses(kernel, loop, after, *find_dialect(dialect));
}

// out[base + i] = in[i * stride] + in[i * stride]
Kernel twice(int64_t stride) {
  Builder b("twice");
  const Address out = b.write(GRAFT_FLOAT16), in = b.read(GRAFT_FLOAT16);
  const Value base = b.index(), count = b.index();
  b.vector_loop(b.i64(0), count, [&](Value i) {
    const Value value = in.load(stride == 1 ? i : i * stride);
    out.store(base + i, value + value);
  });
  return b.finish();
}

std::vector<uint16_t> run(const Kernel& kernel, std::vector<uint16_t> in, uint64_t base,
                          uint64_t count, size_t room) {
  std::vector<uint16_t> out(room, 0xffff);
  graft_kernel_argument arguments[4];
  arguments[0].address = out.data();
  arguments[1].address = in.data();
  arguments[2].bits = base;
  arguments[3].bits = count;
  Compiled{kernel}(arguments);
  return out;
}

TEST(Tile, ConvertsNeighboursTogether) {
  const std::vector<TileAccess> found = accesses_of(twice(1));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].position.empty());
  EXPECT_EQ(found[1].position.size(), 1u);
}

TEST(Tile, LeavesStridesAlone) { EXPECT_EQ(accesses_of(twice(2)).size(), 1u); }

TEST(Tile, LeavesDialectsWithoutInstructionsAlone) {
  EXPECT_TRUE(accesses_of(twice(1), "cuda-c").empty());
}

TEST(Tile, LeavesAddressesAloneThatChangeInTheLoop) {
  Builder b("either");
  const Address out = b.write(GRAFT_FLOAT32), x = b.read(GRAFT_FLOAT16), y = b.read(GRAFT_FLOAT16);
  b.vector_loop(b.i64(0), b.index(), [&](Value i) { out.store(i, pick({x, y}, i % 2).load(i)); });
  EXPECT_TRUE(accesses_of(b.finish()).empty());
}

TEST(Tile, WritesNoElementMoreThanTheLoopHas) {
  const std::vector<uint16_t> in(300, kOne);
  const Kernel kernel = twice(1), strided = twice(2);
  for (const uint64_t count : {0, 1, 31, 32, 33, 64, 100, 128}) {
    for (const Kernel* each : {&kernel, &strided}) {
      const std::vector<uint16_t> out = run(*each, in, 3, count, 140);
      for (uint64_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out[i], i >= 3 && i < 3 + count ? kTwo : 0xffff) << count << " at " << i;
      }
    }
  }
}

TEST(Tile, KeepsEveryBitPattern) {
  std::vector<uint16_t> in(0x10000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(i);
  Builder b("same");
  const Address out = b.write(GRAFT_FLOAT16), from = b.read(GRAFT_FLOAT16);
  b.index();
  b.vector_loop(b.i64(0), b.index(), [&](Value i) { out.store(i, from.load(i)); });
  const std::vector<uint16_t> same = run(b.finish(), in, 0, in.size(), in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const bool nan = (in[i] & 0x7fff) > 0x7c00;
    ASSERT_EQ(nan ? (same[i] & 0x7fff) > 0x7c00 : same[i] == in[i], true) << i;
  }
}

}  // namespace
}  // namespace graft::ir
