// tests/kernels/offer_test.cpp: calls that are offered to a vendor's own kernels.
#include "kernels/operation/offer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/matmul/vendor_products.h"
#include "kernels/weight_only/product.h"
#include "runtime/platform/device.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
// labels of the file: threads
namespace {

using fake::error_of;
using fake::has;

// The vendor knows every operator; one per process, set by each test. Layouts are kept by device,
// so each test has sizes of its own.
struct Vendor {
  std::atomic<int> takes{0};  // plans that it makes before it refuses the others
  std::atomic<int> asked{0}, executed{0}, live{0};
  std::vector<uint32_t> dtypes;  // of the last call's tensors
};
Vendor& vendor() {
  static auto* const the_vendor = new Vendor();
  return *the_vendor;
}

graft_status make_plan(graft_device, const graft_operation* operation, graft_plan_needs*,
                       graft_plan* out) {
  if (++vendor().asked > vendor().takes) return GRAFT_UNSUPPORTED;
  ++vendor().live;
  vendor().dtypes.clear();
  for (uint32_t i = 0; i < operation->tensor_count; ++i) {
    vendor().dtypes.push_back(operation->tensors[i].dtype);
  }
  return *out = reinterpret_cast<graft_plan>(new char), GRAFT_OK;
}

const graft_ops_table kOperations = {
    GRAFT_EXTENSION_PRELUDE(GRAFT_OPS_SLOTS), [](graft_device, const char*) { return GRAFT_OK; },
    &make_plan,
    [](graft_stream, graft_plan, const graft_launch*) { return ++vendor().executed, GRAFT_OK; },
    [](graft_plan plan) {
      --vendor().live;
      return delete reinterpret_cast<char*>(plan), GRAFT_OK;
    }};

class OfferTest : public testing::Test {
 protected:
  OfferTest() {
    fake::table().extension = [](const char* name, uint32_t, const void** out) {
      if (std::string_view(name) != "graft.ops") return GRAFT_NOT_FOUND;
      return *out = &kOperations, GRAFT_OK;
    };
    stream_ = &fake_.open().default_stream();
    block_ = fake_.device().allocator().allocate(1 << 20, *stream_);
    vendor().takes = 0;
    vendor().asked = vendor().executed = 0;
  }
  ~OfferTest() override { fake_.device().allocator().free(block_); }

  // fill of so many elements.
  auto filling(int64_t size) {
    return [this, size](VendorCall& to) {
      TensorView view;
      view.address = block_->address, view.rank = 1, view.sizes[0] = size, view.strides[0] = 1;
      to.write(view).scalar(Scalar::of(GRAFT_FLOAT32, 1.0));
    };
  }
  bool fill(int64_t size) { return offer(*stream_, Operation::fill, filling(size)); }
  bool fill_each(int64_t first, size_t count) {
    return offer_list(*stream_, Operation::fill, count, [&](size_t i, VendorCall& to) {
      filling(first + static_cast<int64_t>(i))(to);
    });
  }

  fake::Fake fake_;
  Stream* stream_ = nullptr;
  Block* block_ = nullptr;
};

TEST_F(OfferTest, APlanIsMadeOnceForEachLayout) {
  vendor().takes = 2;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(fill(11));
    EXPECT_TRUE(fill(12));
  }
  EXPECT_EQ(vendor().asked, 2);
  EXPECT_EQ(vendor().executed, 6);
}

