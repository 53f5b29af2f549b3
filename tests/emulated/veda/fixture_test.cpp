// tests/emulated/veda/fixture_test.cpp: the library's functions and the fixture of fixture.h; a
// test that none is missing.
#include "tests/emulated/veda/fixture.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace emulated::testing {
namespace {

const char kLibrary[] = GRAFT_TEST_BINARY_DIR "/tests/veda/libveda.so.0";

void* symbol(void* library, const char* name) {
  void* found = ::dlsym(library, name);
  EXPECT_NE(found, nullptr) << name << " is not in " << kLibrary;
  return found;
}

const Api* load() {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << ::dlerror();
    std::abort();
  }
  auto* api = new Api;
#define EMULATED_VEDA_FIND(name, parameters) \
  api->name = reinterpret_cast<decltype(api->name)>(symbol(library, "veda" #name));
  GRAFT_VEDA_FUNCTIONS(EMULATED_VEDA_FIND, EMULATED_VEDA_FIND)
#undef EMULATED_VEDA_FIND
  api->process = reinterpret_cast<decltype(api->process)>(symbol(library, "emulated_veda_process"));
  api->plant = reinterpret_cast<decltype(api->plant)>(symbol(library, "emulated_veda_plant"));
  return api;
}

}  // namespace

const Api& veda() {
  static const Api* api = load();
  return *api;
}

std::string name_of(VEDAresult result) {
  const char* name = nullptr;
  if (veda().GetErrorName(result, &name) == VEDA_SUCCESS) return name;
  return "no result of VEDA: " + std::to_string(static_cast<int>(result));
}

void VedaTest::set(const Setting& setting) {
  const std::string& name = setting.first;
  const bool whole = name.starts_with("_") || name.starts_with("VE");
  set_.push_back(whole ? name : "EMULATED_VEDA_" + name);
  ::setenv(set_.back().c_str(), setting.second.c_str(), 1);
}

VEDAresult VedaTest::init(std::initializer_list<Setting> settings) {
  for (const Setting& setting : settings) set(setting);
  return veda().Init(0);
}

void VedaTest::start(std::initializer_list<Setting> settings, int mode) {
  ASSERT_OK(init(settings));
  ASSERT_OK(veda().CtxCreate(&context, mode, 0));
  ASSERT_OK(veda().ModuleLoad(&module, kernels_file().c_str()));
}

void VedaTest::TearDown() {
  veda().plant("", "");
  while (veda().CtxPopCurrent(nullptr) == VEDA_SUCCESS) {
  }
  veda().ProfilerSetCallback(nullptr);
  veda().Exit();
  for (const std::string& name : set_) ::unsetenv(name.c_str());
  ::unsetenv("VE_OMP_NUM_THREADS");  // the library wrote it
}

VEDAfunction VedaTest::function(const char* name) {
  VEDAfunction found = {};
  EXPECT_OK(veda().ModuleGetFunction(&found, module, name));
  return found;
}

VEDAresult VedaTest::launch(const char* name, const std::vector<std::uint64_t>& integers,
                            VEDAstream stream, std::uint64_t* result) {
  VEDAargs args = nullptr;
  EXPECT_OK(veda().ArgsCreate(&args));
  int index = 0;
  for (const std::uint64_t integer : integers) {
    EXPECT_OK(veda().ArgsSetU64(args, index++, integer));
  }
  const VEDAresult code = veda().LaunchKernelEx(function(name), stream, args, 1, result);
  if (code != VEDA_SUCCESS) veda().ArgsDestroy(args);
  return code;
}

std::uint64_t VedaTest::run(const char* name, const std::vector<std::uint64_t>& integers) {
  std::uint64_t result = 0;
  EXPECT_OK(launch(name, integers, -1, &result));
  return result;
}

VEDAdeviceptr VedaTest::allocate(std::size_t size) {
  VEDAdeviceptr pointer = nullptr;
  EXPECT_OK(veda().MemAlloc(&pointer, size));
  return pointer;
}

std::uint64_t VedaTest::raw(VEDAdeviceptr pointer) {
  void* address = nullptr;
  EXPECT_OK(veda().MemPtr(&address, pointer));
  return reinterpret_cast<std::uint64_t>(address);
}

std::uint64_t bits(VEDAdeviceptr pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

std::string kernels_file() { return GRAFT_TEST_BINARY_DIR "/tests/veda/kernels.vso"; }

bool ends(int process) {
  for (int wait = 0; wait < 2000; ++wait, ::usleep(1000)) {
    std::ifstream state("/proc/" + std::to_string(process) + "/stat");
    std::string number;
    std::string name;
    std::string letter;
    if (!(state >> number >> name >> letter) || letter == "Z") return true;
  }
  return false;
}

TEST(VedaLibraryTest, HasEveryFunctionOfTheCatalogue) {
  int functions = 0;
#define EMULATED_VEDA_CHECK(name, parameters) \
  EXPECT_NE(veda().name, nullptr);            \
  ++functions;
  GRAFT_VEDA_FUNCTIONS(EMULATED_VEDA_CHECK, EMULATED_VEDA_CHECK)
#undef EMULATED_VEDA_CHECK
  EXPECT_EQ(functions, 147);
}

}  // namespace emulated::testing
