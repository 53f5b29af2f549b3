// tests/drivers/veda/veda_driver.cpp: loads the VEDA driver for all its tests.
#include "veda_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/emulated/veda/control.h"

namespace graft::veda_test {
namespace {

constexpr char kLibrary[] = GRAFT_TEST_BINARY_DIR "/tests/veda/libveda.so.0";

// A function of the library that the driver has loaded.
template <class Function>
Function* control(const char* name) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto* found = reinterpret_cast<Function*>(dlsym(library, name));
  dlclose(library);
  return found;
}

}  // namespace

const char kKernels[] =
    "typedef union { void* address; unsigned long long bits; } argument;\n"
    "typedef unsigned long long u64;\n"
    "void add_n(const argument* a, u64 begin, u64 end) {\n"
    "  int* x = a[0].address;\n"
    "  for (u64 i = begin; i < end; ++i) x[i] += (int)a[1].bits;\n"
    "}\n"
    "void gather(const argument* a, u64 begin, u64 end) {\n"
    "  int** rows = a[0].address;\n"
    "  int* x = a[1].address;\n"
    "  for (u64 i = begin; i < end; ++i) x[i] = rows[i][0];\n"
    "}\n"
    "void crash(const argument* a, u64 begin, u64 end) {\n"
    "  *(volatile int*)8 = 1;\n"
    "}\n";

const graft_driver_table& driver() {
  static const graft_driver_table table = [] {
    graft_driver_table filled = {};
    filled.abi_major = GRAFT_ABI_MAJOR;
    filled.abi_minor = GRAFT_ABI_MINOR;
    filled.slot_count = GRAFT_SLOT_COUNT;
    void* handle = dlopen(GRAFT_TEST_DRIVER_DIR "/graft_veda.so", RTLD_NOW | RTLD_LOCAL);
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

std::string emulated(const std::string& settings, const std::string& more) {
  std::string all = std::string("GRAFT_VEDA_LIBRARY=") + kLibrary + " GRAFT_VE_CC=cc";
  std::istringstream words(settings);
  for (std::string word; words >> word;) all += " EMULATED_VEDA_" + word;
  return more.empty() ? all : all + " " + more;
}

int device_process() {
  auto* process = control<int(VEDAdevice)>("emulated_veda_process");
  return process != nullptr ? process(0) : -1;
}

void plant(const std::string& calls, const std::string& device) {
  auto* function = control<VEDAresult(const char*, const char*)>("emulated_veda_plant");
  ASSERT_NE(function, nullptr) << "the driver has not loaded the emulated libveda";
  ASSERT_EQ(function(calls.c_str(), device.c_str()), VEDA_SUCCESS) << calls << " " << device;
}

Session::Session(uint32_t ordinal) {
  EXPECT_EQ(driver().device_open(ordinal, &device), GRAFT_OK) << last_message();
  if (device == nullptr) std::_Exit(1);
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

graft_status compile(graft_device device, const std::string& source, std::string* out_blob) {
  out_blob->clear();
  graft_sink sink = {out_blob, [](void* context, const void* data, size_t bytes) {
                       static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                                  bytes);
                     }};
  return driver().program_compile(device, source.data(), source.size(), "", sink);
}

graft_kernel Session::kernel(const char* name, const std::string& source) {
  std::string blob;
  EXPECT_EQ(compile(device, source.empty() ? kKernels : source, &blob), GRAFT_OK) << last_message();
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
                             std::vector<graft_argument> arguments, uint32_t tag) {
  const graft_launch launch = {
      sizeof launch, tag, {grid, 1, 1}, {1, 1, 1}, uint32_t(arguments.size()), arguments.data()};
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

graft_argument scalar(int64_t value) {
  return {GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, uint64_t(value), 8};
}

}  // namespace graft::veda_test
