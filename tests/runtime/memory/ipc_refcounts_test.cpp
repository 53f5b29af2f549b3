// tests/runtime/memory/ipc_refcounts_test.cpp: rows stay while messages or processes need them, and
// no longer.
#include "runtime/memory/ipc_refcounts.h"

#include <gtest/gtest.h>

#include "tests/drivers/check/other_process.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using check::OtherProcess;
using fake::error_of;
using fake::has;

TEST(LedgerTest, ARowStaysOpenWhileAMessageIsUnread) {
  IpcRefcounts ledger;
  ledger.open(3, 9);
  ledger.add_message(3);
  ledger.add_message(3);
  EXPECT_FALSE(ledger.close(3));
  EXPECT_FALSE(ledger.take_message(3, 8));
  EXPECT_TRUE(ledger.take_message(3, 9));
  EXPECT_FALSE(ledger.close(3));
  EXPECT_TRUE(ledger.take_message(3, 9));
  EXPECT_TRUE(ledger.close(3));
  EXPECT_FALSE(ledger.take_message(3, 9));
  EXPECT_FALSE(ledger.take_message(IpcRefcounts::kRows, 9));
}

TEST(LedgerTest, AProcessHoldsARowUntilItDies) {
  IpcRefcounts ledger;
  ledger.open(1, 5);
  ledger.open(2, 6);
  ledger.add_message(1);
  OtherProcess holder([&](OtherProcess& owner) {
    IpcRefcounts seen(ledger.place());
    owner.send(seen.hold(1, 5));
    owner.send(seen.hold(2, 7));
    owner.stop();
  });
  EXPECT_TRUE(holder.receive<bool>());
  EXPECT_FALSE(holder.receive<bool>());
  EXPECT_FALSE(ledger.close(1));
  EXPECT_TRUE(ledger.close(2));
  holder.kill();
  EXPECT_TRUE(ledger.close(1));
}

TEST(LedgerTest, AHolderLetsGoAndMaySendOnBefore) {
  IpcRefcounts ledger;
  ledger.open(1, 5);
  ledger.open(2, 6);
  ledger.add_message(1);
  ledger.add_message(2);
  OtherProcess holder([&](OtherProcess& owner) {
    IpcRefcounts seen(ledger.place());
    seen.hold(1, 5);
    seen.hold(2, 6);
    seen.add_message(2);
    seen.let_go(1);
    seen.let_go(2);
    owner.go();
    owner.stop();
  });
  holder.stop();
  EXPECT_TRUE(ledger.close(1));
  EXPECT_FALSE(ledger.close(2));
  EXPECT_TRUE(ledger.take_message(2, 6));
  EXPECT_TRUE(ledger.close(2));
  holder.go();
}

TEST(LedgerTest, AnOwnerThatHasEndedIsNamed) {
  IpcRefcounts::Place place;
  {
    OtherProcess owner([](OtherProcess& reader) {
      IpcRefcounts ledger;
      reader.send(ledger.place());
      reader.stop();
    });
    place = owner.receive<IpcRefcounts::Place>();
    EXPECT_EQ(IpcRefcounts(place).place(), place);
    IpcRefcounts::Place reused = place;
    ++reused.identity;
    EXPECT_TRUE(has(error_of([&] { IpcRefcounts other(reused); }), "has ended"));
    owner.go();
  }
  graft_status status = GRAFT_OK;
  const std::string text = error_of([&] { IpcRefcounts other(place); }, &status);
  EXPECT_TRUE(has(text, "Process " + std::to_string(place.process) + " has ended"));
  EXPECT_EQ(status, GRAFT_NOT_FOUND);
}

}  // namespace
}  // namespace graft
