// drivers/host/onednn/panels.cpp: weights as oneDNN's fast convolutions read them.
#include "panels.h"

#include <immintrin.h>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace graft::host {
namespace {

using dnnl::memory;

constexpr int64_t kLanes = 8;
// Words of a row that are copied before those of the next rows: what is written to a cache line
// comes together while the line is in the cache.
constexpr int64_t kChunk = 512;
// Of panels: places are numbers of 32 bits.
constexpr size_t kMostBytes = size_t{1} << 31;

using Vectors = __m256i[kLanes];

[[gnu::target("avx2")]] inline void transpose(Vectors& x) {
  Vectors y;
  for (int i = 0; i < kLanes; i += 2) {
    y[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
  }
  for (int i = 0; i < kLanes; i += 4) {
    x[i] = _mm256_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm256_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm256_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm256_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
  for (int i = 0; i < kLanes / 2; ++i) {
    y[i] = _mm256_permute2x128_si256(x[i], x[i + 4], 0x20);
    y[i + 4] = _mm256_permute2x128_si256(x[i], x[i + 4], 0x31);
  }
  for (int i = 0; i < kLanes; ++i) x[i] = y[i];
}

template <class Number>
Number load(const std::byte* from, size_t index) {
  Number result;
  std::memcpy(&result, from + index * sizeof(Number), sizeof(Number));
  return result;
}

// Writes each word of eight rows beside those of the others.
[[gnu::target("avx2")]] void write_words(const std::byte* const (&rows)[kLanes],
                                         std::span<const int32_t> places, uint32_t* to) {
  size_t i = 0;
  for (; i + kLanes <= places.size(); i += kLanes) {
    Vectors x;
    for (int row = 0; row < kLanes; ++row)
      x[row] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[row]) + i / kLanes);
    transpose(x);
    for (int k = 0; k < kLanes; ++k)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + places[i + size_t(k)]), x[k]);
  }
  for (; i < places.size(); ++i)
    for (int row = 0; row < kLanes; ++row) to[places[i] + row] = load<uint32_t>(rows[row], i);
}

// Makes words of numbers that lie in runs: a run of their first halves, then one of the second.
[[gnu::target("avx2")]] void pair(const std::byte* from, size_t run, std::span<uint32_t> words) {
  for (; !words.empty(); from += run * sizeof(uint32_t), words = words.subspan(run)) {
    const std::byte* second = from + run * sizeof(uint16_t);
    size_t i = 0;
    for (; i + kLanes <= run; i += kLanes) {
      const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i / kLanes);
      const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second) + i / kLanes);
      auto* to = reinterpret_cast<__m128i*>(&words[i]);
      _mm_storeu_si128(to, _mm_unpacklo_epi16(low, high));
      _mm_storeu_si128(to + 1, _mm_unpackhi_epi16(low, high));
    }
    for (; i < run; ++i)
      words[i] = load<uint16_t>(from, i) | uint32_t{load<uint16_t>(second, i)} << 16;
  }
}

// Copies the words that are written to the given places of one panel. from: of the first row.
void fill_chunk(const Panels& p, const std::byte* from, int64_t first_row,
                std::span<const int32_t> places, uint32_t* to) {
  static const std::byte zeros[kChunk * sizeof(uint32_t)] = {};
  const int64_t row_bytes = p.row_stride * (p.paired ? 2 : 4);
  uint32_t paired[kLanes][kChunk];
  for (int64_t lane = 0; lane < p.width; lane += kLanes) {
    const std::byte* rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t row = first_row + lane + i;
      rows[i] = row < p.rows ? from + row * row_bytes : zeros;
      if (p.apart == 0 || row >= p.rows) continue;
      pair(rows[i], size_t(p.apart), {paired[i], places.size()});
      rows[i] = reinterpret_cast<const std::byte*>(paired[i]);
    }
    write_words(rows, places, to + lane);
  }
}

