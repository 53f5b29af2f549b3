// tests/kernels/tensor/device_tensor_test.cpp: the tensor that the kernels' tests use, and its own
// test.
#include "tests/kernels/tensor/device_tensor.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "kernels/tensor/axes.h"
#include "runtime/driver/dtype.h"
#include "runtime/memory/allocator.h"
#include "runtime/platform/platform.h"
#include "tests/kernels/tensor/float16.h"

namespace graft::test {
// labels of the file: threads optimised
namespace {

template <class T>
void put(char* to, double value) {
  T typed = static_cast<T>(value);
  std::memcpy(to, &typed, sizeof(typed));
}

template <class T>
double take(const char* from) {
  T typed;
  std::memcpy(&typed, from, sizeof(typed));
  return static_cast<double>(typed);
}

void put_bfloat16(char* to, double value) {
  float narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, 4);
  if (!std::isnan(narrow)) bits += 0x7fff + ((bits >> 16) & 1);
  uint16_t top = static_cast<uint16_t>(bits >> 16);
  std::memcpy(to, &top, 2);
}

double take_bfloat16(const char* from) {
  uint16_t top;
  std::memcpy(&top, from, 2);
  uint32_t bits = static_cast<uint32_t>(top) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

void store(char* to, double value, graft_dtype dtype) {
  switch (dtype) {
    case GRAFT_BOOL:
      return put<uint8_t>(to, value != 0);
    case GRAFT_UINT8:
      return put<uint8_t>(to, value);
    case GRAFT_INT8:
      return put<int8_t>(to, value);
    case GRAFT_INT16:
      return put<int16_t>(to, value);
    case GRAFT_INT32:
      return put<int32_t>(to, value);
    case GRAFT_INT64:
      return put<int64_t>(to, value);
    case GRAFT_FLOAT16:
      return put<uint16_t>(to, float16_bits(value));
    case GRAFT_BFLOAT16:
      return put_bfloat16(to, value);
    case GRAFT_FLOAT32:
      return put<float>(to, value);
    case GRAFT_FLOAT64:
      return put<double>(to, value);
    default:
      FAIL() << "the tests hold no " << name_of(dtype);
  }
}

double load(const char* from, graft_dtype dtype) {
  switch (dtype) {
    case GRAFT_BOOL:
    case GRAFT_UINT8:
      return take<uint8_t>(from);
    case GRAFT_INT8:
      return take<int8_t>(from);
    case GRAFT_INT16:
      return take<int16_t>(from);
    case GRAFT_INT32:
      return take<int32_t>(from);
    case GRAFT_INT64:
      return take<int64_t>(from);
    case GRAFT_FLOAT16:
      return float16_value(static_cast<uint16_t>(take<uint16_t>(from)));
    case GRAFT_BFLOAT16:
      return take_bfloat16(from);
    case GRAFT_FLOAT32:
      return take<float>(from);
    case GRAFT_FLOAT64:
      return take<double>(from);
    default:
      return NAN;
  }
}

// Calls visit(position in row-major order, offset in elements).
template <class Visit>
void each_element(const TensorView& view, Visit visit) {
  int64_t index[kMaxRank] = {};
  const int64_t count = view.count();
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (int d = 0; d < view.rank; ++d) offset += index[d] * view.strides[d];
    visit(i, offset);
    for (int d = view.rank - 1; d >= 0 && ++index[d] == view.sizes[d]; --d) index[d] = 0;
  }
}

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

struct Shutdown : testing::Environment {
  void TearDown() override { platform().shutdown(); }
};
[[maybe_unused]] const testing::Environment* const shutdown =
    testing::AddGlobalTestEnvironment(new Shutdown());

}  // namespace

Device& device() {
  static Device& opened = []() -> Device& {
    const char* given = std::getenv("GRAFT_TEST_DRIVER");
    const std::string chosen = given == nullptr ? "host" : given;
    const bool is_path = chosen.find('/') != std::string::npos;
    const std::string path = is_path ? chosen : GRAFT_TEST_DRIVER_DIR "/graft_" + chosen + ".so";
    const std::string driver = std::filesystem::path(path).stem().string().substr(6);  // graft_
    setenv("GRAFT_DRIVER_PATH", path.c_str(), 1);
    setenv("GRAFT_DEVICES", driver.c_str(), 1);
    return platform().device(0);
  }();
  return opened;
}

Stream& stream() { return device().default_stream(); }

DeviceTensor::DeviceTensor(std::vector<int64_t> sizes, graft_dtype dtype)
    : DeviceTensor(sizes, row_major(sizes), dtype) {}

DeviceTensor::DeviceTensor(std::vector<int64_t> sizes, std::vector<int64_t> strides,
                           graft_dtype dtype) {
  view_ = as(sizes, strides);
  view_.dtype = dtype;
  bytes_ = extent_bytes(view_);
  if (bytes_ == 0) return;
  block_ = device().allocator().allocate(bytes_, stream());
  view_.address = block_->address;
  const uint8_t poison = 0xA5;
  stream().fill(view_.address, bytes_, &poison, 1);
}

