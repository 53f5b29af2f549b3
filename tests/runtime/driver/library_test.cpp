// tests/runtime/driver/library_test.cpp: what is loaded, what is refused, and in which words.
#include "runtime/driver/library.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/runtime/driver/fake_driver.h"
#include "tests/runtime/driver/variant_files.h"

namespace graft {
namespace {

using fake::error_of;
using fake::has;

class DriverLibraryTest : public testing::Test {
 protected:
  static std::string refusal(const std::string& path) {
    return error_of([&] { Driver::load(path); });
  }
  std::string refusal_of(const std::string& variant) { return refusal(files_.driver(variant)); }

  fake::VariantFiles files_;
};

TEST_F(DriverLibraryTest, LoadsAGoodOne) {
  const std::string path = files_.driver("good", "nice");
  const auto driver = Driver::load(path);
  EXPECT_EQ(driver->name(), "nice");
  EXPECT_EQ(driver->path(), path);
  EXPECT_EQ(driver->table().kernel_launch, nullptr);
  EXPECT_EQ(driver->extension<graft_blas_table>(), nullptr);
}

TEST_F(DriverLibraryTest, RefusesPathsThatNameNoLibrary) {
  EXPECT_TRUE(has(refusal("drivers/x.so"), "the path is relative"));
  EXPECT_TRUE(has(refusal("drivers/x.so"), "Did you mean '/"));
  EXPECT_TRUE(has(refusal(""), "relative"));
  EXPECT_TRUE(has(refusal("/nowhere/x.so"), "No such file"));
  EXPECT_TRUE(has(refusal(files_.folder()), "the path is not a file"));
  EXPECT_TRUE(has(refusal(files_.text_file("x.so", "hello")), "the library does not load"));
}

TEST_F(DriverLibraryTest, RefusesOtherVersionsWithBothAndARemedy) {
  for (const char* variant : {"other_major", "newer_minor"}) {
    const std::string text = refusal_of(variant);
    EXPECT_TRUE(
        has(text, std::string("speaks ABI ") +
                      (variant[0] == 'o' ? "7." : std::to_string(GRAFT_ABI_MAJOR) + ".99")));
    EXPECT_TRUE(has(text, "this Graft " + std::to_string(GRAFT_ABI_MAJOR) + "." +
                              std::to_string(GRAFT_ABI_MINOR)));
    EXPECT_TRUE(has(text, "Install a driver for ABI"));
  }
  EXPECT_TRUE(has(refusal_of("refuses_major"), "does not serve this Graft's ABI"));
}

TEST_F(DriverLibraryTest, RefusesTablesThatAreWrong) {
  EXPECT_TRUE(has(refusal_of("truncated"), "lacks required slots: memory_free, stream_create"));
  EXPECT_TRUE(has(refusal_of("misses_copy"), "lacks required slots: copy."));
  EXPECT_TRUE(has(refusal_of("pins_only"), "host_free (host_allocate is given)"));
  EXPECT_TRUE(has(refusal_of("too_many_slots"), "claims 1000 slots"));
  EXPECT_TRUE(has(refusal_of("writes_too_far"), "wrote past Graft's table"));
  EXPECT_TRUE(has(refusal_of("nameless"), "its name must have 1 to 32 letters"));
  EXPECT_TRUE(has(refusal_of("bad_name"), "its name must have 1 to 32 letters"));
}

TEST_F(DriverLibraryTest, RefusesSlotsWithoutThoseThatTheyNeed) {
  const auto refusal_with = [](const std::function<void(graft_driver_table&)>& change) {
    fake::Fake fake;
    fake::table().kernel_find = nullptr;
    fake::table().kernel_launch = nullptr;
    change(fake::table());
    return error_of([] { Driver::adopt(&fake::query, "/nowhere/fake.so"); });
  };
  const auto launch = fake::full_table().kernel_launch;
  const auto find = fake::full_table().kernel_find;
  EXPECT_EQ(refusal_with([](auto&) {}), "");
  EXPECT_TRUE(has(refusal_with([&](auto& t) { t.kernel_launch = launch; }),
                  "kernel_find (kernel_launch is given)"));
  EXPECT_TRUE(has(refusal_with([&](auto& t) { t.kernel_find = find; }),
                  "kernel_launch (kernel_find is given)"));
  EXPECT_TRUE(has(refusal_with([](auto& t) {
                    t.program_compile = [](graft_device, const char*, size_t, const char*,
                                           graft_sink) { return GRAFT_UNSUPPORTED; };
                  }),
                  "program_load (program_compile is given)"));
  EXPECT_TRUE(has(refusal_with([](auto& t) {
                    t.program_load = [](graft_device, const void*, size_t, graft_program*) {
                      return GRAFT_UNSUPPORTED;
                    };
                  }),
                  "kernel_find (program_load is given)"));
  const std::string exports = refusal_with([](auto& t) {
    t.memory_export = [](graft_device, graft_address, uint8_t*, graft_address*) {
      return GRAFT_UNSUPPORTED;
    };
  });
  EXPECT_TRUE(has(exports, "memory_import (memory_export is given)"));
  EXPECT_TRUE(has(exports, "memory_release (memory_export is given)"));
}

TEST_F(DriverLibraryTest, MessagesAreReadable) {
  fake::Fake fake;
  fake.open();
  fake::controls().message = "bad \xff\xfe words";
  EXPECT_TRUE(has(error_of([&] { fake.driver().check(GRAFT_IO, "copy"); }), "bad ?? words"));
}

TEST_F(DriverLibraryTest, RefusesFailuresOfTheQuery) {
  EXPECT_TRUE(has(refusal_of("throws_in_query"), "threw a C++ exception: query went wrong"));
  EXPECT_TRUE(has(refusal_of("fails_in_query"), "graft_driver_query returned IO"));
}

TEST_F(DriverLibraryTest, CheckNamesOpSlotDriverStatusAndMessage) {
  fake::Fake fake;
  fake.open();
  fake::controls().message = "no such file";
  const OpScope scope("aten::load");
  EXPECT_EQ(error_of([&] { fake.driver().check(GRAFT_IO, "program_load"); }),
            "aten::load failed (driver 'fake'): program_load: IO: no such file");
  fake::controls().message.clear();
  EXPECT_EQ(
      error_of([&] { fake.driver().check(GRAFT_IO, "program_load"); }),
      "aten::load failed (driver 'fake'): program_load: IO: reading or writing a file failed");
}

}  // namespace
}  // namespace graft
