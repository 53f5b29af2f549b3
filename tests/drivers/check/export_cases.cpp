// tests/drivers/check/export_cases.cpp: device memory that another process imports by a handle.
#include "check/cases.h"
#include "check/other_process.h"

using graft::check::OtherProcess;
using graft::check::pattern;
using graft::check::Session;

namespace {

constexpr uint64_t kBytes = 300000;
constexpr uint64_t kInside = 4104;  // an export may begin inside its allocation
constexpr uint64_t kUsed = kBytes - kInside;

struct Parcel {
  uint8_t handle[GRAFT_MEMORY_HANDLE_BYTES];
  uint64_t offset;
};

Parcel export_inside(Session& session, graft_address address) {
  Parcel parcel = {};
  graft_address begin = 0;
  session.expect(session.table.memory_export(session.device, address, parcel.handle, &begin),
                 GRAFT_OK, "memory_export");
  session.require(begin != 0 && begin <= address, "memory_export: the begin is past the address");
  parcel.offset = address - begin;
  return parcel;
}

graft_address import_of(Session& session, const Parcel& parcel) {
  graft_address begin = 0;
  session.expect(session.table.memory_import(session.device, parcel.handle, &begin), GRAFT_OK,
                 "memory_import");
  return begin;
}

}  // namespace

DRIVER_CASE(both_ways, "export: another process sees the bytes and changes them",
            "memory_export memory_import memory_release", kLoaded) {
  OtherProcess borrower([&](OtherProcess& lender) {
    session.open();
    graft_stream stream = session.stream();
    const Parcel parcel = lender.receive<Parcel>();
    const graft_address begin = import_of(session, parcel);
    const bool same = session.download(stream, begin + parcel.offset, kUsed) == pattern(kUsed, 6);
    session.upload(stream, begin + parcel.offset, pattern(kUsed, 7));
    session.expect(session.table.memory_release(session.device, begin), GRAFT_OK, "memory_release");
    lender.send(same);
  });
  session.open();
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(kBytes) + kInside;
  session.upload(stream, address, pattern(kUsed, 6));
  borrower.send(export_inside(session, address));
  session.require(borrower.receive<bool>(), "the importing process read other bytes");
  session.require(session.download(stream, address, kUsed) == pattern(kUsed, 7),
                  "what the importing process wrote did not arrive");
  session.require(borrower.wait(), "the importing process failed");
}

DRIVER_CASE(owner_gone, "export: of a process that has ended is refused",
            "memory_export memory_import memory_release", kLoaded) {
  OtherProcess owner([&](OtherProcess& reader) {
    session.open();
    reader.send(export_inside(session, session.allocate(kBytes)));
  });
  const Parcel parcel = owner.receive<Parcel>();
  owner.wait();
  session.open();
  graft_address begin = 0;
  session.expect(session.table.memory_import(session.device, parcel.handle, &begin),
                 GRAFT_NOT_FOUND, "memory_import after the exporter ended");
  session.require(begin == 0, "a failed memory_import wrote its out_ parameter");
}
