// src/kernels/attention/mask.cpp: which weights the dropout of attention keeps, by the host.
#include "kernels/attention/mask.h"

#include <algorithm>
#include <array>

#include "kernels/attention/plan.h"

namespace graft {
namespace {

// The first of the row's weights of one head of a block.
int64_t place(const Attention& call, const AttentionPlan& plan, const RowBlock& block, int64_t head,
              int64_t row) {
  const int64_t number = block.head + head, heads = call.query.sizes[1];
  const int64_t line = block.slab.whole
                           ? number
                           : block.slab.batch * heads + number * plan.members() + block.slab.member;
  return (line * call.query.sizes[2] + block.row + row) * call.key.sizes[2];
}

// Words in the order of the block's elements.
class Words {
 public:
  explicit Words(Philox philox) : philox_(philox) {}

  uint32_t next() {
    if (taken_ == words_.size()) {
      words_ = philox_words(philox_, block_++);
      taken_ = 0;
    }
    return words_[taken_++];
  }

 private:
  const Philox philox_;
  std::array<uint32_t, 4> words_{};
  size_t taken_ = words_.size();
  uint64_t block_ = 0;
};

}  // namespace

void attention_mask(const Attention& call, bool* kept) {
  const int64_t lines = call.query.sizes[0] * call.query.sizes[1] * call.query.sizes[2];
  std::fill_n(kept, lines * call.key.sizes[2], true);
  const uint64_t threshold = dropout_threshold(call.dropout);
  const AttentionPlan plan(call);
  plan.each(plan.whole({}), [&](const RowBlock& block) {
    Words words({call.philox.seed, block.philox_offset});
    for (int64_t head = 0; head < block.heads; ++head) {
      for (int64_t row = 0; row < block.rows; ++row) {
        bool* const line = kept + place(call, plan, block, head, row);
        for (int64_t i = 0; i < block.columns; ++i) line[i] = words.next() >= threshold;
      }
    }
  });
}

}  // namespace graft
