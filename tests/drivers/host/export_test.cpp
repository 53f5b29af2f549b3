// tests/drivers/host/export_test.cpp: device memory that another process imports by a handle.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "driver.h"
#include "tests/drivers/check/other_process.h"

namespace graft::host_test {
namespace {

using check::OtherProcess;

constexpr char kFresh[] = "GRAFT_HOST_THREADS=1";
constexpr uint64_t kOffset = 4096 * 3 + 8;

struct Parcel {
  uint8_t handle[GRAFT_MEMORY_HANDLE_BYTES];
  uint64_t offset;
};

Parcel exported(Session& s, graft_address address) {
  Parcel parcel = {};
  graft_address begin = 0;
  EXPECT_EQ(driver().memory_export(s.device, address, parcel.handle, &begin), GRAFT_OK)
      << last_message();
  parcel.offset = address - begin;
  return parcel;
}

graft_address imported(Session& s, const Parcel& parcel) {
  graft_address address = 0;
  EXPECT_EQ(driver().memory_import(s.device, parcel.handle, &address), GRAFT_OK) << last_message();
  return address;
}

uint64_t read_number(Session& s, graft_address address) {
  uint64_t value = 0;
  EXPECT_EQ(s.download(&value, address, 8), GRAFT_OK) << last_message();
  return value;
}

void write_number(Session& s, graft_address address, uint64_t value) {
  EXPECT_EQ(s.upload(address, &value, 8), GRAFT_OK) << last_message();
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
}

// Writes 42, exports and ends when it is told to.
void lend(OtherProcess& parent) {
  Session s;
  const graft_address address = s.allocate(1 << 16);
  write_number(s, address + kOffset, 42);
  parent.send(exported(s, address + kOffset));
  parent.receive<char>();
  _exit(0);  // without giving anything back
}

TEST(HostExport, AnotherProcessSeesAndChangesTheBytes) {
  if (reran({kFresh, "GRAFT_HOST_PROTECT=0", "GRAFT_HOST_MODE=async"})) return;
  OtherProcess borrower([](OtherProcess& parent) {
    Session s;
    const Parcel parcel = parent.receive<Parcel>();
    const graft_address address = imported(s, parcel) + parcel.offset;
    parent.send(read_number(s, address));
    write_number(s, address, 43);
    parent.send(char(1));
    parent.receive<char>();
  });
  Session s;
  const graft_address address = s.allocate(5 << 20);
  write_number(s, address + kOffset, 42);
  borrower.send(exported(s, address + kOffset));
  EXPECT_EQ(borrower.receive<uint64_t>(), 42u);
  borrower.receive<char>();
  EXPECT_EQ(read_number(s, address + kOffset), 43u);
  EXPECT_EQ(read_number(s, address), 0u);
  borrower.send(char(1));
}

TEST(HostExport, StaysWhenItsOwnerEnds) {
  if (reran({kFresh})) return;
  OtherProcess owner(lend);
  Session s;
  const Parcel parcel = owner.receive<Parcel>();
  const graft_address begin = imported(s, parcel);
  owner.send(char(1));
  owner.wait();
  EXPECT_EQ(read_number(s, begin + parcel.offset), 42u);
  write_number(s, begin, 7);
  EXPECT_EQ(read_number(s, begin), 7u);
  EXPECT_EQ(driver().memory_release(s.device, begin), GRAFT_OK) << last_message();
}

TEST(HostExport, OfAnOwnerThatEndedIsRefused) {
  if (reran({kFresh})) return;
  OtherProcess owner(lend);
  Session s;
  const Parcel parcel = owner.receive<Parcel>();
  owner.send(char(1));
  owner.wait();
  graft_address address = 0;
  EXPECT_EQ(driver().memory_import(s.device, parcel.handle, &address), GRAFT_NOT_FOUND);
  EXPECT_NE(last_message().find("has ended"), std::string::npos) << last_message();
  EXPECT_EQ(address, 0u);
}

TEST(HostExport, OwnerGoesOnWhenABorrowerIsKilled) {
  if (reran({kFresh})) return;
  OtherProcess borrower([](OtherProcess& parent) {
    Session s;
    imported(s, parent.receive<Parcel>());
    parent.send(char(1));
    parent.receive<char>();
  });
  Session s;
  graft_address address = 0;
  ASSERT_EQ(driver().memory_allocate(s.device, 1 << 16, &address), GRAFT_OK);
  write_number(s, address, 5);
  borrower.send(exported(s, address));
  borrower.receive<char>();
  borrower.kill();
  EXPECT_EQ(read_number(s, address), 5u);
  ASSERT_EQ(driver().memory_free(s.device, address), GRAFT_OK);
  uint64_t free_bytes = 0, total = 0;
  ASSERT_EQ(driver().memory_info(s.device, &free_bytes, &total), GRAFT_OK);
  EXPECT_EQ(free_bytes, total);
}

TEST(HostExport, ImportIsMemoryOfItsOwnKind) {
  Session s;
  constexpr uint64_t kBytes = 5 << 20;
  const graft_address own = s.allocate(kBytes);
  uint64_t before = 0, after = 0, total = 0;
  ASSERT_EQ(driver().memory_info(s.device, &before, &total), GRAFT_OK);
  const Parcel parcel = exported(s, own + kOffset);
  EXPECT_EQ(parcel.offset, kOffset);
  const graft_address address = imported(s, parcel);
  EXPECT_NE(address, own);
  EXPECT_EQ(address % 4096, 0u);
  ASSERT_EQ(driver().memory_info(s.device, &after, &total), GRAFT_OK);
  EXPECT_EQ(after, before);
  const uint32_t pattern = 9;
  EXPECT_EQ(driver().fill(s.stream, address, kBytes, &pattern, 4, 0), GRAFT_OK);
  EXPECT_EQ(read_number(s, own + kBytes - 8), 0x900000009u);
  EXPECT_EQ(driver().fill(s.stream, address, kBytes + 4, &pattern, 4, 0), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().memory_free(s.device, address), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().memory_release(s.device, own), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().memory_release(s.device, address), GRAFT_OK) << last_message();
  EXPECT_EQ(driver().memory_release(s.device, address), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().fill(s.stream, address, 4, &pattern, 4, 0), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(read_number(s, own), 0x900000009u);
}

TEST(HostExport, AddressesOfAnImportAreUsedAgainForFreshMemory) {
  Session s;
  const graft_address own = s.allocate(1 << 16);
  write_number(s, own, 6);
  for (int i = 0; i < 50; ++i) {
    const graft_address address = imported(s, exported(s, own));
    ASSERT_EQ(driver().memory_release(s.device, address), GRAFT_OK);
    const graft_address fresh = s.allocate(1 << 16);
    EXPECT_EQ(read_number(s, fresh), 0u);
    write_number(s, fresh, 8);
  }
  EXPECT_EQ(read_number(s, own), 6u);
}

TEST(HostExport, RefusesWhatIsNoHandleOfItsDevice) {
  if (reran({"GRAFT_HOST_DEVICES=2"})) return;
  Session s, other(1);
  const graft_address own = s.allocate(4096);
  uint8_t nothing[GRAFT_MEMORY_HANDLE_BYTES] = {};
  graft_address address = 0;
  EXPECT_EQ(driver().memory_import(s.device, nothing, &address), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().memory_export(other.device, own, nothing, &address), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().memory_export(s.device, own + 4096, nothing, &address),
            GRAFT_INVALID_ARGUMENT);
  const Parcel parcel = exported(s, own);
  EXPECT_EQ(driver().memory_import(other.device, parcel.handle, &address), GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("host device 0"), std::string::npos) << last_message();
}

#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer reports the fault in its own words
TEST(HostExport, ReadByTheHostDiesWithOneLine) {
  if (is_rerun()) {
    rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    Session s;
    volatile char* pointer =
        reinterpret_cast<volatile char*>(imported(s, exported(s, s.allocate(4096))));
    *pointer = char(*pointer + 1);
    return;
  }
  std::string output;
  EXPECT_NE(run_in_environment("HostExport.ReadByTheHostDies*", kRerun, &output), 0);
  EXPECT_NE(output.find("graft: host code read device memory at 0x"), std::string::npos) << output;
}
#endif

}  // namespace
}  // namespace graft::host_test
