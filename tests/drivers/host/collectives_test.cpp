// tests/drivers/host/collectives_test.cpp: what collectives compute, for every dtype and size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "ranks.h"
#include "tests/kernels/tensor/float16.h"

namespace graft::host_test {
// labels of the file: optimised
namespace {

// The slots of a rank, and the bytes up to which an all_reduce is small.
constexpr uint64_t kSlotBytes = 512 << 10, kSmallBytes = 16 << 10;

constexpr graft_dtype kDtypes[] = {
#define GRAFT_ITEM(name, value, bytes, text) GRAFT_##name,
    GRAFT_DTYPES(GRAFT_ITEM)
#undef GRAFT_ITEM
};

uint64_t bytes_of(graft_dtype dtype) {
  constexpr uint64_t kBytes[] = {
#define GRAFT_ITEM(name, value, bytes, text) bytes,
      GRAFT_DTYPES(GRAFT_ITEM)
#undef GRAFT_ITEM
  };
  return kBytes[dtype];
}

bool is_complex(graft_dtype dtype) { return dtype >= GRAFT_COMPLEX64; }
bool is_integer(graft_dtype dtype) { return dtype <= GRAFT_INT64; }

bool has_meaning(graft_dtype dtype, uint32_t reduction) {
  if (dtype == GRAFT_BOOL && reduction == GRAFT_REDUCE_AVERAGE) return false;
  if (reduction >= GRAFT_REDUCE_BIT_AND) return is_integer(dtype);
  return !is_complex(dtype) || (reduction != GRAFT_REDUCE_MIN && reduction != GRAFT_REDUCE_MAX);
}

template <class T>
void append(std::vector<char>* bytes, T x) {
  const char* from = reinterpret_cast<const char*>(&x);
  bytes->insert(bytes->end(), from, from + sizeof x);
}

// Appends x, which the dtype can hold; a complex number gets an imaginary part.
void encode(std::vector<char>* bytes, graft_dtype dtype, double x, double imaginary) {
  const auto single = static_cast<float>(x);
  uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  switch (dtype) {
    case GRAFT_BOOL:
    case GRAFT_UINT8:
      return append(bytes, static_cast<uint8_t>(x));
    case GRAFT_INT8:
      return append(bytes, static_cast<int8_t>(x));
    case GRAFT_INT16:
      return append(bytes, static_cast<int16_t>(x));
    case GRAFT_INT32:
      return append(bytes, static_cast<int32_t>(x));
    case GRAFT_INT64:
      return append(bytes, static_cast<int64_t>(x));
    case GRAFT_FLOAT16:
      return append(bytes, graft::test::float16_bits(x));
    case GRAFT_BFLOAT16:
      return append(bytes, static_cast<uint16_t>(bits >> 16));
    case GRAFT_FLOAT32:
      return append(bytes, single);
    case GRAFT_FLOAT64:
      return append(bytes, x);
    case GRAFT_COMPLEX64:
      return append(bytes, std::complex<float>(single, static_cast<float>(imaginary)));
    case GRAFT_COMPLEX128:
      return append(bytes, std::complex<double>(x, imaginary));
  }
}

// Element i of a rank's data. Repeats after three elements.
int element(graft_dtype dtype, uint32_t rank, uint64_t i) {
  const int x = static_cast<int>((i * (rank + 1) + rank) % 3);
  return dtype == GRAFT_BOOL ? x % 2 : x + 1;
}

int reduced(graft_dtype dtype, uint32_t reduction, int a, int b) {
  const bool truth = dtype == GRAFT_BOOL;
  switch (reduction) {
    case GRAFT_REDUCE_SUM:
    case GRAFT_REDUCE_AVERAGE:
      return truth ? a | b : a + b;
    case GRAFT_REDUCE_PRODUCT:
      return a * b;
    case GRAFT_REDUCE_MIN:
      return std::min(a, b);
    case GRAFT_REDUCE_MAX:
      return std::max(a, b);
    case GRAFT_REDUCE_BIT_AND:
      return a & b;
    case GRAFT_REDUCE_BIT_OR:
      return a | b;
    default:
      return a ^ b;
  }
}

// What all ranks' elements i make.
double reduced_element(graft_dtype dtype, uint32_t reduction, uint32_t size, uint64_t i) {
  int result = element(dtype, 0, i);
  for (uint32_t rank = 1; rank < size; ++rank) {
    result = reduced(dtype, reduction, result, element(dtype, rank, i));
  }
  if (reduction != GRAFT_REDUCE_AVERAGE) return result;
  return is_integer(dtype) ? result / static_cast<int>(size) : result / static_cast<double>(size);
}

// count elements from first on of what element_at gives; imaginary parts are twice the real ones
// where sums keep them so.
template <class ElementAt>
std::vector<char> list_of(graft_dtype dtype, uint64_t first, uint64_t count, bool linear,
                          const ElementAt& element_at) {
  std::vector<char> cycle;
  for (uint64_t i = 0; i < 3; ++i) {
    const double x = element_at(first + i);
    encode(&cycle, dtype, x, linear ? 2 * x : 0);
  }
  std::vector<char> bytes(count * bytes_of(dtype));
  for (size_t at = 0; at < bytes.size(); at += cycle.size()) {
    std::memcpy(bytes.data() + at, cycle.data(), std::min(cycle.size(), bytes.size() - at));
  }
  return bytes;
}

// One dtype and reduction as a rank sees them.
struct Model {
  Rank& rank;
  graft_dtype dtype;
  uint32_t reduction = GRAFT_REDUCE_SUM;

