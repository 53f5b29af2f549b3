// drivers/host/onednn/half.cpp: float16 numbers to float32 and back, in blocks.
#include "half.h"

#include <immintrin.h>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

namespace graft::host {
namespace {

constexpr size_t kLanes = 8, kBlock = 16384;

[[gnu::target("avx,f16c")]] void widen_block(const uint16_t* from, float* to, size_t count) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  for (; i < count; ++i) to[i] = _cvtsh_ss(from[i]);
}

[[gnu::target("avx,f16c")]] void narrow_block(const float* from, uint16_t* to, size_t count) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  for (; i < count; ++i) to[i] = _cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT);
}

// block(begin, size) for ranges that hold count numbers together.
template <class Block>
void each_block(size_t count, Block block) {
  tbb::parallel_for(tbb::blocked_range<size_t>(0, (count + kBlock - 1) / kBlock),
                    [&](const tbb::blocked_range<size_t>& range) {
                      const size_t begin = range.begin() * kBlock;
                      block(begin, std::min(range.end() * kBlock, count) - begin);
                    });
}

}  // namespace

bool computes_half_as_float() {
  static const bool answer = [] {
    const auto native = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_fp16);
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto avx2 = static_cast<unsigned>(dnnl::cpu_isa::avx2);
    // clang has no name for F16C here; every processor with AVX2 has it.
    return (isa & native) != native && (isa & avx2) == avx2;
  }();
  return answer;
}

void widen(const uint16_t* from, float* to, size_t count) {
  each_block(count,
             [=](size_t begin, size_t size) { widen_block(from + begin, to + begin, size); });
}

void narrow(const float* from, uint16_t* to, size_t count) {
  each_block(count,
             [=](size_t begin, size_t size) { narrow_block(from + begin, to + begin, size); });
}

}  // namespace graft::host
