// tests/emulated/veda/init_test.cpp: start and end of the emulated library, its errors by name, its
// devices by environment.
#include "tests/emulated/veda/fixture.h"

namespace emulated::testing {
namespace {

class InitTest : public VedaTest {
 protected:
  int count() {
    int found = -1;
    EXPECT_OK(veda().DeviceGetCount(&found));
    return found;
  }
  // "card.numa" of every device.
  std::string cards() {
    std::string list;
    for (int device = 0; device < count(); ++device) {
      int card = -1;
      int numa = -1;
      EXPECT_OK(veda().DeviceGetPhysicalId(&card, device));
      EXPECT_OK(veda().DeviceGetNUMAId(&numa, device));
      list += (device == 0 ? "" : " ") + std::to_string(card) + "." + std::to_string(numa);
    }
    return list;
  }
};

TEST_F(InitTest, OnceAndWithoutFlags) {
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().Init(1));
  EXPECT_OK(veda().Init(0));
  EXPECT_CODE(VEDA_ERROR_ALREADY_INITIALIZED, veda().Init(0));
  EXPECT_OK(veda().Exit());
  EXPECT_CODE(VEDA_ERROR_NOT_INITIALIZED, veda().Exit());
  EXPECT_OK(veda().Init(0));
}

TEST_F(InitTest, NothingWorksBefore) {
  int number = 0;
  size_t size = 0;
  VEDAcontext handle = nullptr;
  VEDAdeviceptr pointer = nullptr;
  EXPECT_CODE(VEDA_ERROR_NOT_INITIALIZED, veda().DeviceGetCount(&number));
  EXPECT_CODE(VEDA_ERROR_NOT_INITIALIZED, veda().GetArchitecture(&number));
  EXPECT_CODE(VEDA_ERROR_NOT_INITIALIZED, veda().DevicePrimaryCtxRetain(&handle, 0));
  EXPECT_CODE(VEDA_ERROR_NOT_INITIALIZED, veda().CtxGetCurrent(&handle));
  EXPECT_CODE(VEDA_ERROR_NOT_INITIALIZED, veda().MemAlloc(&pointer, 8));
  EXPECT_CODE(VEDA_ERROR_NOT_INITIALIZED, veda().MemGetInfo(&size, &size));
  EXPECT_EQ(veda().process(0), -1);
  const char* text = nullptr;
  EXPECT_OK(veda().GetVersion(&text));
  EXPECT_STREQ(text, "2.3.0");
  EXPECT_OK(veda().DriverGetVersion(&text));
  EXPECT_STREQ(text, "emulated");
}

TEST_F(InitTest, NamesOfErrors) {
  int codes = 0;
#define EMULATED_VEDA_CHECK(code, name)                        \
  {                                                            \
    const char* text = nullptr;                                \
    EXPECT_OK(veda().GetErrorString(VEDAresult(code), &text)); \
    EXPECT_STREQ(text, #name);                                 \
    EXPECT_EQ(name_of(VEDAresult(code)), #name);               \
    EXPECT_EQ(code, codes++);                                  \
  }
  GRAFT_VEDA_RESULTS(EMULATED_VEDA_CHECK)
#undef EMULATED_VEDA_CHECK
  EXPECT_EQ(codes, 62);
  const char* text = nullptr;
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().GetErrorName(VEDAresult(62), &text));
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().GetErrorName(VEDA_SUCCESS, nullptr));
}

TEST_F(InitTest, HostWithoutCards) {
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VEDA_ARCHITECTURE, init({{"DEVICES", "0"}}));
  EXPECT_OK(init({{"VEDA_ARCH", "1"}}));
  EXPECT_EQ(count(), 0);
  EXPECT_OK(veda().Exit());
}

TEST_F(InitTest, RunnerStandsForACard) {
  EXPECT_OK(init({{"DEVICES", "0"}, {"VEORUN_BIN", "any"}}));
  EXPECT_EQ(count(), 0);
}

TEST_F(InitTest, AllDevices) {
  ASSERT_OK(init({{"DEVICES", "2"}, {"NUMA", "2"}}));
  EXPECT_EQ(cards(), "0.0 0.1 1.0 1.1");
  float distance = -1;
  EXPECT_OK(veda().DeviceDistance(&distance, 0, 0));
  EXPECT_EQ(distance, 0);
  float near = -1;
  EXPECT_OK(veda().DeviceDistance(&near, 0, 1));
  EXPECT_OK(veda().DeviceDistance(&distance, 0, 2));
  EXPECT_LT(near, distance);
  EXPECT_CODE(VEDA_ERROR_INVALID_DEVICE, veda().DeviceDistance(&distance, 0, 4));
}

