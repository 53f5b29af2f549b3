// tests/codegen/ir/device_limits_test.cpp: kernels that exceed what a device has are refused.
#include "codegen/ir/device_limits.h"

#include <gtest/gtest.h>

#include "codegen/ir/builder.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

// Adds a number to a tensor: three arguments.
ir::Kernel shifted(graft_dtype dtype) {
  ir::Builder b("shifted");
  const ir::Address out = b.write(dtype), in = b.read(dtype);
  const ir::Value by = b.scalar(GRAFT_FLOAT64);
  static_cast<void>(by);
  out.store(b.item(), in.load(b.item()));
  return b.finish();
}

// What check_limits throws; "" when nothing.
std::string refusal(const ir::Kernel& kernel, const graft_device_properties& has) {
  try {
    check_limits(kernel, "the_key", has, "graft:3 (driver 'some')");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GRAFT_UNSUPPORTED);
    return error.what();
  }
  return "";
}

TEST(DeviceLimits, NothingStatedIsNoLimit) { EXPECT_EQ(refusal(shifted(GRAFT_BFLOAT16), {}), ""); }

TEST(DeviceLimits, ArgumentsOfALaunch) {
  graft_device_properties has{};
  has.max_arguments = 3;
  EXPECT_EQ(refusal(shifted(GRAFT_FLOAT32), has), "");
  has.max_arguments = 2;
  EXPECT_EQ(refusal(shifted(GRAFT_FLOAT32), has),
            "graft:3 (driver 'some') takes at most 2 arguments in a launch, but the kernel the_key "
            "has 3");
}

TEST(DeviceLimits, DtypesInMemory) {
  graft_device_properties has{};
  has.dtypes = 1u << GRAFT_FLOAT32;
  EXPECT_EQ(refusal(shifted(GRAFT_FLOAT32), has), "") << "its float64 number is no memory";
  EXPECT_EQ(refusal(shifted(GRAFT_INT64), has),
            "graft:3 (driver 'some') has no kernels for int64 (the kernel the_key needs it)");
}

TEST(DeviceLimits, LocalMemoryOfAGroup) {
  ir::Builder b("large", ir::Family::kGpuLike);
  const ir::Address out = b.write(GRAFT_FLOAT32);
  b.append({ir::Opcode::kLocalMemory, ir::Type::kF32, 0, {}, 256});
  out.store(b.item(), b.f32(1));
  const ir::Kernel kernel = b.finish();
  graft_device_properties has{};
  has.local_memory_bytes = 1024;
  EXPECT_EQ(refusal(kernel, has), "");
  has.local_memory_bytes = 512;
  EXPECT_NE(refusal(kernel, has).find("needs 1.00 KiB"), std::string::npos);
}

}  // namespace
}  // namespace graft
