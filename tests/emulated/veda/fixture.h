// tests/emulated/veda/fixture.h: what the emulator's tests share: the library's functions and a
// fixture that starts it.
#ifndef GRAFT_TESTS_EMULATED_VEDA_VEDA_TEST_H_
#define GRAFT_TESTS_EMULATED_VEDA_VEDA_TEST_H_

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "drivers/veda/api.h"
#include "tests/emulated/veda/control.h"

namespace emulated::testing {

// VEDA's functions, and those of control.h, found as a driver finds them.
struct Api {
#define EMULATED_VEDA_POINTER(name, parameters) VEDAresult(*name) parameters;
  GRAFT_VEDA_FUNCTIONS(EMULATED_VEDA_POINTER, EMULATED_VEDA_POINTER)
#undef EMULATED_VEDA_POINTER
  decltype(&emulated_veda_process) process;
  decltype(&emulated_veda_plant) plant;
};
const Api& veda();

// The name of a result, so that a failed comparison can be read.
std::string name_of(VEDAresult result);

// Expects the code: by name, since numbers say nothing.
#define EXPECT_CODE(code, call) \
  EXPECT_EQ(::emulated::testing::name_of(code), ::emulated::testing::name_of(call))
#define EXPECT_OK(call) EXPECT_CODE(VEDA_SUCCESS, call)
#define ASSERT_OK(call) ASSERT_EQ("VEDA_SUCCESS", ::emulated::testing::name_of(call))

using Setting = std::pair<std::string, std::string>;

// Each test starts the library with its own settings and leaves nothing of it behind.
class VedaTest : public ::testing::Test {
 protected:
  // Sets the variables (a name without _ or VE before it is one of EMULATED_VEDA_) and calls
  // vedaInit.
  VEDAresult init(std::initializer_list<Setting> settings = {});
  // init, a context in mode on device 0, and the module of the tests.
  void start(std::initializer_list<Setting> settings = {}, int mode = VEDA_CONTEXT_MODE_OMP);
  void TearDown() override;

  VEDAfunction function(const char* name);
  // Launches name with integers on stream 0 and waits for its result.
  std::uint64_t run(const char* name, const std::vector<std::uint64_t>& integers = {});
  // The same without waiting; args are destroyed at the launch.
  VEDAresult launch(const char* name, const std::vector<std::uint64_t>& integers = {},
                    VEDAstream stream = 0, std::uint64_t* result = nullptr);
  VEDAdeviceptr allocate(std::size_t size);
  std::uint64_t raw(VEDAdeviceptr pointer);

  VEDAcontext context = nullptr;
  VEDAmodule module = nullptr;

 private:
  std::vector<std::string> set_;

  void set(const Setting& setting);
};

std::uint64_t bits(VEDAdeviceptr pointer);
std::string kernels_file();

// Whether the process ends, as a zombie or for good, within two seconds.
bool ends(int process);

}  // namespace emulated::testing

#endif  // GRAFT_TESTS_EMULATED_VEDA_VEDA_TEST_H_
