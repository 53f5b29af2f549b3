// tests/deploy/fuzz/corpus_test.cpp: the fuzzer's kept files, and that its changes pass the hashes.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/deploy/fuzz/artefact_change.h"
#include "tests/deploy/fuzz/opening.h"
#include "tests/deploy/fuzz/seeds.h"

namespace graft::deploy::test {
namespace {

const std::string kCorpus = GRAFT_TEST_SOURCE_DIR "/tests/deploy/fuzz/corpus";

TEST(FuzzCorpus, EachFileIsRefusedByNameOrRuns) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus)) {
    const std::string name = entry.path().filename().string();
    if (name == "README.md") continue;
    ++files;
    EXPECT_NO_THROW(open_all(bytes_of(entry.path().string()))) << name;
  }
  EXPECT_GE(files, 7);
}

TEST(FuzzCorpus, TheSeedsAreWhatTheWriterWritesAndRun) {
  for (const auto& [name, bytes] : seed_files()) {
    EXPECT_EQ(bytes_of(kCorpus + "/" + name), bytes)
        << name << " differs: write it with fuzz_artefact --write-seeds=FOLDER";
    EXPECT_EQ(open_all(bytes), Opened::kRan) << name;
  }
}

std::string refusal(const std::string& bytes) {
  try {
    const BytesFile file(bytes);
    const Artefact artefact(file.path());
    check_text(artefact.manifest().graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FuzzChanges, AreSealedSoThatTheReaderGoesOn) {
  const std::string whole = seed_files().at("seed_small.graft");
  Parts parts = *parts_of(whole);
  EXPECT_EQ(joined(parts), whole);
  const size_t at = parts.header.find("double");
  ASSERT_NE(at, std::string::npos);
  parts.header[at] = 'D';
  EXPECT_NE(refusal(joined(parts)).find("hash of its header"), std::string::npos);
  EXPECT_NE(refusal(sealed(parts)).find("%double is not defined"), std::string::npos)
      << refusal(sealed(parts));
  parts = *parts_of(whole);
  parts.elements[0] = static_cast<char>(parts.elements[0] ^ 1);
  EXPECT_EQ(open_all(joined(parts)), Opened::kRefused);
  EXPECT_EQ(open_all(sealed(parts)), Opened::kRan);
}

// A changed reference has the hash of what it now names, so that the reader reads it.
TEST(FuzzChanges, ReferencesAreSealed) {
  const std::string whole = seed_files().at("seed_beside.graft");
  const auto refused = [&](const char* member, const Json& value) {
    const auto change = [&](Json* manifest) {
      (*manifest)["references"]["fc.weight"][member] = value;
    };
    return refusal(sealed(*parts_of(whole), change));
  };
  EXPECT_EQ(refused("hash", "00"), "");
  EXPECT_NE(refused("file", "../weights.safetensors").find("own folder"), std::string::npos);
  EXPECT_NE(refused("file", kCutFile).find(kCutFile + " is no readable file"), std::string::npos);
  EXPECT_NE(refused("tensor", "half").find("float16[4, 8], expected float32[2, 3]"),
            std::string::npos);
}

// Most changes still have right hashes, and many are still models.
TEST(FuzzChanges, ReachTheModel) {
  const ChangeBytes bytes = [](std::string text) { return text + "x"; };
  const std::string files[] = {seed_files().at("seed_small.graft"),
                               seed_files().at("seed_beside.graft")};
  int hashes = 0, ran = 0;
  constexpr int kChanges = 200;
  for (int seed = 1; seed <= kChanges; ++seed) {
    Draw draw(static_cast<uint32_t>(seed) * 7919);
    const std::string changed = changed_artefact(files[seed % 2], &draw, bytes);
    hashes += refusal(changed).find("hash") == std::string::npos;
    ran += open_all(changed) == Opened::kRan;
  }
  EXPECT_GT(hashes, kChanges * 3 / 4);
  EXPECT_GT(ran, kChanges / 20);
}

TEST(FuzzChanges, TwoFilesBecomeOne) {
  const auto files = seed_files();
  const std::string a = files.at("seed_small.graft"), b = files.at("seed_layers.graft");
  Draw draw(5);
  const std::string made = crossed(a, b, &draw);
  EXPECT_NE(made, a);
  EXPECT_EQ(refusal(made).find("hash"), std::string::npos);
  EXPECT_EQ(crossed("", b, &draw), "");
}

}  // namespace
}  // namespace graft::deploy::test
