// tests/runtime/driver/variant_driver.cpp: a driver that misbehaves as the name of its file says.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "graft/driver.h"

// Tests copy the library to "<variant>.so" or "<variant>-<name>.so"; name is the driver's.
namespace {

void here() {}

std::string stem() {
  Dl_info info{};
  ::dladdr(reinterpret_cast<void*>(&here), &info);
  return std::filesystem::path(info.dli_fname).stem().string();
}

bool is(const char* variant) {
  const std::string name = stem();
  return name.substr(0, name.find('-')) == variant;
}

const char* driver_name() {
  static const std::string name = [] {
    const std::string whole = stem();
    const size_t dash = whole.find('-');
    return dash == std::string::npos ? std::string("variant") : whole.substr(dash + 1);
  }();
  return name.c_str();
}

graft_status device_count(uint32_t* out_count) {
  if (is("throws_in_count")) throw std::runtime_error("count went wrong");
  if (is("fails_in_count")) return GRAFT_INTERNAL;
  if (is("silent_count")) return GRAFT_OK;
  *out_count = is("rubbish_count") ? 4000000000u : is("no_devices") ? 0 : 2;
  return GRAFT_OK;
}

graft_status device_properties(uint32_t ordinal, graft_device_properties* properties) {
  if (is("throws_in_properties")) throw 5;
  if (is("second_fails") && ordinal == 1) return GRAFT_IO;
  properties->compute_units = properties->max_group_size = 1;
  properties->memory_bytes = is("no_memory") ? 0 : 1 << 20;
  properties->allocation_alignment = is("odd_alignment") ? 24 : 64;
  properties->features = is("hardware") ? 0 : GRAFT_FEATURE_SIMULATED;
  std::memset(properties->name, 'x', sizeof(properties->name));
  return GRAFT_OK;
}

graft_status device_open(uint32_t, graft_device* out_device) {
  static char device;
  if (is("throws_in_open")) throw std::runtime_error("open went wrong");
  if (is("fails_in_open")) return GRAFT_IO;
  *out_device = is("opens_nothing") ? nullptr : reinterpret_cast<graft_device>(&device);
  return GRAFT_OK;
}

graft_status stream_create(graft_device, int32_t, graft_stream* out) {
  static char stream;
  return *out = reinterpret_cast<graft_stream>(&stream), GRAFT_OK;
}

graft_driver_table make_table() {
  graft_driver_table t{};
  t.abi_major = GRAFT_ABI_MAJOR;
  t.abi_minor = GRAFT_ABI_MINOR;
  t.slot_count = GRAFT_SLOT_COUNT;
  t.name = driver_name();
  t.device_count = &device_count;
  t.device_properties = &device_properties;
  t.device_open = &device_open;
  t.device_close = [](graft_device) { return GRAFT_OK; };
  t.memory_allocate = [](graft_device, uint64_t, graft_address*) { return GRAFT_OUT_OF_MEMORY; };
  t.memory_free = [](graft_device, graft_address) { return GRAFT_OK; };
  t.stream_create = &stream_create;
  t.stream_destroy = [](graft_stream) { return GRAFT_OK; };
  t.stream_synchronize = [](graft_stream) { return GRAFT_OK; };
  t.copy = [](graft_stream, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t) { return GRAFT_OK; };
  t.fill = [](graft_stream, graft_address, uint64_t, const void*, uint32_t, uint32_t) {
    return GRAFT_OK;
  };
  t.event_create = [](graft_device, uint32_t, graft_event*) { return GRAFT_UNSUPPORTED; };
  t.event_destroy = [](graft_event) { return GRAFT_OK; };
  t.event_record = [](graft_event, graft_stream) { return GRAFT_OK; };
  t.event_query = [](graft_event) { return GRAFT_OK; };
  return t;
}

}  // namespace

graft_status graft_driver_query(graft_driver_table* table) {
  if (is("throws_in_query")) throw std::runtime_error("query went wrong");
  if (is("fails_in_query")) return GRAFT_IO;
  if (is("refuses_major")) return GRAFT_VERSION_MISMATCH;
  const graft_driver_table mine = make_table();
  const graft_status status = graft_driver_fill(table, &mine);
  if (is("other_major")) table->abi_major = 7;
  if (is("newer_minor")) table->abi_minor = 99;
  if (is("truncated")) table->slot_count = 5;
  if (is("too_many_slots")) table->slot_count = 1000;
  if (is("writes_too_far")) reinterpret_cast<void**>(table + 1)[0] = table;
  if (is("misses_copy")) table->copy = nullptr;
  if (is("pins_only")) {
    table->host_allocate = [](graft_device, uint64_t, void**) { return GRAFT_UNSUPPORTED; };
  }
  if (is("nameless")) table->name = nullptr;
  if (is("bad_name")) table->name = "a,b:c";
  return status;
}
