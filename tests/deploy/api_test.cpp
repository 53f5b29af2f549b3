// tests/deploy/api_test.cpp: the functions of graft/deploy.h, as a program calls them.
#include <gtest/gtest.h>

#include <cstring>

#include "graft/deploy.h"
#include "tests/deploy/small_model.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft::deploy::test {
namespace {

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() : path_(folder_.file("small.graft")) {
    graft::test::device();
    write_artefact(path_, small_manifest(), small_weights(), {});
    EXPECT_EQ(graft_model_open(path_.c_str(), 0, &model_), GRAFT_OK) << graft_model_message();
  }
  ~ApiTest() override { graft_model_close(model_); }

  static graft_array array(const std::vector<float>& values) {
    graft_array one{};
    one.struct_size = sizeof one;
    one.dtype = GRAFT_FLOAT32, one.rank = 2;
    one.sizes[0] = static_cast<int64_t>(values.size() / 3), one.sizes[1] = 3;
    one.strides[0] = 3, one.strides[1] = 1;
    one.data = const_cast<float*>(values.data());
    return one;
  }

  Folder folder_;
  const std::string path_;
  graft_model model_ = nullptr;
};

TEST_F(ApiTest, RunsAModel) {
  const std::vector<float> x = {1, 2, 3, -1, -2, -3};
  const graft_array input = array(x);
  graft_results results = nullptr;
  ASSERT_EQ(graft_model_run(model_, &input, 1, &results), GRAFT_OK) << graft_model_message();
  graft_array output{};
  output.struct_size = sizeof output;
  ASSERT_EQ(graft_results_get(results, 0, &output), GRAFT_OK);
  EXPECT_EQ(output.rank, 2);
  std::vector<float> values(4);
  std::memcpy(values.data(), output.data, sizeof(float) * 4);
  EXPECT_EQ(values, expected(x));
  EXPECT_EQ(graft_results_get(results, 1, &output), GRAFT_NOT_FOUND);
  graft_results_free(results);
}

TEST_F(ApiTest, SaysWhatAModelTakesAndGives) {
  graft_model_value value{};
  value.struct_size = sizeof value;
  ASSERT_EQ(graft_model_input(model_, 0, &value), GRAFT_OK);
  EXPECT_STREQ(value.name, "x");
  EXPECT_EQ(value.sizes[0], -1);
  EXPECT_EQ(value.sizes[1], 3);
  EXPECT_EQ(graft_model_input(model_, 1, &value), GRAFT_NOT_FOUND);
  ASSERT_EQ(graft_model_output(model_, 0, &value), GRAFT_OK);
  EXPECT_STREQ(value.name, "result");
}

TEST_F(ApiTest, WritesNoByteBehindTheCallersStruct) {
  graft_model_value value;
  std::memset(&value, 0xA5, sizeof value);
  value.struct_size = offsetof(graft_model_value, sizes);
  ASSERT_EQ(graft_model_input(model_, 0, &value), GRAFT_OK);
  EXPECT_EQ(value.rank, 2);
  EXPECT_EQ(value.struct_size, offsetof(graft_model_value, sizes));
  unsigned char behind = 0;
  std::memcpy(&behind, &value.sizes, 1);
  EXPECT_EQ(behind, 0xA5);
  value.struct_size = 0;
  EXPECT_EQ(graft_model_input(model_, 0, &value), GRAFT_INVALID_ARGUMENT);
}

TEST_F(ApiTest, FailuresSayWhatToDoAndChangeNothing) {
  graft_model other = nullptr;
  EXPECT_EQ(graft_model_open(folder_.file("nowhere").c_str(), 0, &other), GRAFT_NOT_FOUND);
  EXPECT_NE(std::strstr(graft_model_message(), "nowhere"), nullptr);
  EXPECT_EQ(graft_model_open(path_.c_str(), 99, &other), GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(graft_model_message(), "no device 99"), nullptr) << graft_model_message();
  EXPECT_EQ(graft_model_open(nullptr, 0, &other), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(graft_model_open(path_.c_str(), 0, nullptr), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(other, nullptr);
  graft_results results = nullptr;
  graft_array input = array({1, 2, 3});
  input.rank = 17;
  EXPECT_EQ(graft_model_run(model_, &input, 1, &results), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(graft_model_run(nullptr, &input, 1, &results), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(graft_model_run(model_, nullptr, 1, &results), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(results, nullptr);
  EXPECT_EQ(graft_model_seed(nullptr, 1), GRAFT_INVALID_ARGUMENT);
  EXPECT_GE(graft_model_devices(), 1u);
}

// A process that opens the prepared file finds its kernels there. Drivers that save programs later,
// and devices without a compiler, have none to keep.
TEST_F(ApiTest, APreparedModelBringsItsKernels) {
  const size_t before = Artefact(path_).blobs().size();
  ASSERT_EQ(graft_model_prepare(path_.c_str(), 0), GRAFT_OK) << graft_model_message();
  const Artefact prepared(path_);
  EXPECT_EQ(prepared.manifest().graph, kGraph);
  EXPECT_GE(prepared.blobs().size(), before);
  EXPECT_EQ(graft_model_prepare(folder_.file("nowhere").c_str(), 0), GRAFT_NOT_FOUND);
}

}  // namespace
}  // namespace graft::deploy::test
