// tests/runtime/driver/extension_test.cpp: which tables of extensions Graft takes, and what it
// takes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

#include "graft/driver_table.h"
#include "graft/extensions.h"
#include "runtime/driver/library.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {

// An extension of a newer Graft: its last slot may be missing.
struct GrownTable {
  uint32_t slot_count, unused;
  graft_status (*first)();
  graft_status (*later)();
};
constexpr SlotFacts kGrownSlots[] = {{"first", true}, {"later", false}};
template <>
inline constexpr TableFacts table_facts<GrownTable> = {"graft.grown", 3, kGrownSlots};

namespace {

using fake::error_of;
using fake::has;

graft_status here() { return GRAFT_OK; }

// What the fake driver's slot extension answers.
struct Answer {
  std::string name;
  uint32_t version = 0;
  graft_status status = GRAFT_OK;
  bool throws = false;
  size_t shift = 0;  // bytes from words to the table
  // The table: slot_count and unused, then slots. Room for those of a newer driver.
  alignas(8) std::array<void*, 40> words{};
  int asked = 0;

  void set_count(uint32_t count) { std::memcpy(words.data(), &count, sizeof count); }
  void set_slots(size_t count) {
    set_count(static_cast<uint32_t>(count));
    std::fill_n(words.begin() + 1, count, reinterpret_cast<void*>(&here));
  }
};
Answer answer;

graft_status extension(const char* name, uint32_t version, const void** out) {
  if (answer.name != name || answer.version != version) return GRAFT_NOT_FOUND;
  ++answer.asked;
  if (answer.throws) throw std::runtime_error("the library is broken");
  if (answer.status != GRAFT_OK) return answer.status;
  *out = answer.shift == SIZE_MAX
             ? nullptr
             : reinterpret_cast<const char*>(answer.words.data()) + answer.shift;
  return GRAFT_OK;
}

template <class Table>
class ExtensionTest : public testing::Test {
 protected:
  static constexpr const TableFacts& kFacts = table_facts<Table>;

  ExtensionTest() {
    answer = {};
    answer.name = kFacts.name;
    answer.version = kFacts.version;
    answer.set_slots(kFacts.slots.size());
    fake::table().extension = &extension;
  }

  // Opens the device and asks for the table.
  const Table* take() {
    fake_.open();
    return fake_.driver().template extension<Table>();
  }

  // What Graft says of a table that it refuses; the device works without it.
  std::string refusal() {
    testing::internal::CaptureStderr();
    const Table* table = take();
    const Table* again = fake_.driver().template extension<Table>();
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(table, nullptr);
    EXPECT_EQ(again, nullptr);
    EXPECT_EQ(answer.asked, 1);
    const std::string start = std::string("graft: warning: the driver 'fake' (/nowhere/fake.so) ") +
                              "works without its extension " + kFacts.name + ": ";
    EXPECT_EQ(text.find(start), 0u) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    EXPECT_TRUE(has(fake_.driver().template lack_of<Table>(),
                    "its driver's " + std::string(kFacts.name) + " is refused: "));
    EXPECT_TRUE(has(text, fake_.driver().template lack_of<Table>().substr(
                              std::string("its driver's ").size() + std::strlen(kFacts.name) +
                              std::string(" is refused: ").size())));
    return text;
  }

  fake::Fake fake_;
};

#define GRAFT_TABLE_TYPE(name, version, SLOTS) graft_##name##_table,
using Tables = testing::Types<GRAFT_EXTENSIONS(GRAFT_TABLE_TYPE) GrownTable>;
#undef GRAFT_TABLE_TYPE
TYPED_TEST_SUITE(ExtensionTest, Tables);

TYPED_TEST(ExtensionTest, ACompleteTableIsCopied) {
  const TypeParam* table = this->take();
  ASSERT_NE(table, nullptr);
  EXPECT_NE(static_cast<const void*>(table), answer.words.data());
  EXPECT_EQ(std::memcmp(table, answer.words.data(), sizeof *table), 0);
  answer.words.fill(nullptr);  // the copy does not change with the driver's table
  EXPECT_EQ(this->fake_.driver().template extension<TypeParam>(), table);
  EXPECT_EQ(table->slot_count, this->kFacts.slots.size());
  EXPECT_EQ(answer.asked, 1);
}

TYPED_TEST(ExtensionTest, ANewerDriversTableIsCut) {
  answer.set_slots(this->kFacts.slots.size() + 2);
  const TypeParam* table = this->take();
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->slot_count, this->kFacts.slots.size());
}

