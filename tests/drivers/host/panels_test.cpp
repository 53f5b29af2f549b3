// tests/drivers/host/panels_test.cpp: copies into panels, bit for bit beside oneDNN's reorder.
#include "drivers/host/onednn/panels.h"

#include <gtest/gtest.h>

#include <cstring>

namespace graft::host {
// labels of the file: onednn
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

dnnl::engine& cpu() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Random float32 or bfloat16 numbers, neither NaN nor subnormal: without AVX-512 oneDNN's reorder
// keeps not all of those.
std::vector<uint8_t> numbers(size_t bytes) {
  std::vector<uint8_t> result(bytes);
  uint32_t state = 1;
  for (uint8_t& byte : result) byte = uint8_t((state = state * 1664525 + 1013904223) >> 24);
  for (size_t i = 1; i < bytes; i += 2) result[i] = uint8_t((result[i] & 0xbf) | 0x20);
  return result;
}

std::vector<uint8_t> reordered(const memory::desc& from, const memory::desc& to,
                               std::vector<uint8_t>& data) {
  std::vector<uint8_t> result(to.get_size(), 0xff);
  memory source(from, cpu(), data.data()), target(to, cpu(), result.data());
  dnnl::stream stream(cpu());
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
  return result;
}

void expect_equal(const memory::desc& from, const memory::desc& to) {
  const auto copy = panels(from, to);
  ASSERT_EQ(copy.has_value(), __builtin_cpu_supports("avx2") != 0);
  if (!copy) return;
  std::vector<uint8_t> data = numbers(from.get_size()), result(to.get_size(), 0xff);
  fill(*copy, data.data(), result.data());
  EXPECT_EQ(result, reordered(from, to, data));
}

// Sizes that fill panels and that do not, lines shorter and longer than what is copied at once.
const memory::dims kSizes[] = {{64, 32, 3, 3}, {50, 38, 3, 2}, {96, 1200, 1, 1},
                               {7, 2, 1, 1},   {32, 64, 5, 5}, {130, 70, 7, 7}};

TEST(HostPanels, EqualOneDnnsReorder) {
  for (const memory::dims& sizes : kSizes) {
    for (Tag order : {Tag::abcd, Tag::acdb}) {
      SCOPED_TRACE(testing::Message() << sizes[0] << " x " << sizes[1] << " order " << int(order));
      for (Tag tag : {Tag::Acdb8a, Tag::Acdb16a, Tag::Acdb32a, Tag::Acdb48a, Tag::Acdb64a})
        expect_equal({sizes, Type::f32, order}, {sizes, Type::f32, tag});
      for (Tag tag : {Tag::AcdB16a2b, Tag::AcdB32a2b, Tag::AcdB48a2b, Tag::AcdB64a2b})
        expect_equal({sizes, Type::bf16, order}, {sizes, Type::bf16, tag});
    }
  }
}

TEST(HostPanels, OfOneAndOfThreeDimensions) {
  const memory::dims line = {40, 24, 3}, cube = {40, 24, 3, 2, 3};
  expect_equal({line, Type::f32, Tag::abc}, {line, Type::f32, Tag::Acb32a});
  expect_equal({line, Type::bf16, Tag::abc}, {line, Type::bf16, Tag::AcB32a2b});
  expect_equal({cube, Type::f32, Tag::abcde}, {cube, Type::f32, Tag::Acdeb32a});
  expect_equal({cube, Type::bf16, Tag::abcde}, {cube, Type::bf16, Tag::AcdeB32a2b});
}

TEST(HostPanels, RefuseOtherCopies) {
  const memory::dims sizes = {64, 32, 3, 3}, odd = {64, 3, 3, 3}, apart = {1000, 30, 9, 3};
  const memory::desc plain(sizes, Type::f32, Tag::abcd);
  EXPECT_FALSE(panels(plain, plain));
  EXPECT_FALSE(panels(plain, {sizes, Type::bf16, Tag::AcdB32a2b}));
  EXPECT_FALSE(panels(plain, {sizes, Type::f32, Tag::ABcd16b16a}));
  EXPECT_FALSE(panels({sizes, Type::f32, Tag::Acdb32a}, {sizes, Type::f32, Tag::Acdb64a}));
  EXPECT_FALSE(panels({sizes, Type::f32, apart}, {sizes, Type::f32, Tag::Acdb32a}));
  EXPECT_FALSE(panels({sizes, Type::f32, Tag::abcd}, {sizes, Type::f32, Tag::Bcda32b}));
  EXPECT_FALSE(panels({odd, Type::bf16, Tag::abcd}, {odd, Type::bf16, Tag::AcdB32a2b}));
}

}  // namespace
}  // namespace graft::host
