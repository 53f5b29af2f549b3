// tests/drivers/check/programs.cpp: test kernels in the device's dialect, from source to launch.
#include "check/programs.h"

#include <cstring>

namespace graft::check {
namespace {

constexpr const char* kCHead =
    "typedef union { void* address; unsigned long long bits; } argument;\n"
    "typedef long long i64;\n"
    "#define ATOMIC_ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)\n";

constexpr const char* kOpenclHead =
    "typedef long i64;\n"
    "#ifdef cl_khr_fp64\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "#endif\n"
    "#ifdef cl_khr_int64_base_atomics\n"
    "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"
    "#endif\n"
    "#if defined(cl_khr_subgroups)\n"
    "#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n"
    "#endif\n"
    "#if defined(cl_khr_subgroup_shuffle)\n"
    "#define SHUFFLE sub_group_shuffle_xor\n"
    "#else\n"
    "#define SHUFFLE intel_sub_group_shuffle_xor\n"
    "#endif\n"
    "#define ATOMIC_ADD(p, v) atom_add(p, v)\n"
    "#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)\n"
    "#ifdef GRAFT_MEMORY_OFFSETS\n"
    "#define ADDRESS(type, n) __global char* b##n, ulong o##n\n"
    "#define BIND(type, n) __global type* p##n = (__global type*)(b##n + o##n);\n"
    "#else\n"
    "#define ADDRESS(type, n) __global type* p##n\n"
    "#define BIND(type, n)\n"
    "#endif\n";

constexpr const char* kCudaHead =
    "typedef long long i64;\n"
    "#define ATOMIC_ADD(p, v) atomicAdd((unsigned long long*)(p), (unsigned long long)(v))\n"
    "#define BARRIER __syncthreads()\n";

std::string c_source(const KernelText& text) {
  if (text.local) throw Omitted("local memory: the dialect \"c\" has none");
  std::string source = kCHead;
  source += "void " + text.name +
            "(const argument* a, unsigned long long begin, unsigned long long end) {\n";
  for (uint32_t i = 0; i < text.addresses; ++i) {
    const std::string number = std::to_string(i);
    source +=
        "  " + text.type + "* p" + number + " = (" + text.type + "*)a[" + number + "].address;\n";
  }
  if (text.scalar)
    source += "  const int n = (int)a[" + std::to_string(text.addresses) + "].bits;\n";
  return source + "  for (unsigned long long i = begin; i < end; ++i) {\n    " + text.body +
         "\n  }\n}\n";
}

std::string opencl_source(const KernelText& text) {
  std::string parameters, bindings;
  const auto next = [&](const std::string& one) {
    parameters += (parameters.empty() ? "" : ", ") + one;
  };
  for (uint32_t i = 0; i < text.addresses; ++i) {
    const std::string both = "(" + text.type + ", " + std::to_string(i) + ")";
    next("ADDRESS" + both);
    bindings += "  BIND" + both + "\n";
  }
  if (text.local) next("__local int* shared");
  if (text.scalar) next("int n");
  return std::string(kOpenclHead) + "__kernel void " + text.name + "(" + parameters + ") {\n" +
         bindings +
         "  const size_t i = get_global_id(0);\n"
         "  const int l = (int)get_local_id(0), s = (int)get_local_size(0);\n  " +
         text.body + "\n}\n";
}

std::string cuda_source(const KernelText& text) {
  if (text.local) throw Omitted("a test kernel with local memory in the dialect \"cuda-c\"");
  std::string parameters;
  for (uint32_t i = 0; i < text.addresses; ++i) {
    parameters += (i == 0 ? "" : ", ") + text.type + "* p" + std::to_string(i);
  }
  if (text.scalar) parameters += ", int n";
  return std::string(kCudaHead) + "extern \"C\" __global__ void " + text.name + "(" + parameters +
         ") {\n  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;\n"
         "  const int l = threadIdx.x, s = blockDim.x;\n  " +
         text.body + "\n}\n";
}

}  // namespace

std::string source_of(const Session& session, const KernelText& text) {
  const std::string dialect = session.properties.dialect;
  if (dialect == "c") return c_source(text);
  if (dialect == "opencl-c") return opencl_source(text);
  if (dialect == "cuda-c") return cuda_source(text);
  throw Failure("this checker has no test kernel in the dialect '" + dialect + "'");
}

void append(void* context, const void* data, size_t bytes) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(data), bytes);
}