  bool linear() const { return reduction != GRAFT_REDUCE_PRODUCT; }
  std::vector<char> data(uint32_t of, uint64_t count) const {
    return list_of(dtype, 0, count, linear(), [&](uint64_t i) { return element(dtype, of, i); });
  }
  std::vector<char> result(uint64_t first, uint64_t count) const {
    return list_of(dtype, first, count, linear(),
                   [&](uint64_t i) { return reduced_element(dtype, reduction, rank.size, i); });
  }
  graft_address room(uint64_t count) const {
    return rank.upload(std::vector<char>(count * bytes_of(dtype), 0x55));
  }
  void expect(graft_address at, const std::vector<char>& wanted, const char* what) const {
    EXPECT_TRUE(rank.download(at, wanted.size()) == wanted)
        << what << " of " << wanted.size() << " bytes, dtype " << dtype << ", reduction "
        << reduction << ", rank " << rank.rank << " of " << rank.size;
  }
};

void check_all_reduce(const Model& m, uint64_t count) {
  Rank& r = m.rank;
  const graft_address send = r.upload(m.data(r.rank, count)), receive = m.room(count);
  ASSERT_EQ(collectives().all_reduce(r.session.stream, r.group, send, receive, count, m.dtype,
                                     m.reduction, 0),
            GRAFT_OK)
      << last_message();
  m.expect(receive, m.result(0, count), "all_reduce");
  ASSERT_EQ(collectives().all_reduce(r.session.stream, r.group, send, send, count, m.dtype,
                                     m.reduction, 0),
            GRAFT_OK);
  m.expect(send, m.result(0, count), "all_reduce in place");
}

void check_reduce(const Model& m, uint64_t count) {
  Rank& r = m.rank;
  const uint32_t root = r.size - 1;
  const graft_address send = r.upload(m.data(r.rank, count));
  const graft_address receive = r.rank == root ? m.room(count) : 0;
  ASSERT_EQ(collectives().reduce(r.session.stream, r.group, send, receive, count, m.dtype,
                                 m.reduction, root, 0),
            GRAFT_OK)
      << last_message();
  if (r.rank == root) m.expect(receive, m.result(0, count), "reduce");
  m.expect(send, m.data(r.rank, count), "reduce's input");
}

void check_broadcast(const Model& m, uint64_t count) {
  Rank& r = m.rank;
  const uint32_t root = 1 % r.size;
  const graft_address send = r.rank == root ? r.upload(m.data(root, count)) : 0;
  const graft_address receive = m.room(count);
  ASSERT_EQ(
      collectives().broadcast(r.session.stream, r.group, send, receive, count, m.dtype, root, 0),
      GRAFT_OK)
      << last_message();
  m.expect(receive, m.data(root, count), "broadcast");
}

void check_all_gather(const Model& m, uint64_t count) {
  Rank& r = m.rank;
  std::vector<char> wanted;
  for (uint32_t rank = 0; rank < r.size; ++rank) {
    const std::vector<char> row = m.data(rank, count);
    wanted.insert(wanted.end(), row.begin(), row.end());
  }
  const std::vector<char> own = m.data(r.rank, count);
  const uint64_t offset = r.rank * own.size();
  const auto gather = [&](graft_address from, graft_address to) {
    return collectives().all_gather(r.session.stream, r.group, from, to, count, m.dtype, 0);
  };
  const graft_address receive = m.room(r.size * count);
  ASSERT_EQ(gather(r.upload(own), receive), GRAFT_OK) << last_message();
  m.expect(receive, wanted, "all_gather");
  std::vector<char> rows(wanted.size(), 0x55);
  std::copy(own.begin(), own.end(), rows.begin() + static_cast<std::ptrdiff_t>(offset));
  const graft_address place = r.upload(rows);
  ASSERT_EQ(gather(place + offset, place), GRAFT_OK) << last_message();
  m.expect(place, wanted, "all_gather in place");
}

void check_reduce_scatter(const Model& m, uint64_t count) {
  Rank& r = m.rank;
  const graft_address send = r.upload(m.data(r.rank, r.size * count)), receive = m.room(count);
  const graft_address place = send + r.rank * count * bytes_of(m.dtype);
  const std::vector<char> wanted = m.result(r.rank * count, count);
  for (const graft_address to : {receive, place}) {
    ASSERT_EQ(collectives().reduce_scatter(r.session.stream, r.group, send, to, count, m.dtype,
                                           m.reduction, 0),
              GRAFT_OK)
        << last_message();
    m.expect(to, wanted, "reduce_scatter");
  }
}

// Every collective at one size, with every reduction that has a meaning.
void check_everything(Rank& rank, graft_dtype dtype, uint64_t count) {
  for (uint32_t reduction = 0; reduction <= GRAFT_REDUCE_BIT_XOR; ++reduction) {
    if (!has_meaning(dtype, reduction)) continue;
    const Model model{rank, dtype, reduction};
    check_all_reduce(model, count);
    check_reduce(model, count);
    check_reduce_scatter(model, count);
  }
  check_broadcast({rank, dtype}, count);
  check_all_gather({rank, dtype}, count);
}

void check_dtypes(Rank& rank) {
  for (const graft_dtype dtype : kDtypes) {
    for (const uint64_t count : {0, 1, 7, 5003}) check_everything(rank, dtype, count);
  }
}

TEST(HostCollectives, ComputeInEveryDtype) {
  for (const uint32_t size : {1u, 2u, 4u}) in_threads(size, check_dtypes);
}

TEST(HostCollectives, ComputeInEveryMode) {
  if (reran({"GRAFT_HOST_MODE=async", "GRAFT_HOST_MODE=inline"})) return;
  in_threads(2, [](Rank& rank) {
    for (const uint64_t count : {1, 100, 5003}) check_everything(rank, GRAFT_FLOAT32, count);
  });
}

TEST(HostCollectives, ComputeAroundTheBordersOfChunks) {
  for (const uint32_t size : {2u, 3u, 4u}) {
    in_threads(size, [](Rank& rank) {
      constexpr uint64_t kSmall = kSmallBytes / 4, kSlot = kSlotBytes / 4;
      for (const uint64_t count : {kSmall, kSmall + 1, kSlot / rank.size + 1, kSlot - 1, kSlot,
                                   kSlot + 1, 2 * kSlot + 5}) {
        const Model model{rank, GRAFT_FLOAT32};
        check_all_reduce(model, count);
        check_reduce(model, count);
        check_broadcast(model, count);
        check_all_gather(model, count);
        check_reduce_scatter(model, count);
      }
    });
  }
}

TEST(HostCollectives, ComputeBetweenProcesses) {
  if (is_rank_process()) {
    as_rank_process([](Rank& rank) {
      for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16, GRAFT_INT64}) {
        for (const uint64_t count : {1, 5003, 140001}) check_everything(rank, dtype, count);
      }
    });
    return;
  }
  for (const uint32_t size : {2u, 4u}) {
    std::vector<std::string> outputs;
    const std::vector<int> statuses = in_processes(size, &outputs);
    for (uint32_t rank = 0; rank < size; ++rank) EXPECT_EQ(statuses[rank], 0) << outputs[rank];
  }
}

