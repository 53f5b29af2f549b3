// tests/runtime/driver/device_properties_test.cpp: what is refused of a driver's words, and what is
// not.
#include "runtime/driver/device_properties.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::error_of;
using fake::has;

class DevicePropertiesTest : public testing::Test {
 protected:
  DevicePropertiesTest() {
    Properties& p = fake::controls().properties;
    p.device_class = GRAFT_GPU_LIKE;
    p.max_group_size = 64;
    p.sub_group_size = 8;
  }
  using Properties = graft_device_properties;

  static Properties read() {
    const auto driver = Driver::adopt(&fake::query, "/nowhere/fake.so");
    return read_properties(*driver, 0);
  }
  // The refusal of the sound properties with a change; empty where there is none.
  static std::string with(const std::function<void(Properties&)>& change) {
    const Properties before = fake::controls().properties;
    change(fake::controls().properties);
    std::string text = error_of([] { read(); });
    fake::controls().properties = before;
    return text;
  }
  static void say(Properties& p, const char* dialect, uint32_t device_class) {
    std::strcpy(p.dialect, dialect);
    p.device_class = device_class;
  }

  fake::Fake fake_;
};

TEST_F(DevicePropertiesTest, SoundOnesAreTaken) {
  EXPECT_EQ(with([](auto&) {}), "");
  EXPECT_EQ(with([](auto& p) { p.max_allocation_bytes = p.memory_bytes; }), "");
  EXPECT_EQ(with([](auto& p) { p.allocation_alignment = p.memory_bytes; }), "");
  EXPECT_EQ(with([](auto& p) { p.features |= GRAFT_FEATURE_SHUFFLES; }), "");
  EXPECT_EQ(with([](auto& p) { p.device_class = GRAFT_CPU_LIKE, p.sub_group_size = 0; }), "");
  EXPECT_EQ(with([](auto& p) { say(p, "c", GRAFT_CPU_LIKE); }), "");
  EXPECT_EQ(with([](auto& p) { say(p, "opencl-c", GRAFT_CPU_LIKE); }), "");
  EXPECT_EQ(with([](auto& p) { say(p, "opencl-c", GRAFT_GPU_LIKE); }), "");
  EXPECT_EQ(with([](auto& p) { say(p, "cuda-c", GRAFT_GPU_LIKE); }), "");
}

TEST_F(DevicePropertiesTest, BitsOfANewerDriverAreNoError) {
  EXPECT_EQ(with([](auto& p) { p.features |= 0xFFFFFF00u; }), "");
  fake::controls().properties.dtypes = 1u << 31 | 1u << GRAFT_FLOAT32;
  EXPECT_EQ(read().dtypes, 1u << GRAFT_FLOAT32);
  fake::controls().properties.dtypes = ~0u;
  EXPECT_EQ(read().dtypes, 0u) << "all, as 0 says";
  EXPECT_EQ(computed_dtypes(read()),
            all_dtypes() & ~(1u << GRAFT_FLOAT64 | 1u << GRAFT_COMPLEX128));
}

TEST_F(DevicePropertiesTest, DialectsAreKnownAndServeTheClass) {
  EXPECT_EQ(
      with([](auto& p) { say(p, "opencl", GRAFT_GPU_LIKE); }),
      "device 0 of driver 'fake' claims the dialect 'opencl', expected one of 'c', "
      "'opencl-c', 'cuda-c' (did you mean 'opencl-c'?), so Graft does not use it. Ask its vendor.");
  EXPECT_TRUE(has(with([](auto& p) { say(p, "CUDA-c", GRAFT_GPU_LIKE); }), "mean 'cuda-c'?"));
  EXPECT_TRUE(has(with([](auto& p) { say(p, "spir-v 1.2", GRAFT_GPU_LIKE); }), "'cuda-c', so"));
  EXPECT_TRUE(has(with([](auto& p) { say(p, "c", GRAFT_GPU_LIKE); }),
                  "the dialect 'c' for a device of the class GRAFT_GPU_LIKE"));
  EXPECT_TRUE(has(with([](auto& p) { say(p, "cuda-c", GRAFT_CPU_LIKE); }),
                  "the dialect 'cuda-c' for a device of the class GRAFT_CPU_LIKE"));
  fake::table().kernel_find = nullptr;
  fake::table().kernel_launch = nullptr;
  EXPECT_TRUE(has(with([](auto& p) { say(p, "opencl-c", GRAFT_GPU_LIKE); }),
                  "its driver lacks program_compile and kernel_find"));
  EXPECT_EQ(with([](auto& p) { say(p, "", GRAFT_GPU_LIKE); }), "");
}