// The dimensions but one, by their strides; nothing unless together they are one piece of memory.
std::vector<int> in_one_piece(const memory::desc& from, int rows) {
  const auto sizes = from.get_dims(), strides = from.get_strides();
  std::vector<int> order;
  for (int i = 0; i < int(sizes.size()); ++i) {
    if (i != rows && sizes[size_t(i)] > 1) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](int i) { return strides[size_t(i)]; });
  int64_t reach = 1;
  for (const int i : order) {
    if (strides[size_t(i)] != reach) return {};
    reach *= sizes[size_t(i)];
  }
  return order;
}

// Where the words of a row go, in the order of the source.
std::vector<int32_t> word_places(std::span<const int> order, const memory::dims& words,
                                 const memory::dims& strides, int64_t pack) {
  std::vector<int32_t> places = {0};
  for (const int dimension : order) {
    const size_t inner = places.size();
    const int64_t stride = strides[size_t(dimension)] / pack;
    for (int64_t at = 1; at < words[size_t(dimension)]; ++at)
      for (size_t k = 0; k < inner; ++k) places.push_back(int32_t(places[k] + at * stride));
  }
  return places;
}

// Whether a description is of panels: a block of rows, and with 16 bits one of two steps in it.
bool is_panels(const memory::desc& desc, bool paired) {
  const auto blocks = desc.get_inner_blks();
  if (blocks.size() != (paired ? 2u : 1u) || blocks[0] % kLanes != 0) return false;
  const auto dimensions = desc.get_inner_idxs();
  return !paired || (blocks[1] == 2 && dimensions[0] != dimensions[1]);
}

}  // namespace

std::optional<Panels> panels(const memory::desc& from, const memory::desc& to) {
  const auto type = from.get_data_type();
  const bool paired = type == memory::data_type::bf16 || type == memory::data_type::f16;
  if ((!paired && type != memory::data_type::f32) || to.get_data_type() != type ||
      from.get_inner_nblks() != 0 || !is_panels(to, paired) || to.get_size() > kMostBytes ||
      !__builtin_cpu_supports("avx2")) {
    return std::nullopt;
  }
  const auto padded = to.get_padded_dims(), strides = to.get_strides();
  const auto given = from.get_strides();
  memory::dims words = to.get_dims();
  const int rows = int(to.get_inner_idxs()[0]), pairs = paired ? int(to.get_inner_idxs()[1]) : rows;
  const std::vector<int> order = in_one_piece(from, rows);
  for (const int i : order) {
    if (padded[size_t(i)] != words[size_t(i)]) return std::nullopt;
  }
  if (order.empty()) return std::nullopt;
  int64_t apart = 0;
  if (paired) {
    int64_t& steps = words[size_t(pairs)];
    if (steps % 2 != 0) return std::nullopt;
    steps /= 2;
    if (order[0] != pairs) apart = given[size_t(pairs)];
    if (apart > kChunk || (apart != 0 && order.back() != pairs)) return std::nullopt;
  }
  const int64_t pack = paired ? 2 : 1, width = to.get_inner_blks()[0];
  return Panels{paired,
                words[size_t(rows)],
                given[size_t(rows)],
                apart,
                width,
                padded[size_t(rows)] / width,
                strides[size_t(rows)] / pack,
                word_places(order, words, strides, pack)};
}

void fill(const Panels& p, const void* from, void* to) {
  const std::span<const int32_t> words = p.places;
  const size_t chunk = size_t(p.apart == 0 ? kChunk : kChunk / p.apart * p.apart);
  const size_t chunks = (words.size() + chunk - 1) / chunk;
  tbb::parallel_for(
      tbb::blocked_range<size_t>(0, size_t(p.count) * chunks), [&](const auto& range) {
        for (size_t i = range.begin(); i < range.end(); ++i) {
          const auto panel = int64_t(i / chunks);
          const size_t begin = i % chunks * chunk;
          fill_chunk(p, static_cast<const std::byte*>(from) + begin * sizeof(uint32_t),
                     panel * p.width, words.subspan(begin, std::min(chunk, words.size() - begin)),
                     static_cast<uint32_t*>(to) + panel * p.stride);
        }
      });
}

}  // namespace graft::host