TYPED_TEST(ExtensionTest, IsNullWithoutAWordIfTheDriverLacksIt) {
  testing::internal::CaptureStderr();
  answer.status = GRAFT_UNSUPPORTED;
  EXPECT_EQ(this->take(), nullptr);
  this->fake_.close();
  answer.name = "graft.other";
  EXPECT_EQ(this->take(), nullptr);
  EXPECT_EQ(this->fake_.driver().template lack_of<TypeParam>(),
            "its driver lacks " + std::string(this->kFacts.name));
  this->fake_.close();
  answer.name = this->kFacts.name;
  answer.version = this->kFacts.version + 1;
  EXPECT_EQ(this->take(), nullptr);
  this->fake_.close();
  fake::table().extension = nullptr;
  EXPECT_EQ(this->take(), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TYPED_TEST(ExtensionTest, ATruncatedTableIsRefused) {
  answer.set_count(0);
  EXPECT_TRUE(has(this->refusal(), "its table of 0 slots lacks required slots: " +
                                       std::string(this->kFacts.slots[0].name)));
  this->fake_.close();
  answer.asked = 0;
  const size_t last = this->kFacts.slots.size() - 1;
  if (!this->kFacts.slots[last].required) return;
  answer.set_count(static_cast<uint32_t>(last));  // the slot is there, but the table ends before it
  EXPECT_TRUE(has(this->refusal(),
                  "its table of " + std::to_string(last) +
                      " slots lacks required slots: " + this->kFacts.slots[last].name + "."));
}

TYPED_TEST(ExtensionTest, EveryRequiredSlotMustBeThere) {
  for (size_t i = 0; i < this->kFacts.slots.size(); ++i) {
    if (!this->kFacts.slots[i].required) continue;
    answer.set_slots(this->kFacts.slots.size());
    answer.asked = 0;
    answer.words[1 + i] = nullptr;
    EXPECT_TRUE(has(this->refusal(), " slots lacks required slots: " +
                                         std::string(this->kFacts.slots[i].name) + ". Ask"));
    this->fake_.close();
  }
}

TYPED_TEST(ExtensionTest, ForgedTablesAreRefused) {
  for (const uint32_t count : {GRAFT_MAX_EXTENSION_SLOTS + 1, 0xdeadbeefu, UINT32_MAX}) {
    answer.asked = 0;
    answer.set_count(count);
    EXPECT_TRUE(has(this->refusal(), "its table claims " + std::to_string(count) + " slots"));
    this->fake_.close();
  }
  answer.asked = 0;
  answer.set_slots(this->kFacts.slots.size());
  answer.shift = 4;
  EXPECT_TRUE(has(this->refusal(), "the address of its table is not aligned to 8 bytes"));
  this->fake_.close();
  answer.asked = 0;
  answer.shift = SIZE_MAX;
  EXPECT_TRUE(has(this->refusal(), "extension returned OK and no table"));
}

TYPED_TEST(ExtensionTest, AFailureOfTheSlotIsARefusal) {
  answer.status = GRAFT_IO;
  fake::controls().message = "the licence has ended";
  EXPECT_TRUE(has(this->refusal(), "extension returned IO (the licence has ended)"));
  this->fake_.close();
  answer.asked = 0;
  answer.throws = true;
  EXPECT_TRUE(has(this->refusal(), "threw a C++ exception: the library is broken"));
}

TEST(GrownExtension, AnOlderDriversTableLacksTheLaterSlots) {
  fake::Fake fake;
  answer = {};
  answer.name = "graft.grown";
  answer.version = 3;
  answer.set_slots(2);
  answer.set_count(1);  // what lies behind the table is not read
  fake::table().extension = &extension;
  fake.open();
  const auto* table = fake.driver().extension<GrownTable>();
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->slot_count, 1u);
  EXPECT_EQ(table->first, &here);
  EXPECT_EQ(table->later, nullptr);
}

}  // namespace
}  // namespace graft
