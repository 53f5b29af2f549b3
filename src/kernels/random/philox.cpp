// src/kernels/random/philox.cpp: Philox 4x32-10 in kernels, and the loops that hand out its words.
#include "kernels/random/philox.h"

#include <cmath>

namespace graft {
namespace {

using namespace ir;

constexpr uint32_t kMultiplier[2] = {0xD2511F53u, 0xCD9E8D57u};
constexpr uint32_t kWeyl[2] = {0x9E3779B9u, 0xBB67AE85u};
constexpr int kRounds = 10;

struct Product {
  Value low, high;
};

Product multiply(Value word, uint32_t multiplier) {
  const Value product = cast(Type::kU64, word) * static_cast<uint64_t>(multiplier);
  return {cast(Type::kU32, product), cast(Type::kU32, product >> 32)};
}

}  // namespace

PhiloxWriter::PhiloxWriter(ir::Builder& b)
    : b_(b),
      key_low_(cast(Type::kU32, b.index())),
      key_high_(cast(Type::kU32, b.index())),
      offset_(b.index()),
      count_(b.index()) {}

std::vector<PhiloxWords> PhiloxWriter::words(const std::vector<Value>& blocks,
                                             Value attempt) const {
  std::vector<PhiloxWords> states;
  const Value zero = b_.constant(Type::kU32, 0);
  if (attempt.id() == ir::kNoId) attempt = zero;
  for (const Value& block : blocks) {
    const Value counter = offset_ + block;
    states.push_back({cast(Type::kU32, counter), cast(Type::kU32, counter >> 32), attempt, zero});
  }
  Value key[2] = {key_low_, key_high_};
  for (int round = 0; round < kRounds; ++round) {
    for (PhiloxWords& c : states) {
      const Product a = multiply(c[0], kMultiplier[0]), d = multiply(c[2], kMultiplier[1]);
      c = {d.high ^ c[1] ^ key[0], d.low, a.high ^ c[3] ^ key[1], a.low};
    }
    for (int k = 0; k < 2; ++k) key[k] = key[k] + kWeyl[k];
  }
  return states;
}

std::array<uint32_t, 4> philox_words(Philox philox, uint64_t block) {
  const uint64_t counter = philox.offset + block;
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                               0, 0};
  uint32_t key[2] = {static_cast<uint32_t>(philox.seed), static_cast<uint32_t>(philox.seed >> 32)};
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t a = uint64_t{c[0]} * kMultiplier[0], d = uint64_t{c[2]} * kMultiplier[1];
    c = {static_cast<uint32_t>(d >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(d),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    for (int k = 0; k < 2; ++k) key[k] += kWeyl[k];
  }
  return c;
}

std::array<Value, 2> wide_words(const PhiloxWords& words) {
  auto joined = [](Value low, Value high) {
    return cast(Type::kU64, low) | (cast(Type::kU64, high) << 32);
  };
  return {joined(words[0], words[1]), joined(words[2], words[3])};
}

int64_t append_philox(Arguments& arguments, Philox philox, int64_t count, int64_t per_block) {
  arguments.random(philox.seed, philox.offset).index(count);
  const int64_t blocks = (count + per_block - 1) / per_block;
  return (blocks + kPhiloxBlocks - 1) / kPhiloxBlocks;
}

Value unit_float(Value word, int bits) {
  // Through i32: the conversion of signed words is one instruction everywhere.
  const Value number = cast(Type::kI32, word >> (32 - bits));
  return cast(Type::kF32, number) * std::ldexp(1.0, -bits);
}

Value unit_double(Value wide_word) {
  wide_word.builder().keep_float64();  // in float32 it could be 1
  const Value number = cast(Type::kI64, wide_word >> 11);
  return cast(Type::kF64, number) * std::ldexp(1.0, -53);
}

}  // namespace graft
