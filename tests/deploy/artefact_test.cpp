// tests/deploy/artefact_test.cpp: files of deployed models, whole and damaged.
#include "deploy/artefact.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/driver/error.h"
#include "tests/deploy/small_model.h"

namespace graft::deploy::test {
namespace {

graft_status opening(const std::string& path, std::string* text = nullptr) {
  try {
    const Artefact artefact(path);
    std::vector<char> to(4096);
    for (const char* name : {"fc.weight", "fc.bias"}) {
      artefact.read(artefact.weight(name), to.data());
    }
    artefact.blobs();
    return GRAFT_OK;
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.status();
  }
}

class ArtefactTest : public ::testing::Test {
 protected:
  ArtefactTest() : path_(folder_.file("small.graft")) {
    const CarriedBlob blob{"0123456789abcdef", "machine code"};
    write_artefact(path_, small_manifest(), small_weights(), std::span(&blob, 1));
  }

  Folder folder_;
  const std::string path_;
};

TEST_F(ArtefactTest, ComesBack) {
  const Artefact artefact(path_);
  const Manifest& manifest = artefact.manifest();
  EXPECT_EQ(manifest.graph, kGraph);
  EXPECT_EQ(manifest.made_by, "a test");
  ASSERT_EQ(manifest.inputs.size(), 3u);
  EXPECT_EQ(manifest.inputs[0].name, "fc.weight");
  EXPECT_TRUE(manifest.inputs[0].weight);
  EXPECT_FALSE(manifest.inputs[1].weight);
  const StoredTensor& weight = artefact.weight("fc.weight");
  EXPECT_EQ(weight.sizes, (std::vector<int64_t>{2, 3}));
  std::vector<float> values(6);
  artefact.read(weight, values.data());
  EXPECT_EQ(values, kWeight);
  const auto blobs = artefact.blobs();
  ASSERT_EQ(blobs.size(), 1u);
  EXPECT_EQ(blobs[0].hash, "0123456789abcdef");
  EXPECT_EQ(blobs[0].bytes, "machine code");
}

TEST_F(ArtefactTest, ElementsBeginAtAMultipleOf64) {
  uint64_t length = 0;
  const std::string bytes = bytes_of(path_);
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ((length + sizeof length) % 64, 0u);
}

TEST_F(ArtefactTest, NoByteMayDiffer) {
  const std::string whole = bytes_of(path_);
  const std::string path = folder_.file("flipped.graft");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    write_bytes(path, bytes);
    std::string text;
    EXPECT_EQ(opening(path, &text), GRAFT_INVALID_ARGUMENT) << "byte " << i << ": " << text;
    EXPECT_NE(text.find(path), std::string::npos) << text;
  }
}

TEST_F(ArtefactTest, NoByteMayBeMissing) {
  const std::string whole = bytes_of(path_);
  const std::string path = folder_.file("cut.graft");
  for (size_t length = 0; length < whole.size(); ++length) {
    write_bytes(path, whole.substr(0, length));
    EXPECT_EQ(opening(path), GRAFT_INVALID_ARGUMENT) << length << " bytes";
  }
  write_bytes(path, whole + "x");
  EXPECT_EQ(opening(path), GRAFT_INVALID_ARGUMENT);
}

TEST_F(ArtefactTest, AnotherMajorIsRefusedByName) {
  const std::string path = folder_.file("major.graft");
  write_artefact(path, small_manifest(), small_weights(), {}, {2, 0});
  std::string text;
  EXPECT_EQ(opening(path, &text), GRAFT_VERSION_MISMATCH);
  EXPECT_NE(text.find("version 2"), std::string::npos) << text;
  EXPECT_NE(text.find("a test"), std::string::npos) << text;
}

TEST_F(ArtefactTest, ANewerMinorOpens) {
  const std::string path = folder_.file("minor.graft");
  write_artefact(path, small_manifest(), small_weights(), {}, {1, 7});
  EXPECT_EQ(opening(path), GRAFT_OK);
}

TEST_F(ArtefactTest, AFileOfTensorsAloneIsNoModel) {
  const std::string path = folder_.file("plain.safetensors");
  const auto weights = small_weights();
  write_tensors(path, tensor_header({}, weights), weights);
  std::string text;
  EXPECT_EQ(opening(path, &text), GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(text.find("torch_graft.deploy()"), std::string::npos) << text;
}

TEST_F(ArtefactTest, FilesThatAreNotThereOrNoFiles) {
  EXPECT_EQ(opening(folder_.file("nowhere.graft")), GRAFT_NOT_FOUND);
  EXPECT_EQ(opening(folder_.file("")), GRAFT_INVALID_ARGUMENT);
}

TEST_F(ArtefactTest, WhatIsNotWrittenLeavesWhatWasThere) {
  const std::string before = bytes_of(path_);
  Manifest other = small_manifest();
  other.inputs[0].name = "fc.other";
  EXPECT_THROW(write_artefact(path_, other, small_weights(), {}), Error);
  auto complex = small_weights();
  complex[0].dtype = GRAFT_COMPLEX128;
  EXPECT_THROW(write_artefact(path_, small_manifest(), complex, {}), Error);
  EXPECT_THROW(
      write_artefact(folder_.file("no/such/folder"), small_manifest(), small_weights(), {}), Error);
  EXPECT_EQ(bytes_of(path_), before);
  size_t files = 0;
  for ([[maybe_unused]] const auto& one :
       std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path())) {
    ++files;
  }
  EXPECT_EQ(files, 1u);
}

}  // namespace
}  // namespace graft::deploy::test