TEST_F(DevicePropertiesTest, ContradictionsAreRefused) {
  EXPECT_TRUE(has(with([](auto& p) { p.device_class = 2; }), "an unknown device class"));
  EXPECT_TRUE(has(with([](auto& p) { p.compute_units = 0; }), "no compute units"));
  EXPECT_TRUE(has(with([](auto& p) { p.max_group_size = 0; }), "groups of 0 work-items"));
  EXPECT_TRUE(has(with([](auto& p) { p.sub_group_size = 0; }), "sub-groups of 0"));
  EXPECT_TRUE(has(with([](auto& p) { p.sub_group_size = 65; }), "in groups of at most 64"));
  for (const uint32_t size : {1u, 12u}) {
    EXPECT_TRUE(has(with([&](auto& p) {
                      p.features = GRAFT_FEATURE_SHUFFLES;
                      p.sub_group_size = size;
                    }),
                    "GRAFT_FEATURE_SHUFFLES with sub-groups of " + std::to_string(size)));
  }
  EXPECT_TRUE(has(with([](auto& p) { p.memory_bytes = 0; }), "no memory"));
  EXPECT_TRUE(has(with([](auto& p) { p.allocation_alignment = 0; }), "expected a power of two"));
  EXPECT_TRUE(has(with([](auto& p) { p.allocation_alignment = 1ull << 31; }),
                  "an alignment of 2147483648 bytes with 1073741824 bytes of memory"));
  EXPECT_TRUE(has(with([](auto& p) { p.max_allocation_bytes = p.memory_bytes + 1; }),
                  "allocations of up to 1073741825 bytes"));
  EXPECT_TRUE(has(with([](auto& p) { p.priority_highest = 1, p.priority_lowest = 2; }),
                  "stream priorities from 1 to 2, expected a range that holds 0"));
  EXPECT_TRUE(has(with([](auto& p) { p.priority_highest = 1; }),
                  "a priority_highest above priority_lowest"));
}

TEST_F(DevicePropertiesTest, AWriteBehindTheStructIsFound) {
  fake::table().device_properties = [](uint32_t, graft_device_properties* properties) {
    std::memcpy(properties, &fake::controls().properties, sizeof *properties);
    std::memset(properties + 1, 1, 4);
    return GRAFT_OK;
  };
  EXPECT_TRUE(has(error_of([] { read(); }), "claims more than struct_size bytes"));
}

TEST_F(DevicePropertiesTest, TextIsReadable) {
  Properties& p = fake::controls().properties;
  std::strcpy(p.name, "Chip \xFF\xC3( two\nlines");
  std::memset(p.vendor, 'v', sizeof p.vendor);
  EXPECT_STREQ(read().name,
               "Chip ?"
               "?( two lines");
  EXPECT_EQ(std::string(read().vendor), std::string(sizeof p.vendor - 1, 'v'));
  std::memset(p.name, 0xE2, sizeof p.name);
  EXPECT_EQ(std::string(read().name), std::string(sizeof p.name - 1, '?'));
}

TEST_F(DevicePropertiesTest, DtypesThatKernelsComputeWith) {
  Properties p{};
  EXPECT_EQ(computed_dtypes(p) & 1u << GRAFT_FLOAT64, 0u);
  p.features = GRAFT_FEATURE_FLOAT64;
  EXPECT_EQ(computed_dtypes(p), all_dtypes());
  p.dtypes = 1u << GRAFT_FLOAT64 | 1u << GRAFT_BOOL;
  EXPECT_EQ(computed_dtypes(p), p.dtypes);
  p.features = 0;
  EXPECT_EQ(computed_dtypes(p), 1u << GRAFT_BOOL);
}

}  // namespace
}  // namespace graft
