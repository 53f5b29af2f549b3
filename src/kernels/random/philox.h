// src/kernels/random/philox.h: Philox 4x32-10 in kernels, and the loops that hand out its words.
#pragma once

#include <array>
#include <vector>

#include "codegen/ir/builder.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "kernels/random/random.h"
#include "runtime/driver/open_device.h"

namespace graft {

// Whether kernels of the device may compute in float64.
inline bool has_float64(const OpenDevice& device) {
  return (device.properties().features & GRAFT_FEATURE_FLOAT64) != 0;
}

// Blocks of four words that one work-item draws.
inline constexpr int64_t kPhiloxBlocks = 1024;
// Blocks that are drawn side by side.
inline constexpr int64_t kPhiloxGroup = 64;

// The four u32 words of a block, and the same as 64-bit words.
using PhiloxWords = std::array<ir::Value, 4>;
std::array<ir::Value, 2> wide_words(const PhiloxWords& words);

// Declares {key low, key high, offset, element count} in a kernel and draws words.
class PhiloxWriter {
 public:
  explicit PhiloxWriter(ir::Builder& b);

  // The words of the blocks offset + block, round by round for all of them: a round waits for the
  // one before it, and with two blocks the processor has something to do meanwhile.
  // attempt (u32, 0 by default) is the third word of the counters: fresh words for the same block,
  // for samplers that reject.
  std::vector<PhiloxWords> words(const std::vector<ir::Value>& blocks,
                                 ir::Value attempt = {}) const;

  // Hands out values to elements: draw(words of a block) gives per_block values of the type for the
  // elements block * per_block + k; store(element, value) writes one. Blocks are drawn side by side
  // and their values put in order in a private array, so that both halves run in wide vectors.
  template <class Draw, class Store>
  void each(int64_t per_block, ir::Type type, Draw draw, Store store) const {
    constexpr int64_t kHalf = kPhiloxGroup / 2;
    const int64_t group = kPhiloxGroup * per_block;
    const ir::Value begin = b_.item() * (kPhiloxBlocks * per_block);
    const ir::Value end = ir::minimum(begin + kPhiloxBlocks * per_block, count_);
    b_.loop(
        begin, end,
        [&](ir::Value first) {
          const ir::Lanes values(b_, type, static_cast<uint32_t>(group));
          const ir::Value block = first / per_block;
          b_.vector_loop(b_.i64(0), b_.i64(kHalf), [&](ir::Value lane) {
            const std::vector<ir::Value> lanes = {lane, lane + kHalf};
            const auto drawn_words = words({block + lanes[0], block + lanes[1]});
            for (size_t half = 0; half < lanes.size(); ++half) {
              const auto drawn = draw(drawn_words[half]);
              for (size_t k = 0; k < drawn.size(); ++k) {
                values.store(lanes[half] * per_block + static_cast<int64_t>(k), drawn[k]);
              }
            }
          });
          auto write = [&](ir::Value i) { store(first + i, values.load(i)); };
          const ir::Value length = ir::minimum(end - first, b_.i64(group));
          b_.if_(
              length == group, [&] { b_.vector_loop(b_.i64(0), b_.i64(group), write); },
              [&] { b_.vector_loop(b_.i64(0), length, write); });
        },
        b_.i64(group));
  }

  ir::Value count() const { return count_; }

 private:
  ir::Builder& b_;
  ir::Value key_low_, key_high_, offset_, count_;
};

// The generator's state as a part of a vendor's call.
inline auto draws(Philox philox) {
  return [philox](VendorCall& call) { call.random(philox.seed, philox.offset); };
}

// Appends the arguments that PhiloxWriter declares; gives the grid for per_block elements a block.
int64_t append_philox(Arguments& arguments, Philox philox, int64_t count, int64_t per_block);

// A word as a float in [0, 1): its upper bits, at most 24. As a double: a 64-bit word's upper 53.
ir::Value unit_float(ir::Value word, int bits = 24);
ir::Value unit_double(ir::Value wide_word);

}  // namespace graft
