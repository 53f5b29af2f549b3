// tests/emulated/veda/memset_test.cpp: memsets of the emulated library, of all widths, flat and
// with a pitch, of both memories.
#include <cstring>

#include "tests/emulated/veda/fixture.h"

namespace emulated::testing {
namespace {

constexpr uint64_t kLow = 0x1716151413121110;
constexpr uint64_t kHigh = 0x2726252423222120;
constexpr size_t kBytes = 192;

// The memory after a memset: bytes of 0xEE, then rows of columns elements, pitch bytes apart.
std::vector<uint8_t> expected(size_t width, size_t offset, size_t pitch, size_t columns,
                              size_t rows) {
  uint8_t element[16] = {};
  std::memcpy(element, &kLow, 8);
  std::memcpy(element + 8, &kHigh, 8);
  std::vector<uint8_t> bytes(kBytes, 0xEE);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      std::memcpy(bytes.data() + offset + row * pitch + column * width, element, width);
    }
  }
  return bytes;
}

class MemsetTest : public VedaTest {
 protected:
  VEDAdeviceptr pointer = nullptr;
  VEDAhmemptr hmem = nullptr;

  void SetUp() override {
    start();
    pointer = allocate(kBytes);
    ASSERT_OK(veda().HMemAlloc(&hmem, kBytes));
  }
  void clear() {
    EXPECT_OK(veda().MemsetD8(pointer, 0xEE, kBytes));
    EXPECT_OK(veda().HMemsetD8(hmem, 0xEE, kBytes));
  }
  std::vector<uint8_t> memory() {
    std::vector<uint8_t> bytes(kBytes);
    EXPECT_OK(veda().MemcpyDtoH(bytes.data(), pointer, kBytes));
    return bytes;
  }
  std::vector<uint8_t> hmem_memory() {
    std::vector<uint8_t> bytes(kBytes);
    EXPECT_OK(veda().HMemcpy(bytes.data(), hmem, kBytes));
    return bytes;
  }
};

// One width: the four forms on both memories.
#define EXPECT_MEMSETS(bits, ...)                                                \
  {                                                                              \
    constexpr size_t width = bits / 8;                                           \
    clear();                                                                     \
    EXPECT_OK(veda().MemsetD##bits(pointer + 16, __VA_ARGS__, 3));               \
    EXPECT_EQ(memory(), expected(width, 16, 0, 3, 1));                           \
    EXPECT_OK(veda().HMemsetD##bits(hmem + 16, __VA_ARGS__, 3));                 \
    EXPECT_EQ(hmem_memory(), expected(width, 16, 0, 3, 1));                      \
    clear();                                                                     \
    EXPECT_OK(veda().MemsetD##bits##Async(pointer, __VA_ARGS__, 4, 0));          \
    EXPECT_OK(veda().HMemsetD##bits##Async(hmem, __VA_ARGS__, 4, 0));            \
    EXPECT_OK(veda().CtxSynchronize());                                          \
    EXPECT_EQ(memory(), expected(width, 0, 0, 4, 1));                            \
    EXPECT_EQ(hmem_memory(), expected(width, 0, 0, 4, 1));                       \
    clear();                                                                     \
    EXPECT_OK(veda().MemsetD2D##bits(pointer + 16, 48, __VA_ARGS__, 2, 3));      \
    EXPECT_OK(veda().HMemsetD2D##bits(hmem + 16, 48, __VA_ARGS__, 2, 3));        \
    EXPECT_EQ(memory(), expected(width, 16, 48, 2, 3));                          \
    EXPECT_EQ(hmem_memory(), expected(width, 16, 48, 2, 3));                     \
    clear();                                                                     \
    EXPECT_OK(veda().MemsetD2D##bits##Async(pointer, 64, __VA_ARGS__, 3, 2, 0)); \
    EXPECT_OK(veda().HMemsetD2D##bits##Async(hmem, 64, __VA_ARGS__, 3, 2, 0));   \
    EXPECT_OK(veda().CtxSynchronize());                                          \
    EXPECT_EQ(memory(), expected(width, 0, 64, 3, 2));                           \
    EXPECT_EQ(hmem_memory(), expected(width, 0, 64, 3, 2));                      \
  }

TEST_F(MemsetTest, Of8Bits) { EXPECT_MEMSETS(8, static_cast<uint8_t>(kLow)); }
TEST_F(MemsetTest, Of16Bits) { EXPECT_MEMSETS(16, static_cast<uint16_t>(kLow)); }
TEST_F(MemsetTest, Of32Bits) { EXPECT_MEMSETS(32, static_cast<uint32_t>(kLow)); }
TEST_F(MemsetTest, Of64Bits) { EXPECT_MEMSETS(64, kLow); }
TEST_F(MemsetTest, Of128Bits) { EXPECT_MEMSETS(128, kLow, kHigh); }

TEST_F(MemsetTest, BoundsOfAFlatOneAtTheSync) {
  EXPECT_OK(veda().MemsetD32Async(pointer + 4, 1, kBytes / 4, 0));
  EXPECT_CODE(VEDA_ERROR_OUT_OF_BOUNDS, veda().StreamSynchronize(0));
}

TEST_F(MemsetTest, SizeThatOverflows) {
  EXPECT_CODE(VEDA_ERROR_OUT_OF_BOUNDS, veda().MemsetD64(pointer, 1, SIZE_MAX / 4));
}

TEST_F(MemsetTest, UnknownPointerAtTheSync) {
  EXPECT_OK(veda().MemsetD8Async(VEDA_SET_PTR(0, 50, 0), 1, 1, 0));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VPTR, veda().CtxSynchronize());
}

TEST_F(MemsetTest, PitchedOneIsUnchecked) {
  EXPECT_OK(veda().MemsetD2D8(pointer, kBytes + 8, 1, kBytes, 2));  // the page has more bytes
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_EXCEPTION, veda().MemsetD2D8(pointer, 4096, 1, 64, 3));
}

TEST_F(MemsetTest, OfDeviceCode) {
  EXPECT_EQ(run("set_all_widths", {raw(pointer)}),
            8u * 1 + 8 * 2 + 8 * 3 + 8 * 4 + 8 * 5 + 8 * 6 + 8 * 1);
}

}  // namespace
}  // namespace emulated::testing