// The value of float16 bits, and the bits nearest to a float, both by arithmetic alone.
double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

double nearest_half(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  const double step = std::ldexp(1, std::max(std::ilogb(x), -14) - 10);
  const double rounded = std::nearbyint(x / step) * step;
  return std::abs(rounded) > 65504 ? std::copysign(HUGE_VAL, x) : rounded;
}

TEST(HostCollectives, RoundHalvesToTheNearest) {
  in_threads(2, [](Rank& rank) {
    std::vector<uint16_t> own(65536), other(65536);
    for (uint32_t i = 0; i < 65536; ++i) {
      own[i] = static_cast<uint16_t>(rank.rank == 0 ? i : i * 40503);
      other[i] = static_cast<uint16_t>(rank.rank == 0 ? i * 40503 : i);
    }
    std::vector<char> bytes(2 * own.size());
    std::memcpy(bytes.data(), own.data(), bytes.size());
    const graft_address at = rank.upload(bytes);
    ASSERT_EQ(collectives().all_reduce(rank.session.stream, rank.group, at, at, own.size(),
                                       GRAFT_FLOAT16, GRAFT_REDUCE_SUM, 0),
              GRAFT_OK);
    bytes = rank.download(at, bytes.size());
    int wrong = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + 2 * i, 2);
      const double got = half_value(bits);
      const auto sum = static_cast<float>(half_value(own[i]) + half_value(other[i]));
      const double wanted = nearest_half(sum);
      if (std::isnan(wanted) ? !std::isnan(got) : got != wanted) ++wrong;
    }
    EXPECT_EQ(wrong, 0);
  });
}

TEST(HostCollectives, KeepANumberThatIsNone) {
  in_threads(2, [](Rank& rank) {
    for (const graft_reduction reduction : {GRAFT_REDUCE_MIN, GRAFT_REDUCE_MAX}) {
      std::vector<char> bytes;
      const float nan = std::numeric_limits<float>::quiet_NaN();
      append(&bytes, rank.rank == 0 ? nan : 1.0f);
      append(&bytes, rank.rank == 0 ? 1.0f : nan);
      const graft_address at = rank.upload(bytes);
      ASSERT_EQ(rank.all_reduce(at, 2, reduction), GRAFT_OK);
      bytes = rank.download(at, bytes.size());
      float got[2];
      std::memcpy(got, bytes.data(), sizeof got);
      EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[1])) << got[0] << ", " << got[1];
    }
  });
}

}  // namespace
}  // namespace graft::host_test