DeviceTensor::~DeviceTensor() {
  if (block_ != nullptr) device().allocator().free(block_);
}

TensorView DeviceTensor::as(std::vector<int64_t> sizes, std::vector<int64_t> strides) const {
  TensorView view = view_;
  view.rank = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), view.sizes);
  std::copy(strides.begin(), strides.end(), view.strides);
  return view;
}

TensorView DeviceTensor::spread(const TensorView& like, std::vector<int> dims) const {
  TensorView view = view_;
  for (int d : dims) {
    view.sizes[d] = like.sizes[d];
    view.strides[d] = 0;
  }
  return view;
}

DeviceTensor& DeviceTensor::set(const std::vector<double>& values) {
  if (bytes_ == 0) return *this;
  std::vector<char> host(bytes_, static_cast<char>(0xA5));
  const uint64_t width = size_of(view_.dtype);
  each_element(view_, [&](int64_t i, int64_t offset) {
    store(&host[static_cast<uint64_t>(offset) * width], values.at(static_cast<size_t>(i)),
          view_.dtype);
  });
  stream().copy(view_.address, reinterpret_cast<uint64_t>(host.data()), bytes_,
                GRAFT_HOST_TO_DEVICE);
  stream().synchronize();
  return *this;
}

std::vector<double> DeviceTensor::get() const {
  std::vector<double> values(static_cast<size_t>(view_.count()));
  if (bytes_ == 0) return values;
  std::vector<char> host(bytes_);
  stream().copy(reinterpret_cast<uint64_t>(host.data()), view_.address, bytes_,
                GRAFT_DEVICE_TO_HOST);
  stream().synchronize();
  const uint64_t width = size_of(view_.dtype);
  each_element(view_, [&](int64_t i, int64_t offset) {
    values[static_cast<size_t>(i)] =
        load(&host[static_cast<uint64_t>(offset) * width], view_.dtype);
  });
  return values;
}

double rounded(double value, graft_dtype dtype) {
  char bytes[8] = {};
  store(bytes, value, dtype);
  return load(bytes, dtype);
}

std::vector<double> numbers(int64_t count, unsigned seed, double low, double high,
                            graft_dtype dtype) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> between(low, high);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = rounded(between(generator), dtype);
  return values;
}

::testing::AssertionResult near(const std::vector<double>& actual,
                                const std::vector<double>& expected, double relative,
                                double absolute) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure()
           << actual.size() << " elements, expected " << expected.size();
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], e = expected[i];
    if ((std::isnan(a) && std::isnan(e)) || a == e) continue;
    if (std::abs(a - e) <= absolute + relative * std::abs(e)) continue;
    return ::testing::AssertionFailure() << "element " << i << " is " << a << ", expected " << e;
  }
  return ::testing::AssertionSuccess();
}

double tolerance(graft_dtype dtype) {
  switch (dtype) {
    case GRAFT_FLOAT16:
      return 2e-3;
    case GRAFT_BFLOAT16:
      return 1.6e-2;
    case GRAFT_FLOAT32:
      return 2e-6;
    case GRAFT_FLOAT64:
      return 1e-13;
    default:
      return 0;
  }
}

}  // namespace graft::test

namespace {

using namespace graft;
using namespace graft::test;

TEST(DeviceTensor, HoldsEveryDtype) {
  for (graft_dtype dtype :
       {GRAFT_BOOL, GRAFT_UINT8, GRAFT_INT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64, GRAFT_FLOAT16,
        GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    DeviceTensor tensor({2, 2}, dtype);
    tensor.set({0, 1, 1, 0});
    EXPECT_TRUE(near(tensor.get(), {0, 1, 1, 0}, 0, 0)) << name_of(dtype);
  }
}

TEST(DeviceTensor, KeepsItsStrides) {
  DeviceTensor tensor({2, 3}, {1, 5}, GRAFT_FLOAT32);
  tensor.set({1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(near(tensor.get(), {1, 2, 3, 4, 5, 6}, 0, 0));
  EXPECT_EQ(rounded(1.0 + 1.0 / 512, GRAFT_BFLOAT16), 1.0);
}

TEST(Float16, RoundsOnceAndToEven) {
  EXPECT_EQ(float16_bits(1), 0x3c00);
  EXPECT_EQ(float16_bits(-2.5), 0xc100);
  EXPECT_EQ(float16_bits(1 + 0x1p-11), 0x3c00);
  EXPECT_EQ(float16_bits(1 + 0x3p-11), 0x3c02);
  EXPECT_EQ(float16_bits(0x1p-25), 0);
  EXPECT_EQ(float16_bits(0x1.8p-25), 1);
  EXPECT_EQ(float16_bits(65519), 0x7bff);
  EXPECT_EQ(float16_bits(65520), 0x7c00);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double value = float16_value(static_cast<uint16_t>(bits));
    if (!std::isnan(value)) {
      EXPECT_EQ(float16_bits(value), bits);
    }
  }
}

}  // namespace
