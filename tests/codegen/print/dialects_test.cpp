// tests/codegen/print/dialects_test.cpp: the programs of GPU-like dialects: their text, and that it
// parses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "codegen/ir/builder.h"
#include "codegen/math/math.h"
#include "codegen/print/printer.h"

namespace graft::ir {
namespace {

std::string body(const Kernel& kernel, const char* name) {
  const Dialect& dialect = *find_dialect(name);
  return print(kernel, dialect).substr(dialect.head().size());
}

Kernel scale() {
  Builder b("scale", Family::kGpuLike);
  const Address out = b.write(GRAFT_FLOAT32), in = b.read(GRAFT_FLOAT32);
  const Value factor = b.scalar(GRAFT_FLOAT32), i = b.item();
  out.store(i, in.load(i) * factor);
  return b.finish();
}

// A device with a dialect that driver.h does not list is refused, so each must stand there.
TEST(Dialects, AreThoseOfTheDriverHeader) {
  std::vector<std::string> listed, known;
#define GRAFT_ADD(text, classes)                  \
  listed.push_back(text);                         \
  EXPECT_NE(find_dialect(text), nullptr) << text; \
  EXPECT_NE((classes) & (1u << GRAFT_CPU_LIKE | 1u << GRAFT_GPU_LIKE), 0u) << text;
  GRAFT_DIALECTS(GRAFT_ADD)
#undef GRAFT_ADD
  for (const Dialect* dialect : all_dialects()) known.emplace_back(dialect->name());
  std::sort(listed.begin(), listed.end());
  std::sort(known.begin(), known.end());
  EXPECT_EQ(listed, known);
}

TEST(OpenclC, PrintsKernels) {
  EXPECT_EQ(body(scale(), "opencl-c"),
            R"(__kernel void scale(GRAFT_ADDRESS(f32, 0), GRAFT_ADDRESS(f32, 1), f32 p2_bits) {
  const i64 item = get_global_id(0);
  GRAFT_BIND(f32, 0)
  GRAFT_BIND(f32, 1)
  const f32 p2 = p2_bits;
  GRAFT_TOUCH
  const f32 v0 = p2;
  const i64 v1 = item;
  const f32 v2 = p1[v1];
  const f32 v3 = v2 * v0;
  p0[v1] = v3;
}
)");
}

// Of a kernel whose work-item has a private array of that many float64.
std::string with_array(uint32_t count) {
  Builder b("long_array");
  const Address out = b.write(GRAFT_FLOAT64);
  const Lanes lanes(b, Type::kF64, count);
  lanes.store(b.i64(0), b.constant(Type::kF64, 1));
  out.store(b.item(), lanes.load(b.i64(0)));
  return body(b.finish(), "opencl-c");
}

TEST(OpenclC, LargePrivateArraysKeepAWorkItemAlone) {
  const std::string alone = "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void";
  EXPECT_EQ(with_array(1024).find("reqd_work_group_size"), std::string::npos);
  EXPECT_NE(with_array(1025).find(alone), std::string::npos) << with_array(1025);
}

TEST(CudaC, PrintsKernels) {
  EXPECT_EQ(body(scale(), "cuda-c"),
            R"(extern "C" __global__ void scale(f32* p0, f32* p1, f32 p2_bits, u64 items) {
  const i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= (i64)items) return;
  const f32 p2 = p2_bits;
  const f32 v0 = p2;
  const i64 v1 = item;
  const f32 v2 = p1[v1];
  const f32 v3 = v2 * v0;
  p0[v1] = v3;
}
)");
}

// Every function in both precisions, both half types, a boolean scalar, integer division, a bitcast
// and a barrier.
Kernel everything() {
  Builder b("everything", Family::kGpuLike);
  const Address single = b.update(GRAFT_FLOAT32), wide = b.update(GRAFT_FLOAT64);
  const Address half = b.update(GRAFT_FLOAT16), brain = b.update(GRAFT_BFLOAT16);
  const Address whole = b.update(GRAFT_INT64);
  const Value flag = b.scalar(GRAFT_BOOL), factor = b.scalar(GRAFT_FLOAT16), i = b.item();
  for (const Address& values : {single, wide}) {
    Value sum = values.load(i);
    const Value x = sum;
#define GRAFT_ADD(name, arity)                                                 \
  if (Math::k_##name <= Math::k_hypot || is_defined(Math::k_##name, x.type())) \
    sum = sum + math(Math::k_##name, x, arity > 1 ? x : Value(), arity > 2 ? x : Value());
    GRAFT_IR_MATH(GRAFT_ADD)
#undef GRAFT_ADD
    values.store(i, sum);
  }
  b.barrier();
  const Value mask = b.constant(Type::kI32, 1), place = b.sub_group(SubGroup::kPlace);
  single.store(i, b.shuffle(single.load(i), mask));
  wide.store(i, b.shuffle(wide.load(i), mask));
  whole.store(i, b.shuffle(place + b.sub_group(SubGroup::kIndex), mask));
  whole.store(i, select(b.shuffle(place == 0, mask), b.sub_group(SubGroup::kSize), place));
  half.store(i, brain.load(i) * factor);
  brain.store(i, select(flag, half.load(i), b.f32(1e300)));
  const Value n = whole.load(i);
  whole.store(b.local_item(), n / (n % 7) + bitcast(Type::kI64, wide.load(i)));
  return b.finish();
}

// Parses a program with a compiler that stands in for a device's; prelude defines what it lacks.
void expect_parses(const char* dialect, const std::string& prelude, const std::string& command) {
  char path[] = "/tmp/graft-dialect-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  close(file);
  std::ofstream(path) << prelude << print(everything(), *find_dialect(dialect));
  EXPECT_EQ(std::system((command + " -fsyntax-only -Wall -Wno-unused -Werror " + path).c_str()), 0)
      << print(everything(), *find_dialect(dialect));
  unlink(path);
}

// clang's own OpenCL C; it comes with the set-up's clang-tidy.
TEST(OpenclC, ProgramsParse) {
  const std::string command =
      "clang-14 -x cl -cl-std=CL1.2 -target spir64 -Xclang -finclude-default-header "
      "-Wno-constant-logical-operand";
  // clang 14's header lacks what the younger extension declares.
  const std::string shuffles = R"(#define cl_khr_subgroup_shuffle 1
#define sub_group_shuffle_xor(value, mask) (value)
uint get_sub_group_size(void);
uint get_sub_group_local_id(void);
uint get_sub_group_id(void);
)";
  expect_parses("opencl-c", shuffles, command);
  expect_parses("opencl-c", shuffles, command + " -DGRAFT_MEMORY_OFFSETS=1");
}

TEST(CudaC, ProgramsParse) {
  expect_parses("cuda-c",
                R"(#include <cmath>
using namespace std;
#define __global__
#define __device__
#define __forceinline__ inline
struct { unsigned x; } blockIdx, blockDim, threadIdx;
void __syncthreads();
#define __shfl_xor_sync(all, value, mask) (value)
)",
                "c++ -std=c++17 -x c++");
}

}  // namespace
}  // namespace graft::ir
