// drivers/host/collectives/reduction.cpp: makes one list of numbers of several.
#include "reduction.h"

#include <algorithm>
#include <bit>
#include <complex>
#include <type_traits>

namespace graft::host {
namespace {

// Elements whose partial results stay in the first cache.
constexpr uint64_t kBlock = 512;

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Truth {
  uint8_t byte;
};

// load and store: from and to what is computed with. No branches, so that loops become vectors.
template <class T>
T load(T x) {
  return x;
}

inline float load(BFloat x) { return std::bit_cast<float>(uint32_t(x.bits) << 16); }

inline float load(Half x) {
  const uint32_t magnitude = x.bits & 0x7fffu, sign = (x.bits & 0x8000u) << 16;
  const uint32_t shift = 112u << 23;  // between the exponents of both formats
  const uint32_t normal = (magnitude << 13) + shift + (magnitude >= 0x7c00u ? shift : 0u);
  const auto small = std::bit_cast<uint32_t>(float(int32_t(magnitude)) * 0x1p-24f);
  return std::bit_cast<float>((magnitude < 0x400u ? small : normal) | sign);
}

inline uint8_t load(Truth x) { return x.byte != 0 ? 1 : 0; }

template <class T, class Computed>
void store(T& to, Computed x) {
  to = static_cast<T>(x);
}

inline void store(BFloat& to, float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  to.bits = uint16_t(x != x ? (bits >> 16) | 0x40u : rounded);
}

inline void store(Half& to, float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  // The last bit of 0.5 + x counts 2^-24, as the last bit of a small half does.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
                         std::bit_cast<uint32_t>(0.5f);
  uint32_t result = magnitude < 0x38800000u ? small : normal;  // 2^-14
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;        // 65520 rounds to infinity
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  to.bits = uint16_t(result | sign);
}

inline void store(Truth& to, uint8_t x) { to.byte = x; }

// Unsigned and wide enough that neither sums nor products of T overflow an int.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Whether x is no number: it wins over every other.
template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  return false;
}

template <uint32_t reduction, class T>
T combine(T a, T b) {
  constexpr bool wraps = std::is_integral_v<T>;
  if constexpr (reduction == GRAFT_REDUCE_SUM || reduction == GRAFT_REDUCE_AVERAGE) {
    if constexpr (wraps) return T(Wrapping<T>(a) + Wrapping<T>(b));
    return T(a + b);
  } else if constexpr (reduction == GRAFT_REDUCE_PRODUCT) {
    if constexpr (wraps) return T(Wrapping<T>(a) * Wrapping<T>(b));
    return T(a * b);
  } else if constexpr (reduction == GRAFT_REDUCE_MIN) {
    return a < b || is_nan(a) ? a : b;
  } else if constexpr (reduction == GRAFT_REDUCE_MAX) {
    return a > b || is_nan(a) ? a : b;
  } else if constexpr (reduction == GRAFT_REDUCE_BIT_AND) {
    return T(a & b);
  } else if constexpr (reduction == GRAFT_REDUCE_BIT_OR) {
    return T(a | b);
  } else {
    return T(a ^ b);
  }
}

template <class T>
T divide(T x, uint32_t by) {
  return T(x / T(by));
}
template <class T>
std::complex<T> divide(std::complex<T> x, uint32_t by) {
  return x / T(by);
}

template <uint32_t reduction, class T>
void reduce_as(void* to, const void* const* sources, uint32_t source_count, uint64_t count) {
  using Computed = decltype(load(T{}));
  Computed result[kBlock] = {};
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    const uint64_t n = std::min(kBlock, count - begin);
    const T* first = static_cast<const T*>(sources[0]) + begin;
    for (uint64_t i = 0; i < n; ++i) result[i] = load(first[i]);
    for (uint32_t s = 1; s < source_count; ++s) {
      const T* next = static_cast<const T*>(sources[s]) + begin;
      for (uint64_t i = 0; i < n; ++i) {
        result[i] = combine<reduction, Computed>(result[i], load(next[i]));
      }
    }
    if constexpr (reduction == GRAFT_REDUCE_AVERAGE) {
      for (uint64_t i = 0; i < n; ++i) result[i] = divide(result[i], source_count);
    }
    T* out = static_cast<T*>(to) + begin;
    for (uint64_t i = 0; i < n; ++i) store(out[i], result[i]);
  }
}

using Function = void (*)(void*, const void* const*, uint32_t, uint64_t);

