// tests/drivers/check/identity_cases.cpp: devices say who they are, and how they are linked.
#include <algorithm>
#include <cstring>
#include <string>

#include "check/cases.h"

namespace {

using graft::check::Session;

// With a mark behind the struct that no driver may touch.
struct Room {
  graft_device_identity facts;
  unsigned char beyond[64];
};

Room read(Session& session, uint32_t struct_size) {
  Room room;
  std::memset(&room, 0, sizeof room);
  std::memset(room.beyond, 0xa5, sizeof room.beyond);
  room.facts.struct_size = struct_size;
  session.expect(session.table.device_identity(0, &room.facts), GRAFT_OK, "device_identity");
  for (const unsigned char one : room.beyond) {
    session.require(one == 0xa5, "device_identity wrote behind the struct");
  }
  return room;
}

template <size_t size>
void require_text(Session& session, const char (&text)[size], const char* name) {
  session.require(std::find(text, text + size, '\0') != text + size,
                  std::string(name) + " does not end in a zero byte");
}

}  // namespace

DRIVER_CASE(identity, "identity: it stays the same, and its text ends", "device_identity",
            kLoaded) {
  const Room first = read(session, sizeof(graft_device_identity));
  const graft_device_identity& facts = first.facts;
  require_text(session, facts.driver_version, "driver_version");
  require_text(session, facts.firmware_version, "firmware_version");
  session.require((facts.known & ~(GRAFT_IDENTITY_UUID | GRAFT_IDENTITY_PCI)) == 0,
                  "known has bits that are no GRAFT_IDENTITY_ bit");
  const bool named = std::any_of(facts.uuid, facts.uuid + sizeof facts.uuid,
                                 [](uint8_t byte) { return byte != 0; });
  session.require(named == ((facts.known & GRAFT_IDENTITY_UUID) != 0),
                  named ? "uuid is set, but known lacks GRAFT_IDENTITY_UUID"
                        : "known has GRAFT_IDENTITY_UUID, but uuid is 0");
  const Room again = read(session, sizeof(graft_device_identity));
  session.require(std::memcmp(&first, &again, sizeof first) == 0,
                  "device_identity gives something else at another call");
}

DRIVER_CASE(identity_size, "identity: it keeps to struct_size, and to the devices there are",
            "device_identity", kLoaded) {
  const Room whole = read(session, sizeof(graft_device_identity));
  const auto size = uint32_t(offsetof(graft_device_identity, driver_version));
  const Room part = read(session, size);
  session.require(part.facts.driver_version[0] == '\0' && part.facts.firmware_version[0] == '\0',
                  "device_identity wrote beyond struct_size");
  session.require(std::memcmp(part.facts.uuid, whole.facts.uuid, sizeof whole.facts.uuid) == 0,
                  "a smaller struct_size changes the uuid");
  uint32_t count = 0;
  session.expect(session.table.device_count(&count), GRAFT_OK, "device_count");
  graft_device_identity none = {};
  none.struct_size = sizeof none;
  session.expect(session.table.device_identity(count, &none), GRAFT_NOT_FOUND,
                 "device_identity past the last device");
}

DRIVER_CASE(links, "links: their kinds are known, and the same in both directions", "device_link",
            kLoaded) {
  uint32_t count = 0;
  session.expect(session.table.device_count(&count), GRAFT_OK, "device_count");
  const auto link = [&](uint32_t from, uint32_t to) {
    graft_device_link found = {};
    found.struct_size = sizeof found;
    session.expect(session.table.device_link(from, to, &found), GRAFT_OK, "device_link");
    return found;
  };
  for (uint32_t from = 0; from < count; ++from) {
    for (uint32_t to = 0; to < count; ++to) {
      const graft_device_link there = link(from, to), back = link(to, from);
      session.require(there.kind <= GRAFT_LINK_SHARED, "kind is no graft_link_kind");
      session.require(there.kind == back.kind, "the way back is of another kind");
      session.require(
          there.kind == GRAFT_LINK_HOST || session.table.peer_copy != nullptr || from == to,
          "a link without the host, but no peer_copy");
    }
  }
  graft_device_link none = {};
  none.struct_size = sizeof none;
  session.expect(session.table.device_link(0, count, &none), GRAFT_NOT_FOUND,
                 "device_link to a device that does not exist");
}
