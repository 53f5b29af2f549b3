// tests/codegen/print/printer_test.cpp: the text of programs, and what the verifier refuses.
#include "codegen/print/printer.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "codegen/ir/builder.h"
#include "codegen/ir/verifier.h"
#include "tests/codegen/compiled.h"

namespace graft::ir {
namespace {

std::string body(const Kernel& kernel) {
  const Dialect& c = *find_dialect("c");
  return print(kernel, c).substr(c.head().size() + c.invariant_division().size());
}

TEST(Printer, PrintsALoopOverHalfPrecision) {
  Builder b("scale");
  const Address out = b.write(GRAFT_FLOAT32), in = b.read(GRAFT_BFLOAT16);
  const Value factor = b.scalar(GRAFT_FLOAT32), count = b.index();
  b.vector_loop(b.i64(0), count, [&](Value i) { out.store(i, in.load(i) * factor + 0.5); });
  EXPECT_EQ(body(b.finish()),
            R"(static inline __attribute__((always_inline)) f32 graft_f32_from_bfloat16(u16 p0) {
  const u16 v0 = p0;
  const u32 v1 = (u32)v0;
  const u32 v2 = (u32)16;
  const u32 v3 = (u32)((u32)v1 << v2);
  const f32 v4 = ((union { u32 from; f32 to; }){v3}).to;
  return v4;
}
void scale(const graft_kernel_argument* arguments, u64 begin, u64 end) {
  f32* const p0 = (f32*)arguments[0].address;
  u16* const p1 = (u16*)arguments[1].address;
  f32 p2_bits;
  __builtin_memcpy(&p2_bits, &arguments[2].bits, sizeof p2_bits);
  const f32 p2 = p2_bits;
  i64 p3_bits;
  __builtin_memcpy(&p3_bits, &arguments[3].bits, sizeof p3_bits);
  const i64 p3 = p3_bits;
  for (i64 item = begin; item < (i64)end; ++item) {
    const f32 v0 = p2;
    const i64 v1 = p3;
    const i64 v2 = (i64)0;
    const i64 v3 = (i64)1;
#pragma omp simd
    for (i64 v4 = v2; v4 < v1; ++v4) {
      const f32 v5 = graft_f32_from_bfloat16(p1[v4]);
      const f32 v6 = v5 * v0;
      const f32 v7 = 0.5f;
      const f32 v8 = v6 + v7;
      p0[v4] = v8;
    }
  }
}
)");
}

std::string loop_of(Value (*function)(Value)) {
  Builder b("apply");
  const Address out = b.write(GRAFT_FLOAT32), in = b.read(GRAFT_FLOAT32);
  b.vector_loop(b.i64(0), b.index(), [&](Value i) { out.store(i, function(in.load(i))); });
  return body(b.finish());
}

TEST(Printer, LooksForTheLargestArgumentOnlyOfBoundedFunctions) {
  const std::string bounded = loop_of([](Value x) { return sin(x); });
  EXPECT_NE(bounded.find("largest"), std::string::npos);
  EXPECT_NE(bounded.find("} else {"), std::string::npos);
  const std::string everywhere = loop_of([](Value x) { return sqrt(x) + 1; });
  EXPECT_EQ(everywhere.find("largest"), std::string::npos);
}

TEST(Printer, WrapsIntegersAndNeverTraps) {
  Builder b("integers");
  const Address out = b.write(GRAFT_INT32), in = b.read(GRAFT_INT32);
  const Value i = b.item(), x = in.load(i), y = in.load(i + 1);
  out.store(b.i64(0), x + y);
  out.store(b.i64(1), x / y);
  out.store(b.i64(2), x % y);
  out.store(b.i64(3), -x);
  const Compiled kernel(b.finish());
  for (const auto& [a, c, expected] :
       std::vector<std::tuple<int32_t, int32_t, std::vector<int32_t>>>{
           {INT32_MAX, 1, {INT32_MIN, INT32_MAX, 0, -INT32_MAX}},
           {INT32_MIN, -1, {INT32_MAX, INT32_MIN, 0, INT32_MIN}},
           {7, 0, {7, 0, 0, -7}}}) {
    int32_t inputs[] = {a, c}, outputs[4];
    graft_kernel_argument arguments[2];
    arguments[0].address = outputs;
    arguments[1].address = inputs;
    kernel(arguments);
    EXPECT_EQ(std::vector<int32_t>(outputs, outputs + 4), expected) << a << ", " << c;
  }
}

TEST(Printer, FoldsWithLanes) {
  Builder b("sum");
  const Address out = b.write(GRAFT_FLOAT64), in = b.read(GRAFT_FLOAT32);
  const Value count = b.index();
  const Value total = reduce(
      b.constant(Type::kF64, 0), b.i64(0), count,
      [&](Value i) { return cast(Type::kF64, in.load(i)); }, [](Value a, Value c) { return a + c; },
      16);
  out.store(b.i64(0), total);
  const Compiled kernel(b.finish());
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (uint64_t n : {0, 1, 15, 16, 17, 100, 1000}) {
    double sum = -1;
    graft_kernel_argument arguments[3];
    arguments[0].address = &sum;
    arguments[1].address = x.data();
    arguments[2].bits = n;
    kernel(arguments);
    EXPECT_EQ(sum, static_cast<double>(n) * (static_cast<double>(n) - 1) / 2);
  }
}

// The text of what finish() throws.
template <class Write>
std::string refusal(Family family, Write write) {
  try {
    Builder b("bad", family);
    write(b);
    b.finish();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST(Printer, PicksOneOfSeveralAddresses) {
  Builder b("picks");
  const std::vector<Address> tensors = {b.update(GRAFT_INT32), b.update(GRAFT_INT32),
                                        b.update(GRAFT_INT32)};
  const Value which = b.index();
  const Address picked = pick(tensors, which);
  picked.store(b.i64(1), picked.load(b.i64(0)) + 1);
  const Compiled kernel(b.finish());
  int32_t memory[3][2] = {{10, 0}, {20, 0}, {30, 0}};
  for (uint64_t i = 0; i < 3; ++i) {
    graft_kernel_argument arguments[4];
    for (size_t k = 0; k < 3; ++k) arguments[k].address = memory[k];
    arguments[3].bits = i;
    kernel(arguments);
    EXPECT_EQ(memory[i][1], memory[i][0] + 1);
  }
}

Kernel vector_kernel() {
  Builder b("twice");
  const Address out = b.write(GRAFT_FLOAT32), in = b.read(GRAFT_FLOAT32);
  const Value x = in.load_vector(Type::kF32x8, b.i64(3));
  const Variable sum(splat(Type::kF32x8, b.f32(1)));
  sum = sum.get() + x * x;
  out.store(b.i64(0), sum.get());
  const Lanes lanes(b, Type::kF32, 8);
  lanes.store(b.i64(0), sum.get());
  return b.finish();
}

TEST(Printer, PrintsVectorsWhereTheDialectHasThem) {
  const std::string c = print(vector_kernel(), *find_dialect("c"));
  EXPECT_NE(c.find("const f32x8 v1 = graft_load_f32x8(p1 + v0);"), std::string::npos) << c;
  EXPECT_NE(c.find("graft_splat_f32x8(v2)"), std::string::npos) << c;
  EXPECT_NE(c.find("graft_store_f32x8(p0 + "), std::string::npos) << c;
  const std::string opencl = print(vector_kernel(), *find_dialect("opencl-c"));
  EXPECT_NE(opencl.find("typedef float8 f32x8;"), std::string::npos);
  EXPECT_THROW(print(vector_kernel(), *find_dialect("cuda-c")), std::logic_error);
}

Kernel integer_vector_kernel() {
  Builder b("pairs");
  const Address out = b.write(GRAFT_INT32), in = b.read(GRAFT_INT32);
  const auto all = [&](int64_t number) {
    return splat(Type::kI32x8, b.constant(Type::kI32, number));
  };
  const Value x = in.load_vector(Type::kI32x8, b.i64(0));
  const Value y = splat(Type::kI32x8, in.load(b.i64(8)));
  out.store(b.i64(0), pair_dot((x >> all(4)) & all(0x000f000f), y, all(7)) + x);
  return b.finish();
}

TEST(Printer, AddsProductsOfPairs) {
  int32_t in[] = {0, -1, 0x3fffffff, 0x00800080, 0x12345678, 5, 1 << 20, 77, 0};
  const int32_t low = -32768, high = 32767;
  in[8] = high << 16 | (low & 0xffff);
  for (const char* const options : {"", "-mno-avx2"}) {
    if (kTargetOptions[0] == '\0' && options[0] != '\0') continue;
    int32_t out[8];
    graft_kernel_argument arguments[2];
    arguments[0].address = out;
    arguments[1].address = in;
    Compiled(integer_vector_kernel(), options)(arguments);
    for (int i = 0; i < 8; ++i) {
      const int32_t pairs = (in[i] >> 4) & 0x000f000f;
      const int64_t expected = int64_t{pairs & 0xffff} * low + int64_t{pairs >> 16} * high + 7;
      EXPECT_EQ(out[i], static_cast<int32_t>(expected + in[i])) << options << i;
    }
  }
}

TEST(Printer, PrefetchesWhereTheLanguageCan) {
  Builder b("ahead");
  const Address out = b.write(GRAFT_FLOAT32), in = b.read(GRAFT_BFLOAT16);
  b.loop(b.i64(0), b.i64(4), [&](Value i) {
    in.prefetch(i + 1000000);  // no memory
    out.store(i, in.load(i));
  });
  const Kernel kernel = b.finish();
  EXPECT_NE(print(kernel, *find_dialect("c")).find("__builtin_prefetch(p1 + "), std::string::npos);
  EXPECT_EQ(print(kernel, *find_dialect("opencl-c")).find("prefetch("), std::string::npos);
  const uint16_t given[] = {0x3f80, 0x4000, 0x4040, 0x4080};
  float found[4];
  graft_kernel_argument arguments[2];
  arguments[0].address = found;
  arguments[1].address = const_cast<uint16_t*>(given);
  Compiled(kernel, "")(arguments);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(found[i], static_cast<float>(i + 1));
}

TEST(Verifier, PrefetchesOnlyWhatIsRead) {
  Builder b("wrong");
  b.write(GRAFT_FLOAT32).prefetch(b.i64(0));
  EXPECT_THROW(b.finish(), std::logic_error);
}

TEST(Verifier, KeepsVectorsToWhatIsDefined) {
  const auto refused = [](auto build) {
    Builder b("wrong");
    build(b, b.update(GRAFT_FLOAT32), b.update(GRAFT_BFLOAT16));
    EXPECT_THROW(b.finish(), std::logic_error);
  };
  refused([](Builder& b, Address in, Address) {
    const Value x = in.load_vector(Type::kF32x4, b.i64(0));
    x / x;
  });
  refused([](Builder& b, Address, Address half) { half.load_vector(Type::kF32x4, b.i64(0)); });
  refused([](Builder& b, Address, Address) { splat(Type::kF32x4, b.i64(0)); });
  refused([](Builder& b, Address in, Address) { in.load_vector(Type::kI32x8, b.i64(0)); });
  refused([](Builder& b, Address in, Address) {
    const Value x = in.load_vector(Type::kF32x8, b.i64(0));
    pair_dot(x, x, x);
  });
  refused([](Builder& b, Address in, Address) {
    const Value x = in.load_vector(Type::kF32x8, b.i64(0));
    x& x;
  });
  refused([](Builder& b, Address, Address) {
    Lanes(b, Type::kF64, 4).store(b.i64(0), splat(Type::kF32x4, b.f32(0)));
  });
}

TEST(Verifier, NamesTheBrokenRule) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos && text.find("bad") != std::string::npos;
  };
  EXPECT_TRUE(has(refusal(Family::kCpuLike, [](Builder& b) { b.barrier(); }), "GPU-like"));
  EXPECT_EQ(refusal(Family::kGpuLike, [](Builder& b) { b.barrier(); }), "");
  EXPECT_TRUE(has(refusal(Family::kCpuLike, [](Builder& b) { b.i64(1) + b.f32(1); }), "cast"));
  EXPECT_TRUE(has(refusal(Family::kCpuLike,
                          [](Builder& b) {
                            const Address in = b.read(GRAFT_FLOAT32);
                            in.store(b.i64(0), b.f32(1));
                          }),
                  "not declared for this access"));
  EXPECT_TRUE(has(refusal(Family::kCpuLike,
                          [](Builder& b) {
                            Value inside;
                            b.loop(b.i64(0), b.i64(3), [&](Value i) { inside = i + 1; });
                            inside + 1;
                          }),
                  "already closed"));
  EXPECT_TRUE(has(refusal(Family::kCpuLike,
                          [](Builder& b) {
                            b.vector_loop(b.i64(0), b.i64(3),
                                          [&](Value i) { b.loop(b.i64(0), i, [](Value) {}); });
                          }),
                  "no loop and no if"));
  EXPECT_TRUE(has(refusal(Family::kCpuLike, [](Builder& b) { ~b.f32(1); }), "not defined"));
  EXPECT_TRUE(has(refusal(Family::kCpuLike,
                          [](Builder& b) {
                            const Address in = b.read(GRAFT_FLOAT32), out = b.write(GRAFT_FLOAT32);
                            pick({in, out}, b.i64(0));
                          }),
                  "one dtype and access"));
}

}  // namespace
}  // namespace graft::ir
