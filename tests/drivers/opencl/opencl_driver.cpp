// tests/drivers/opencl/opencl_driver.cpp: loads the OpenCL driver for all its tests.
#include "opencl_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace graft::opencl_test {

const char kKernels[] =
    "#ifdef GRAFT_MEMORY_OFFSETS\n"
    "#define ARRAY __global char* base, ulong offset\n"
    "#define OPEN __global int* x = (__global int*)(base + offset);\n"
    "#else\n"
    "#define ARRAY __global int* x\n"
    "#define OPEN\n"
    "#endif\n"
    "__kernel void add_n(ARRAY, int n) { OPEN x[get_global_id(0)] += n; }\n"
    "__kernel void turn(ARRAY, __local int* room) {\n"
    "  OPEN\n"
    "  const size_t i = get_local_id(0), n = get_local_size(0);\n"
    "  room[i] = x[get_global_id(0)];\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  x[get_global_id(0)] = room[(i + n - 1) % n];\n"
    "}\n"
    "__kernel void spin(ARRAY, int rounds) {\n"
    "  OPEN\n"
    "  volatile int y = x[get_global_id(0)];\n"
    "  for (int i = 0; i < rounds; ++i) y = y * 3 + 1;\n"
    "  x[get_global_id(0)] = y;\n"
    "}\n";

const graft_driver_table& driver() {
  static const graft_driver_table table = [] {
    graft_driver_table filled = {};
    filled.abi_major = GRAFT_ABI_MAJOR;
    filled.abi_minor = GRAFT_ABI_MINOR;
    filled.slot_count = GRAFT_SLOT_COUNT;
    void* handle = dlopen(GRAFT_TEST_DRIVER_DIR "/graft_opencl.so", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    auto query = reinterpret_cast<graft_driver_query_function>(dlsym(handle, "graft_driver_query"));
    if (query == nullptr || query(&filled) != GRAFT_OK) std::abort();
    return filled;
  }();
  return table;
}

std::string last_message() {
  char text[16384] = "";
  driver().last_message(text, sizeof text);
  return text;
}

std::string fake(const std::string& plan) {
  return "GRAFT_OPENCL_LIBRARY=" GRAFT_TEST_BINARY_DIR "/tests/graft_fake_cl.so GRAFT_FAKE_CL=" +
         plan;
}

std::string old_loader(const std::string& plan) {
  return "GRAFT_OPENCL_LIBRARY=" GRAFT_TEST_BINARY_DIR
         "/tests/graft_fake_cl_old.so GRAFT_FAKE_CL=" +
         plan;
}

std::vector<std::string> every_memory() {
  return {"GRAFT_OPENCL_MEMORY=svm", fake("coarse_svm"),     fake("no_svm"),
          fake("no_svm,usm"),        fake("no_svm,address"), old_loader("version:1.2")};
}

Session::Session(uint32_t ordinal) {
  uint32_t count = 0;
  EXPECT_EQ(driver().device_count(&count), GRAFT_OK) << last_message();
  if (count <= ordinal) {
    ADD_FAILURE() << "this machine has " << count << " OpenCL devices, the test needs "
                  << ordinal + 1 << ": tools/setup installs PoCL (pocl-opencl-icd)";
    std::fflush(stdout);
    std::_Exit(1);
  }
  EXPECT_EQ(driver().device_open(ordinal, &device), GRAFT_OK) << last_message();
  stream = new_stream();
}

Session::~Session() {
  for (graft_event each : events_) driver().event_destroy(each);
  for (graft_stream each : streams_) driver().stream_destroy(each);
  for (graft_program each : programs_) driver().program_unload(each);
  for (graft_address each : allocations_) driver().memory_free(device, each);
  driver().device_close(device);
}

graft_address Session::allocate(uint64_t bytes) {
  graft_address result = 0;
  EXPECT_EQ(driver().memory_allocate(device, bytes, &result), GRAFT_OK) << last_message();
  if (result != 0) allocations_.push_back(result);
  return result;
}

graft_stream Session::new_stream() {
  graft_stream result = nullptr;
  EXPECT_EQ(driver().stream_create(device, 0, &result), GRAFT_OK) << last_message();
  if (result != nullptr) streams_.push_back(result);
  return result;
}

graft_event Session::new_event(bool timed) {
  graft_event result = nullptr;
  EXPECT_EQ(driver().event_create(device, timed, &result), GRAFT_OK) << last_message();
  if (result != nullptr) events_.push_back(result);
  return result;
}

std::string Session::compile(const std::string& source, graft_status expected) {
  std::string blob;
  graft_sink sink = {&blob, [](void* context, const void* data, size_t bytes) {
                       static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                                  bytes);
                     }};
  EXPECT_EQ(driver().program_compile(device, source.data(), source.size(), "", sink), expected)
      << last_message();
  return blob;
}

graft_kernel Session::kernel(const char* name, const std::string& source) {
  const std::string blob = compile(source.empty() ? kKernels : source);
  graft_program program = nullptr;
  EXPECT_EQ(driver().program_load(device, blob.data(), blob.size(), &program), GRAFT_OK)
      << last_message();
  if (program == nullptr) return nullptr;
  programs_.push_back(program);
  graft_kernel result = nullptr;
  EXPECT_EQ(driver().kernel_find(device, program, name, &result), GRAFT_OK) << last_message();
  return result;
}

graft_status Session::launch(graft_kernel kernel, uint64_t grid,
                             std::vector<graft_argument> arguments, uint32_t group, uint32_t tag) {
  const graft_launch launch = {
      sizeof launch,   tag, {grid, 1, 1}, {group, 1, 1}, uint32_t(arguments.size()),
      arguments.data()};
  return driver().kernel_launch(stream, kernel, &launch);
}

graft_status Session::upload(graft_address to, const void* from, uint64_t bytes, uint32_t tag) {
  return driver().copy(stream, to, reinterpret_cast<uint64_t>(from), bytes, GRAFT_HOST_TO_DEVICE,
                       tag);
}

graft_status Session::download(void* to, graft_address from, uint64_t bytes) {
  const graft_status status =
      driver().copy(stream, reinterpret_cast<uint64_t>(to), from, bytes, GRAFT_DEVICE_TO_HOST, 0);
  return status != GRAFT_OK ? status : driver().stream_synchronize(stream);
}

graft_address Session::put(const std::vector<int>& values) {
  const graft_address at = allocate(values.size() * sizeof(int));
  EXPECT_EQ(upload(at, values.data(), values.size() * sizeof(int)), GRAFT_OK) << last_message();
  EXPECT_EQ(driver().stream_synchronize(stream), GRAFT_OK) << last_message();
  return at;
}

std::vector<int> Session::get(graft_address address, uint64_t count) {
  std::vector<int> values(count, -1);
  EXPECT_EQ(download(values.data(), address, count * sizeof(int)), GRAFT_OK) << last_message();
  return values;
}

graft_argument address(graft_address value, uint64_t bytes) {
  return {GRAFT_ARGUMENT_ADDRESS, 0, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE, 0, value, bytes};
}

graft_argument scalar(int value) {
  return {GRAFT_ARGUMENT_SCALAR, GRAFT_INT32, 0, 0, uint32_t(value), 4};
}

graft_argument local(uint64_t bytes) { return {GRAFT_ARGUMENT_LOCAL, 0, 0, 0, 0, bytes}; }

}  // namespace graft::opencl_test