TEST_F(InitTest, VisibleDevicesChooseAndOrder) {
  ASSERT_OK(init({{"DEVICES", "3"}, {"NUMA", "2"}, {"VEDA_VISIBLE_DEVICES", "2.1,0"}}));
  EXPECT_EQ(cards(), "2.1 0.0 0.1");
}

TEST_F(InitTest, EmptyVisibleDevicesAreAll) {
  ASSERT_OK(init({{"DEVICES", "2"}, {"VEDA_VISIBLE_DEVICES", ""}}));
  EXPECT_EQ(cards(), "0.0 1.0");
}

TEST_F(InitTest, NodesOfTheScheduler) {
  ASSERT_OK(init({{"DEVICES", "4"}, {"_VENODELIST", "3 1"}, {"VE_NODE_NUMBER", "2"}}));
  EXPECT_EQ(cards(), "3.0 1.0");
}

TEST_F(InitTest, OneNode) {
  ASSERT_OK(init({{"DEVICES", "4"}, {"VE_NODE_NUMBER", "2"}}));
  EXPECT_EQ(cards(), "2.0");
}

TEST_F(InitTest, NoSuchCard) {
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_DEVICE, init({{"VEDA_VISIBLE_DEVICES", "1"}}));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_DEVICE, init({{"VEDA_VISIBLE_DEVICES", "0.1"}}));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_DEVICE, init({{"VEDA_VISIBLE_DEVICES", "x"}}));
  EXPECT_CODE(VEDA_ERROR_CANNOT_CREATE_DEVICE,
              init({{"VEDA_VISIBLE_DEVICES", ""}, {"DEVICES", "17"}}));
}

TEST_F(InitTest, ModelsAndArchitectures) {
  const struct {
    const char* model;
    const char* wanted;  // VEDA_ARCH
    int architecture;    // 0: refused
    int number;
    const char* name;
  } cases[] = {{"VE1", "", 1, 1, "NEC SX-Aurora Tsubasa VE10B"},
               {"VE2", "", 1, 2, "NEC SX-Aurora Tsubasa VE20B"},
               {"VE3", "", 3, 3, "NEC SX-Aurora Tsubasa VE30A"},
               {"VE3", "1", 1, 3, "NEC SX-Aurora Tsubasa VE30A"},
               {"VE1", "3", 0, 0, ""}};
  for (const auto& one : cases) {
    const VEDAresult result = init({{"MODEL", one.model}, {"VEDA_ARCH", one.wanted}});
    if (one.architecture == 0) {
      EXPECT_CODE(VEDA_ERROR_UNKNOWN_VEDA_ARCHITECTURE, result);
      continue;
    }
    ASSERT_OK(result);
    int architecture = 0;
    EXPECT_OK(veda().GetArchitecture(&architecture));
    EXPECT_EQ(architecture, one.architecture);
    int number = 0;
    EXPECT_OK(veda().DeviceGetAttribute(&number, VEDA_DEVICE_ATTRIBUTE_MODEL, 0));
    EXPECT_EQ(number, one.number);
    char name[64] = {};
    EXPECT_OK(veda().DeviceGetName(name, sizeof name, 0));
    EXPECT_STREQ(name, one.name);
    EXPECT_OK(veda().DeviceGetName(name, 4, 0));
    EXPECT_STREQ(name, "NEC");
    EXPECT_OK(veda().Exit());
  }
}

TEST_F(InitTest, SettingsThatCannotBeRead) {
  for (const Setting& setting : std::initializer_list<Setting>{{"MODEL", "VE9"},
                                                               {"MEMORY", "much"},
                                                               {"DEVICES", "-1"},
                                                               {"CORES", "0"},
                                                               {"VOLTAGE", "12V"},
                                                               {"FAIL", "Nothing:1:TODO"},
                                                               {"FAIL", "MemAlloc:1:NO_CODE"},
                                                               {"FAIL", "MemAlloc:1"},
                                                               {"FAULT", "fire:*:1"}}) {
    EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, init({setting})) << setting.first;
    init({{setting.first, ""}});
    TearDown();
  }
}