TEST_F(OfferTest, ARefusalIsToldOnceForAllThreads) {
  const auto ask = [&] {
    for (int i = 0; i < 20; ++i) {
      for (int64_t size = 21; size < 29; ++size) EXPECT_FALSE(fill(size));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(ask);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(vendor().asked, 8);
  EXPECT_EQ(vendor().executed, 0);
}

// The last of them are kept with the plans.
TEST_F(OfferTest, MoreRefusalsThanHaveAPlaceStayRefusals) {
  for (int round = 0; round < 2; ++round) {
    for (int64_t size = 31; size < 31 + 9000; ++size) EXPECT_FALSE(fill(size));
  }
  EXPECT_GE(vendor().asked, 9000);
  EXPECT_LT(vendor().asked, 2 * 9000);
}

TEST_F(OfferTest, AListIsTakenAsAWholeOrNotAtAll) {
  vendor().takes = 2;
  EXPECT_FALSE(fill_each(20001, 3));
  EXPECT_EQ(vendor().executed, 0);
  vendor().takes = 100;
  EXPECT_TRUE(fill_each(20011, 3));
  EXPECT_EQ(vendor().executed, 3);
}

TEST_F(OfferTest, GroupedAndWeightOnlyProductsAreOffered) {
  const auto matrix = [&](graft_dtype dtype, std::initializer_list<int64_t> sizes) {
    TensorView view;
    view.address = block_->address, view.dtype = dtype;
    for (const int64_t size : sizes) view.sizes[view.rank++] = size;
    int64_t stride = 1;
    for (int d = view.rank; d-- > 0; stride *= view.sizes[d]) view.strides[d] = stride;
    return view;
  };
  const TensorView output = matrix(GRAFT_BFLOAT16, {6, 5}), a = matrix(GRAFT_BFLOAT16, {6, 4});
  const TensorView b = matrix(GRAFT_BFLOAT16, {2, 4, 5}), ends = matrix(GRAFT_INT32, {2});
  EXPECT_FALSE(grouped_matmul(*stream_, output, a, b, &ends));
  vendor().takes = 100;
  const TensorView wider = matrix(GRAFT_BFLOAT16, {7, 5}), rows = matrix(GRAFT_BFLOAT16, {7, 4});
  EXPECT_TRUE(grouped_matmul(*stream_, wider, rows, b, &ends));
  using Dtypes = std::vector<uint32_t>;
  EXPECT_EQ(vendor().dtypes, (Dtypes{GRAFT_BFLOAT16, GRAFT_BFLOAT16, GRAFT_BFLOAT16, GRAFT_INT32}));
  const TensorView weight = matrix(GRAFT_INT8, {5, 4}), scales = matrix(GRAFT_BFLOAT16, {1, 5});
  int8_weight_matmul(*stream_, output, a, weight, {scales, nullptr, 4});
  EXPECT_EQ(vendor().dtypes, (Dtypes{GRAFT_BFLOAT16, GRAFT_BFLOAT16, GRAFT_INT8, GRAFT_BFLOAT16}));
  const TensorView words = matrix(GRAFT_INT32, {8}), eight = matrix(GRAFT_BFLOAT16, {6, 8});
  const TensorView deep = matrix(GRAFT_BFLOAT16, {6, 8}), zeros = matrix(GRAFT_BFLOAT16, {1, 8});
  int4_weight_matmul(*stream_, eight, deep, words, {zeros, &zeros, 8});
  EXPECT_EQ(vendor().dtypes,
            (Dtypes{GRAFT_BFLOAT16, GRAFT_BFLOAT16, GRAFT_INT32, GRAFT_BFLOAT16, GRAFT_BFLOAT16}));
  EXPECT_EQ(vendor().executed, 3);
}

// More layouts than plans are kept, so the first is asked for again when the list runs.
TEST_F(OfferTest, APlanThatIsRefusedWhileItsListRunsIsNoLackOfAKernel) {
  constexpr size_t kLayouts = 5000;
  vendor().takes = kLayouts;
  graft_status status = GRAFT_OK;
  const std::string error = error_of([&] { fill_each(30001, kLayouts); }, &status);
  EXPECT_TRUE(has(error, "operation_plan refused fill, for which it had made a plan before"));
  EXPECT_EQ(status, GRAFT_INTERNAL);
  EXPECT_LE(vendor().live, 2 * 2048 + 10);  // what was dropped is destroyed
}

}  // namespace
}  // namespace graft