template <class T>
constexpr bool kComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <class T>
Function arithmetic(uint32_t reduction) {
  switch (reduction) {
    case GRAFT_REDUCE_SUM:
      return &reduce_as<GRAFT_REDUCE_SUM, T>;
    case GRAFT_REDUCE_PRODUCT:
      return &reduce_as<GRAFT_REDUCE_PRODUCT, T>;
    case GRAFT_REDUCE_AVERAGE:
      return &reduce_as<GRAFT_REDUCE_AVERAGE, T>;
    default:
      break;
  }
  if constexpr (!kComplex<T>) {
    if (reduction == GRAFT_REDUCE_MIN) return &reduce_as<GRAFT_REDUCE_MIN, T>;
    if (reduction == GRAFT_REDUCE_MAX) return &reduce_as<GRAFT_REDUCE_MAX, T>;
  }
  return nullptr;
}

template <class T>
Function bitwise(uint32_t reduction) {
  if (reduction == GRAFT_REDUCE_BIT_AND) return &reduce_as<GRAFT_REDUCE_BIT_AND, T>;
  if (reduction == GRAFT_REDUCE_BIT_OR) return &reduce_as<GRAFT_REDUCE_BIT_OR, T>;
  if (reduction == GRAFT_REDUCE_BIT_XOR) return &reduce_as<GRAFT_REDUCE_BIT_XOR, T>;
  return nullptr;
}

template <class T>
Function integral(uint32_t reduction) {
  const Function found = arithmetic<T>(reduction);
  return found != nullptr ? found : bitwise<T>(reduction);
}

Function logical(uint32_t reduction) {
  switch (reduction) {
    case GRAFT_REDUCE_SUM:
    case GRAFT_REDUCE_MAX:
      return bitwise<Truth>(GRAFT_REDUCE_BIT_OR);
    case GRAFT_REDUCE_PRODUCT:
    case GRAFT_REDUCE_MIN:
      return bitwise<Truth>(GRAFT_REDUCE_BIT_AND);
    default:
      return bitwise<Truth>(reduction);
  }
}

Function find(uint32_t dtype, uint32_t reduction) {
  switch (dtype) {
    case GRAFT_BOOL:
      return logical(reduction);
    case GRAFT_UINT8:
      return integral<uint8_t>(reduction);
    case GRAFT_INT8:
      return integral<int8_t>(reduction);
    case GRAFT_INT16:
      return integral<int16_t>(reduction);
    case GRAFT_INT32:
      return integral<int32_t>(reduction);
    case GRAFT_INT64:
      return integral<int64_t>(reduction);
    case GRAFT_FLOAT16:
      return arithmetic<Half>(reduction);
    case GRAFT_BFLOAT16:
      return arithmetic<BFloat>(reduction);
    case GRAFT_FLOAT32:
      return arithmetic<float>(reduction);
    case GRAFT_FLOAT64:
      return arithmetic<double>(reduction);
    case GRAFT_COMPLEX64:
      return arithmetic<std::complex<float>>(reduction);
    case GRAFT_COMPLEX128:
      return arithmetic<std::complex<double>>(reduction);
    default:
      return nullptr;
  }
}

}  // namespace

uint64_t dtype_bytes(uint32_t dtype) {
  switch (dtype) {
#define GRAFT_CASE(name, value, bytes, text) \
  case GRAFT_##name:                         \
    return bytes;
    GRAFT_DTYPES(GRAFT_CASE)
#undef GRAFT_CASE
    default:
      return 0;
  }
}

const char* dtype_name(uint32_t dtype) {
  switch (dtype) {
#define GRAFT_CASE(name, value, bytes, text) \
  case GRAFT_##name:                         \
    return text;
    GRAFT_DTYPES(GRAFT_CASE)
#undef GRAFT_CASE
    default:
      return "?";
  }
}

const char* reduction_name(uint32_t reduction) {
  constexpr const char* kNames[] = {"sum",     "product", "min",    "max",
                                    "average", "bit and", "bit or", "bit xor"};
  return reduction < sizeof kNames / sizeof *kNames ? kNames[reduction] : "?";
}

bool can_reduce(uint32_t dtype, uint32_t reduction) { return find(dtype, reduction) != nullptr; }

void reduce(uint32_t dtype, uint32_t reduction, void* to, const void* const* sources,
            uint32_t source_count, uint64_t count) {
  find(dtype, reduction)(to, sources, source_count, count);
}

}  // namespace graft::host
