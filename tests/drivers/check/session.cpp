// tests/drivers/check/session.cpp: loads a driver and words its failures.
#include "check/session.h"

#include <dlfcn.h>

#include <chrono>
#include <thread>

#include "graft/driver_trace.h"

namespace graft::check {
namespace {

constexpr uint64_t kBigCopyBytes = 64u << 20;

void sleep_in_stream(void* context) {
  std::this_thread::sleep_for(std::chrono::milliseconds(*static_cast<int*>(context)));
}

}  // namespace

const char* status_name(graft_status status) {
  switch (status) {
#define GRAFT_NAME(name, value, text) \
  case GRAFT_##name:                  \
    return "GRAFT_" #name;
    GRAFT_STATUSES(GRAFT_NAME)
#undef GRAFT_NAME
  }
  return "a number that is no graft_status";
}

Session::Session(const std::string& path, const std::string& trace) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Failure(std::string("dlopen: ") + dlerror());
  query = reinterpret_cast<graft_driver_query_function>(dlsym(library, "graft_driver_query"));
  if (query == nullptr) throw Failure("the library exports no graft_driver_query");
  table.abi_major = GRAFT_ABI_MAJOR;
  table.abi_minor = GRAFT_ABI_MINOR;
  table.slot_count = GRAFT_SLOT_COUNT;
  if (trace.empty()) {
    expect(query(&table), GRAFT_OK, "graft_driver_query");
    return;
  }
  char text[512] = "";
  const graft_status status = graft_trace_front(query, trace.c_str(), &table, text, sizeof text);
  expect(status, GRAFT_OK, "graft_driver_query under --trace " + trace + " " + text);
}

void Session::open() {
  properties.struct_size = sizeof properties;
  expect(table.device_properties(0, &properties), GRAFT_OK, "device_properties(0)");
  expect(table.device_open(0, &device), GRAFT_OK, "device_open(0)");
}

std::string Session::last_message() const {
  char text[512] = "";
  if (table.last_message == nullptr) return "";
  return table.last_message(text, sizeof text) == GRAFT_OK && text[0] != '\0'
             ? std::string(" (") + text + ")"
             : "";
}

void Session::expect(graft_status got, graft_status want, const std::string& what) const {
  if (got == want) return;
  throw Failure(what + " returned " + status_name(got) + " instead of " + status_name(want) +
                (got == GRAFT_OK ? "" : last_message()));
}

void Session::require(bool condition, const std::string& text) {
  if (!condition) throw Failure(text);
}

const void* Session::find_extension(const TableFacts& facts) const {
  const void* found = nullptr;
  const graft_status status = table.extension(facts.name, facts.version, &found);
  if (status == GRAFT_NOT_FOUND) throw Omitted(facts.name);
  expect(status, GRAFT_OK, std::string("extension ") + facts.name);
  return found;
}

graft_stream Session::stream() const {
  graft_stream stream = nullptr;
  expect(table.stream_create(device, 0, &stream), GRAFT_OK, "stream_create");
  return stream;
}

graft_event Session::event(bool timed) const {
  graft_event event = nullptr;
  expect(table.event_create(device, timed ? 1 : 0, &event), GRAFT_OK, "event_create");
  return event;
}

graft_address Session::allocate(uint64_t bytes) const {
  graft_address address = 0;
  expect(table.memory_allocate(device, bytes, &address), GRAFT_OK,
         "memory_allocate of " + std::to_string(bytes) + " bytes");
  require(address != 0, "memory_allocate gave address 0");
  return address;
}

void Session::upload(graft_stream stream, graft_address to,
                     const std::vector<uint8_t>& bytes) const {
  expect(table.copy(stream, to, reinterpret_cast<uint64_t>(bytes.data()), bytes.size(),
                    GRAFT_HOST_TO_DEVICE, 0),
         GRAFT_OK, "copy to the device");
  expect(table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
}

std::vector<uint8_t> Session::download(graft_stream stream, graft_address from,
                                       uint64_t count) const {
  std::vector<uint8_t> bytes(count);
  expect(table.copy(stream, reinterpret_cast<uint64_t>(bytes.data()), from, count,
                    GRAFT_DEVICE_TO_HOST, 0),
         GRAFT_OK, "copy to the host");
  expect(table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  return bytes;
}

void Session::delay(graft_stream stream, int milliseconds) const {
  if (table.host_callback != nullptr) {
    auto* context = new int(milliseconds);  // outlives the callback: the process ends first
    expect(table.host_callback(stream, sleep_in_stream, context), GRAFT_OK, "host_callback");
    return;
  }
  static const graft_address from = allocate(kBigCopyBytes);
  static const graft_address to = allocate(kBigCopyBytes);
  for (int i = 0; i < milliseconds / 5 + 1; ++i) {
    expect(table.copy(stream, to, from, kBigCopyBytes, GRAFT_DEVICE_TO_DEVICE, 0), GRAFT_OK,
           "copy within the device");
  }
}

std::vector<uint8_t> pattern(uint64_t count, uint8_t seed) {
  std::vector<uint8_t> bytes(count);
  uint32_t state = 2654435761u * (seed + 1u);
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

}  // namespace graft::check