TEST_F(InitTest, Attributes) {
  ASSERT_OK(init({{"CORES", "10"}, {"CLOCK", "1600"}, {"MEMORY", "2G"}}));
  const std::pair<VEDAdevice_attribute, int> expected[] = {
      {VEDA_DEVICE_ATTRIBUTE_CLOCK_RATE, 1600},
      {VEDA_DEVICE_ATTRIBUTE_CLOCK_BASE, 800},
      {VEDA_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 10},
      {VEDA_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1600},
      {VEDA_DEVICE_ATTRIBUTE_L1D_CACHE_SIZE, 32},
      {VEDA_DEVICE_ATTRIBUTE_L1I_CACHE_SIZE, 32},
      {VEDA_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 256},
      {VEDA_DEVICE_ATTRIBUTE_LLC_CACHE_SIZE, 16384},
      {VEDA_DEVICE_ATTRIBUTE_ABI_VERSION, 1},
      {VEDA_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
      {VEDA_DEVICE_ATTRIBUTE_FIREWARE_VERSION, 5399},
      {VEDA_DEVICE_ATTRIBUTE_MODEL, 1}};
  for (const auto& [attribute, value] : expected) {
    int found = -1;
    EXPECT_OK(veda().DeviceGetAttribute(&found, attribute, 0));
    EXPECT_EQ(found, value) << attribute;
  }
  int found = 0;
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_ATTRIBUTE,
              veda().DeviceGetAttribute(&found, VEDAdevice_attribute(12), 0));
  size_t bytes = 0;
  EXPECT_OK(veda().DeviceTotalMem(&bytes, 0));
  EXPECT_EQ(bytes, size_t{2} << 30);
  VEDAdevice device = -1;
  EXPECT_OK(veda().DeviceGet(&device, 0));
  EXPECT_EQ(device, 0);
  EXPECT_CODE(VEDA_ERROR_INVALID_DEVICE, veda().DeviceGet(&device, 1));
  EXPECT_CODE(VEDA_ERROR_INVALID_DEVICE, veda().DeviceGet(&device, -1));
  EXPECT_OK(veda().DeviceGetAVEOId(&found, 0));
  EXPECT_EQ(found, 0);
}

TEST_F(InitTest, Sensors) {
  ASSERT_OK(init({{"VOLTAGE", "11.5"},
                  {"CURRENT", "4"},
                  {"VOLTAGE_EDGE", "12"},
                  {"CURRENT_EDGE", "0.25"},
                  {"TEMPERATURE", "40.5"},
                  {"CORES", "2"}}));
  float value = 0;
  EXPECT_OK(veda().DeviceGetVoltage(&value, 0));
  EXPECT_FLOAT_EQ(value, 11.5F);
  EXPECT_OK(veda().DeviceGetCurrent(&value, 0));
  EXPECT_FLOAT_EQ(value, 4.0F);
  EXPECT_OK(veda().DeviceGetVoltageEdge(&value, 0));
  EXPECT_FLOAT_EQ(value, 12.0F);
  EXPECT_OK(veda().DeviceGetCurrentEdge(&value, 0));
  EXPECT_FLOAT_EQ(value, 0.25F);
  EXPECT_OK(veda().DeviceGetPower(&value, 0));
  EXPECT_FLOAT_EQ(value, 11.5F * 4 + 12 * 0.25F + 5);
  EXPECT_OK(veda().DeviceGetTemp(&value, 1, 0));
  EXPECT_FLOAT_EQ(value, 41.0F);
  EXPECT_CODE(VEDA_ERROR_INVALID_COREIDX, veda().DeviceGetTemp(&value, 2, 0));
  EXPECT_CODE(VEDA_ERROR_INVALID_COREIDX, veda().DeviceGetTemp(&value, -1, 0));
}

TEST_F(InitTest, NoSensors) {
  ASSERT_OK(init({{"VOLTAGE", "none"}, {"TEMPERATURE", "none"}}));
  float value = 0;
  EXPECT_CODE(VEDA_ERROR_NO_SENSOR_FILE, veda().DeviceGetVoltage(&value, 0));
  EXPECT_CODE(VEDA_ERROR_NO_SENSOR_FILE, veda().DeviceGetPower(&value, 0));
  EXPECT_CODE(VEDA_ERROR_NO_SENSOR_FILE, veda().DeviceGetTemp(&value, 0, 0));
  EXPECT_OK(veda().DeviceGetCurrent(&value, 0));
}

}  // namespace
}  // namespace emulated::testing