std::string compile(Session& session, const std::string& source) {
  std::string blob;
  session.expect(session.table.program_compile(session.device, source.data(), source.size(), "",
                                               graft_sink{&blob, append}),
                 GRAFT_OK, "program_compile");
  session.require(!blob.empty(), "program_compile gave an empty blob");
  return blob;
}

graft_program load(Session& session, const std::string& blob) {
  graft_program program = nullptr;
  session.expect(session.table.program_load(session.device, blob.data(), blob.size(), &program),
                 GRAFT_OK, "program_load");
  return program;
}

graft_kernel find(Session& session, graft_program program, const std::string& name) {
  graft_kernel kernel = nullptr;
  session.expect(session.table.kernel_find(session.device, program, name.c_str(), &kernel),
                 GRAFT_OK, "kernel_find");
  return kernel;
}

graft_kernel build(Session& session, const KernelText& text) {
  return find(session, load(session, compile(session, source_of(session, text))), text.name);
}

graft_status launch(Session& session, graft_stream stream, graft_kernel kernel,
                    const KernelText& text, const Work& work, uint64_t local_bytes) {
  std::vector<graft_argument> arguments;
  for (const graft_address address : work.addresses) {
    arguments.push_back({GRAFT_ARGUMENT_ADDRESS, 0, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE, 0,
                         address, work.bytes});
  }
  if (text.local) arguments.push_back({GRAFT_ARGUMENT_LOCAL, 0, 0, 0, 0, local_bytes});
  if (text.scalar) {
    arguments.push_back(
        {GRAFT_ARGUMENT_SCALAR, GRAFT_INT32, 0, 0, static_cast<uint32_t>(work.n), 4});
  }
  graft_launch one = {sizeof one,
                      0,
                      {work.grid, 1, 1},
                      {work.group, 1, 1},
                      static_cast<uint32_t>(arguments.size()),
                      arguments.data()};
  const graft_status status = session.table.kernel_launch(stream, kernel, &one);
  std::memset(arguments.data(), 0, arguments.size() * sizeof(graft_argument));
  return status;
}

void add(Session& session, graft_stream stream, graft_kernel kernel, graft_address x,
         uint64_t count, int n) {
  session.expect(launch(session, stream, kernel, {}, {{x}, count * 4, count, 1, n}), GRAFT_OK,
                 "kernel_launch");
}

graft_address zeros(Session& session, graft_stream stream, uint64_t count) {
  const graft_address x = session.allocate(count * 4);
  const uint32_t zero = 0;
  session.expect(session.table.fill(stream, x, count * 4, &zero, 4, 0), GRAFT_OK, "fill");
  return x;
}

std::vector<int32_t> words_at(Session& session, graft_stream stream, graft_address x,
                              uint64_t count) {
  const auto bytes = session.download(stream, x, count * 4);
  std::vector<int32_t> words(count);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

void require_sum(Session& session, graft_stream stream, graft_address x, uint64_t count, int sum) {
  const auto words = words_at(session, stream, x, count);
  for (uint64_t i = 0; i < count; ++i) {
    session.require(words[i] == sum, "work-item " + std::to_string(i) + " of " +
                                         std::to_string(count) +
                                         " ran wrongly: " + std::to_string(words[i]) +
                                         " instead of " + std::to_string(sum));
  }
}

}  // namespace graft::check
