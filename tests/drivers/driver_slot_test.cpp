// tests/drivers/driver_slot_test.cpp: the tables that graft/driver_slot.h makes of a driver's
// functions.
#include "graft/driver_slot.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

namespace graft::slot_test {
namespace {

struct DeviceSlots {
  static graft_status device_count(uint32_t*) { return GRAFT_OK; }
  static graft_status device_properties(uint32_t, graft_device_properties*) { return GRAFT_IO; }
  static graft_status device_open(uint32_t, graft_device*) { throw std::bad_alloc(); }
  static graft_status device_close(graft_device) { throw std::runtime_error("it is jammed"); }
  static graft_status memory_allocate(graft_device, uint64_t, graft_address*) { return GRAFT_OK; }
  static graft_status memory_free(graft_device, graft_address) { return GRAFT_OK; }
};

struct Slots : DeviceSlots {
  static graft_status stream_create(graft_device, int32_t, graft_stream*) { return GRAFT_OK; }
  static graft_status stream_destroy(graft_stream) { return GRAFT_OK; }
  static graft_status stream_synchronize(graft_stream) { return GRAFT_OK; }
  static graft_status copy(graft_stream, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t) {
    return GRAFT_OK;
  }
  static graft_status fill(graft_stream, graft_address, uint64_t, const void*, uint32_t, uint32_t) {
    return GRAFT_OK;
  }
  static graft_status event_create(graft_device, uint32_t, graft_event*) { return GRAFT_OK; }
  static graft_status event_destroy(graft_event) { return GRAFT_OK; }
  static graft_status event_record(graft_event, graft_stream) { return GRAFT_OK; }
  static graft_status event_query(graft_event) { return GRAFT_OK; }
  static graft_status stream_query(graft_stream) { return GRAFT_BUSY; }
  // Of extensions.
  static graft_status trace_start(graft_device, graft_emit_trace, void*) { return GRAFT_OK; }
  static graft_status trace_stop(graft_device) { throw std::runtime_error("no trace"); }
};

struct Talking : Slots {
  static graft_status last_message(char* out_text, size_t capacity) {
    copy_text("words of its own", out_text, capacity);
    return GRAFT_OK;
  }
};

std::string words_of(const graft_driver_table& table) {
  char text[64] = "";
  EXPECT_EQ(table.last_message(text, sizeof text), GRAFT_OK);
  return text;
}

constexpr graft_driver_table kTable = table_of<Slots>("test");
constexpr auto kProfiler = extension_of<graft_profiler_table, Slots>();

TEST(TableOf, HasTheSlotsOfTheStructAndItsBases) {
  EXPECT_EQ(kTable.abi_major, GRAFT_ABI_MAJOR);
  EXPECT_EQ(kTable.abi_minor, GRAFT_ABI_MINOR);
  EXPECT_EQ(kTable.slot_count, GRAFT_SLOT_COUNT);
  EXPECT_STREQ(kTable.name, "test");
  const std::string given = "stream_query last_message ";
#define GRAFT_LOOK(presence, name, parameters)                                                \
  EXPECT_EQ(kTable.name != nullptr,                                                           \
            GRAFT_IS_##presence || given.find(std::string(#name) + " ") != std::string::npos) \
      << #name;
  GRAFT_DRIVER_SLOTS(GRAFT_LOOK)
#undef GRAFT_LOOK
  EXPECT_EQ(kTable.device_properties(0, nullptr), GRAFT_IO);
  EXPECT_EQ(kTable.stream_query(nullptr), GRAFT_BUSY);
}

TEST(TableOf, GuardsTheSlots) {
  EXPECT_EQ(kTable.device_open(0, nullptr), GRAFT_OUT_OF_MEMORY);
  EXPECT_EQ(kTable.device_close(nullptr), GRAFT_INTERNAL);
  EXPECT_EQ(words_of(kTable), "it is jammed");
  EXPECT_EQ(kProfiler.trace_stop(nullptr), GRAFT_INTERNAL);
  EXPECT_EQ(words_of(kTable), "no trace");
}

TEST(TableOf, PrefersTheDriversLastMessage) {
  EXPECT_EQ(words_of(table_of<Talking>("talking")), "words of its own");
}

TEST(ExtensionOf, CountsTheSlotsOfTheHeader) {
  EXPECT_EQ(kProfiler.slot_count, 2u);
  EXPECT_EQ(kProfiler.unused, 0u);
  EXPECT_EQ(fault_of(table_facts<graft_profiler_table>, &kProfiler), "");
}

TEST(FindExtension, ComparesNameAndVersion) {
  static constexpr graft_blas_table kBlas = {};
  const void* found = nullptr;
  EXPECT_EQ(find_extension("graft.profiler", 1, &found, kBlas, kProfiler), GRAFT_OK);
  EXPECT_EQ(found, &kProfiler);
  EXPECT_EQ(find_extension("graft.blas", 1, &found, kBlas, kProfiler), GRAFT_OK);
  EXPECT_EQ(found, &kBlas);
  EXPECT_EQ(find_extension("graft.blas", 2, &found, kBlas, kProfiler), GRAFT_NOT_FOUND);
  EXPECT_EQ(last_text(), "the driver has no extension graft.blas, version 2");
  EXPECT_EQ(find_extension("graft.dnn", 1, &found, kBlas, kProfiler), GRAFT_NOT_FOUND);
  EXPECT_EQ(found, &kBlas);
  EXPECT_EQ(find_extension(nullptr, 1, &found, kBlas), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(find_extension("graft.blas", 1, nullptr, kBlas), GRAFT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace graft::slot_test
