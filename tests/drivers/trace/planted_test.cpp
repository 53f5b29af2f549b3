// tests/drivers/trace/planted_test.cpp: the checker's planted bugs that the trace layer sees.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace {

const std::string kBinary = GRAFT_TEST_BINARY_DIR;

// A bug of planted_bugs.cpp and the rule that finds it; verified: under verify=1.
struct Planted {
  const char *bug, *rule;
  const char* only;  // a part of the name of the case that must find it
  bool verified = false;
  const char* environment = "";
};
constexpr Planted kPlanted[] = {
    {"crashing", "crashed", "past the last one"},
    {"hanging", "hanging", "never recorded returns"},
    {"lost_item", "lost-item", "every work-item", true},
    {"swallowed_error", "early", "waits for all", false, "GRAFT_HOST_FAULTS=copy:0.3 "},
    {"wide_rows", "overrun", "copy_strided moves", true},
    {"coarse", "misaligned", "aligned"},
    {"degrees", "impossible", "sensors"},
    {"early_event", "early", "busy before"},
    {"endless_wait", "overdue", "synchronize_within ends"},
    {"few_arguments", "refused", "max_arguments"},
    {"greedy_struct", "past-struct", "struct_size"},
    {"leaking", "no-room", "can be had again"},
    {"sticky_failure", "no-room", "leaves the device usable"},
    {"hasty_wait", "early", "synchronize_within ends"},
    {"impatient", "early", "waits for all"},
    {"misaligned", "misaligned", "aligned"},
    {"mistyped_dialect", "properties", "contradict"},
    {"mixed_programs", "one-kernel", "told apart"},
    {"moody", "changed", "the same at each call"},
    {"narrow_fill", "wrong-bytes", "fill: patterns", true},
    {"one_handle", "one-handle", "two native handles"},
    {"one_priority", "refused", "every priority"},
    {"ops_any_name", "any-name", "unknown operator"},
    {"overlapping", "overlap", "do not overlap"},
    {"overrun", "overrun", "nothing beside it", true},
    {"shifted_dtypes", "properties", "contradict"},
    {"short_graphs", "bad-table", "graft.graphs: the table"},
    {"throwing", "exception", "host_callback runs"},
    {"unloads_all", "wrong-status", "unloading a program"},
    {"unordered", "unordered", "stream_wait_event orders"},
};

// labels: one_preset
TEST(TraceLayer, FindsTheCheckersPlantedBugs) {
  for (const Planted& one : kPlanted) {
    const std::string library = kBinary + "/tests/bugs/" + one.bug + ".so";
    ASSERT_TRUE(std::filesystem::exists(library)) << library;
    const std::string command =
        one.environment + kBinary + "/bin/graft-driver-check --timeout 20 --trace " +
        (one.verified ? "verify=1" : "1") + " --only '" + one.only + "' " + library + " 2>&1";
    std::FILE* const pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string report;
    char buffer[4096];
    while (const size_t got = std::fread(buffer, 1, sizeof buffer, pipe))
      report.append(buffer, got);
    EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 1) << report;
    EXPECT_NE(report.find("driver '" + std::string(one.bug) + "': "), std::string::npos) << report;
    EXPECT_NE(report.find("[" + std::string(one.rule) + "]"), std::string::npos) << report;
  }
}

}  // namespace
