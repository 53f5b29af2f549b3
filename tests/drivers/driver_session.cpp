// tests/drivers/driver_session.cpp: a driver's library, loaded through its table, and one of its
// devices.
#include "tests/drivers/driver_session.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/drivers/base_driver.h"

namespace graft::driver_test {

graft_driver_table loaded(const char* path) {
  graft_driver_table table = {};
  if (load_base(path, &table) != GRAFT_OK) {
    const char* why = dlerror();
    std::fprintf(stderr, "%s: %s\n", path, why != nullptr ? why : "graft_driver_query failed");
    std::abort();
  }
  return table;
}

std::string last_message(const graft_driver_table& driver) {
  char text[16384] = "";
  driver.last_message(text, sizeof text);
  return text;
}

DriverSession::DriverSession(const graft_driver_table& driver, uint32_t ordinal) : driver_(driver) {
  EXPECT_EQ(driver.device_open(ordinal, &device), GRAFT_OK) << last_message(driver);
  if (device == nullptr) {
    std::fflush(stdout);
    std::_Exit(1);
  }
  stream = new_stream();
}

DriverSession::~DriverSession() {
  for (graft_event each : events_) driver_.event_destroy(each);
  for (graft_stream each : streams_) driver_.stream_destroy(each);
  for (graft_program each : programs_) driver_.program_unload(each);
  for (graft_address each : allocations_) driver_.memory_free(device, each);
  driver_.device_close(device);
}

graft_address DriverSession::allocate(uint64_t bytes) {
  graft_address result = 0;
  EXPECT_EQ(driver_.memory_allocate(device, bytes, &result), GRAFT_OK) << last_message(driver_);
  if (result != 0) allocations_.push_back(result);
  return result;
}

graft_stream DriverSession::new_stream() {
  graft_stream result = nullptr;
  EXPECT_EQ(driver_.stream_create(device, 0, &result), GRAFT_OK) << last_message(driver_);
  streams_.push_back(result);
  return result;
}

graft_event DriverSession::new_event(bool timed) {
  graft_event result = nullptr;
  EXPECT_EQ(driver_.event_create(device, timed, &result), GRAFT_OK) << last_message(driver_);
  events_.push_back(result);
  return result;
}

graft_status DriverSession::compile(const std::string& source, std::string* out_blob) const {
  out_blob->clear();
  graft_sink sink = {out_blob, [](void* context, const void* data, size_t bytes) {
                       static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                                  bytes);
                     }};
  return driver_.program_compile(device, source.data(), source.size(), "", sink);
}

graft_kernel DriverSession::kernel_of(const std::string& source, const char* name) {
  std::string blob;
  EXPECT_EQ(compile(source, &blob), GRAFT_OK) << last_message(driver_);
  graft_program program = nullptr;
  EXPECT_EQ(driver_.program_load(device, blob.data(), blob.size(), &program), GRAFT_OK)
      << last_message(driver_);
  if (program == nullptr) return nullptr;
  programs_.push_back(program);
  graft_kernel result = nullptr;
  EXPECT_EQ(driver_.kernel_find(device, program, name, &result), GRAFT_OK) << last_message(driver_);
  return result;
}

graft_status DriverSession::launch_groups(graft_kernel kernel, uint64_t grid, uint32_t group,
                                          const std::vector<graft_argument>& arguments,
                                          uint32_t tag) {
  const graft_launch launch = {
      sizeof launch,   tag, {grid, 1, 1}, {group, 1, 1}, uint32_t(arguments.size()),
      arguments.data()};
  return driver_.kernel_launch(stream, kernel, &launch);
}

graft_status DriverSession::upload(graft_address to, const void* from, uint64_t bytes,
                                   uint32_t tag) {
  return driver_.copy(stream, to, reinterpret_cast<uint64_t>(from), bytes, GRAFT_HOST_TO_DEVICE,
                      tag);
}

graft_status DriverSession::download(void* to, graft_address from, uint64_t bytes) {
  const graft_status status =
      driver_.copy(stream, reinterpret_cast<uint64_t>(to), from, bytes, GRAFT_DEVICE_TO_HOST, 0);
  return status != GRAFT_OK ? status : driver_.stream_synchronize(stream);
}

graft_address DriverSession::put(const std::vector<int>& values) {
  const graft_address at = allocate(values.size() * sizeof(int));
  EXPECT_EQ(upload(at, values.data(), values.size() * sizeof(int)), GRAFT_OK)
      << last_message(driver_);
  EXPECT_EQ(driver_.stream_synchronize(stream), GRAFT_OK) << last_message(driver_);
  return at;
}

std::vector<int> DriverSession::get(graft_address address, uint64_t count) {
  std::vector<int> values(count, -1);
  EXPECT_EQ(download(values.data(), address, count * sizeof(int)), GRAFT_OK)
      << last_message(driver_);
  return values;
}

graft_argument address(graft_address value, uint64_t bytes) {
  return {GRAFT_ARGUMENT_ADDRESS, 0, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE, 0, value, bytes};
}

graft_argument int32(int value) {
  return {GRAFT_ARGUMENT_SCALAR, GRAFT_INT32, 0, 0, uint32_t(value), 4};
}

graft_argument int64(uint64_t value) {
  return {GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, value, 8};
}

}  // namespace graft::driver_test
