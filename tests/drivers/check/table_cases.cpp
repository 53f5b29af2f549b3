// tests/drivers/check/table_cases.cpp: the table, the devices and their properties.
#include <cstring>
#include <string>
#include <vector>

#include "check/cases.h"

DRIVER_CASE(table_is_complete, "table: every required slot is there", "", kLoaded) {
  const std::string missing =
      graft::missing_slots(graft::table_facts<graft_driver_table>.slots,
                           &session.table.device_count, session.table.slot_count);
  session.require(missing.empty(), "the table lacks required slots: " + missing);
  session.require(session.table.name != nullptr && session.table.name[0] != '\0',
                  "the driver has no name");
}

DRIVER_CASE(older_graft, "table: an older Graft gets the common prefix", "", kLoaded) {
  auto fill = [&](uint32_t slots) {
    graft_driver_table table;
    std::memset(&table, 0xAB, sizeof table);
    table.abi_major = GRAFT_ABI_MAJOR;
    table.abi_minor = GRAFT_ABI_MINOR;
    table.slot_count = slots;
    session.expect(session.query(&table), GRAFT_OK, "graft_driver_query");
    session.require(table.slot_count <= slots, "slot_count is larger than what was asked for");
    std::vector<unsigned char> bytes(sizeof table);
    std::memcpy(bytes.data(), &table, sizeof table);
    for (size_t i = GRAFT_TABLE_PRELUDE_BYTES + 8 * slots; i < bytes.size(); ++i) {
      session.require(bytes[i] == 0xAB, "a slot beyond slot_count was written");
    }
  };
  fill(GRAFT_SLOT_COUNT - 2);
  fill(15);
}

DRIVER_CASE(other_major, "table: another major is refused", "", kLoaded) {
  graft_driver_table table{};
  table.abi_major = GRAFT_ABI_MAJOR + 1;
  table.abi_minor = GRAFT_ABI_MINOR;
  table.slot_count = GRAFT_SLOT_COUNT;
  session.expect(session.query(&table), GRAFT_VERSION_MISMATCH, "graft_driver_query");
}

DRIVER_CASE(has_a_device, "devices: at least one is there to be checked", "", kLoaded) {
  uint32_t count = 0;
  session.expect(session.table.device_count(&count), GRAFT_OK, "device_count");
  session.require(count > 0, "device_count is 0 on this machine: nothing can be checked");
}

DRIVER_CASE(past_the_last, "devices: an ordinal past the last one is refused", "", kLoaded) {
  uint32_t count = 0;
  session.expect(session.table.device_count(&count), GRAFT_OK, "device_count");
  graft_device_properties properties{};
  properties.struct_size = sizeof properties;
  session.expect(session.table.device_properties(count, &properties), GRAFT_NOT_FOUND,
                 "device_properties past the last device");
  graft_device device = nullptr;
  session.require(session.table.device_open(count + 7, &device) != GRAFT_OK,
                  "device_open past the last device succeeded");
  session.require(device == nullptr, "a failed device_open wrote its out_ parameter");
}

DRIVER_CASE(small_struct, "devices: properties keep to struct_size", "", kLoaded) {
  graft_device_properties properties;
  std::memset(&properties, 0xAB, sizeof properties);
  properties.struct_size = offsetof(graft_device_properties, name);
  session.expect(session.table.device_properties(0, &properties), GRAFT_OK, "device_properties");
  for (size_t i = 0; i < sizeof properties.name; ++i) {
    session.require(static_cast<unsigned char>(properties.name[i]) == 0xAB,
                    "device_properties wrote beyond struct_size");
  }
}

DRIVER_CASE(sound_properties, "devices: properties make sense", "", kOpen) {
  const graft_device_properties& p = session.properties;
  session.require(p.compute_units > 0 && p.max_group_size > 0 && p.sub_group_size > 0,
                  "compute_units, max_group_size and sub_group_size must be at least 1");
  session.require(p.memory_bytes > 0, "memory_bytes is 0");
  session.require(
      p.allocation_alignment > 0 && (p.allocation_alignment & (p.allocation_alignment - 1)) == 0,
      "allocation_alignment is no power of two");
  session.require(p.priority_highest <= 0 && p.priority_lowest >= 0,
                  "priority 0 must lie between priority_highest and priority_lowest");
  session.require(p.name[0] != '\0' && std::memchr(p.name, 0, sizeof p.name) != nullptr,
                  "the device's name is empty or does not end");
  session.require(std::memchr(p.dialect, 0, sizeof p.dialect) != nullptr, "dialect does not end");
  session.require(session.table.program_compile == nullptr || p.dialect[0] != '\0',
                  "program_compile is there but properties.dialect is empty");
}

DRIVER_CASE(pairs, "table: slots that need one another come together", "", kLoaded) {
  const graft_driver_table& t = session.table;
  session.require((t.host_allocate == nullptr) == (t.host_free == nullptr),
                  "host_allocate and host_free must be given together");
  session.require((t.kernel_find == nullptr) == (t.kernel_launch == nullptr),
                  "kernel_find and kernel_launch must be given together");
  session.require((t.program_load == nullptr) == (t.program_unload == nullptr),
                  "program_load and program_unload must be given together");
  session.require(t.program_compile == nullptr || t.program_load != nullptr,
                  "program_compile without program_load is of no use");
}

DRIVER_CASE(unknown_extension, "table: an unknown extension is not found", "extension", kLoaded) {
  const void* table = nullptr;
  session.expect(session.table.extension("graft.no-such-thing", 1, &table), GRAFT_NOT_FOUND,
                 "extension(\"graft.no-such-thing\")");
  session.require(table == nullptr, "a failed extension wrote its out_ parameter");
}

DRIVER_CASE(close_again, "devices: close after everything is given back", "", kOpen) {
  const graft_driver_table& t = session.table;
  graft_stream stream = session.stream();
  graft_event event = session.event();
  graft_address memory = session.allocate(4096);
  session.expect(t.event_destroy(event), GRAFT_OK, "event_destroy");
  session.expect(t.stream_destroy(stream), GRAFT_OK, "stream_destroy");
  session.expect(t.memory_free(session.device, memory), GRAFT_OK, "memory_free");
  session.expect(t.device_close(session.device), GRAFT_OK, "device_close");
}
