// tests/deploy/reference_test.cpp: deployed models whose weights are in files beside theirs.
#include "deploy/reference.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "deploy/model.h"
#include "deploy/preparation.h"
#include "graft/deploy.h"
#include "runtime/driver/error.h"
#include "tests/deploy/small_model.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft::deploy::test {
namespace {

using graft::test::device;

class ReferenceTest : public ::testing::Test {
 protected:
  ReferenceTest() { write_tensors(folder_.file("w.safetensors"), small_weights()); }

  // Writes the small model with all weights in these files.
  std::string written(const std::string& name, const std::vector<std::string>& files) const {
    const std::string path = folder_.file(name);
    Manifest manifest = small_manifest();
    auto weights = small_weights();
    manifest.references = find_references(path, files, weights);
    std::erase_if(weights,
                  [&](const TensorBytes& one) { return manifest.references.contains(one.name); });
    write_artefact(path, manifest, weights, {});
    return path;
  }

  void with_weights(const std::string& file, const std::vector<TensorBytes>& weights) const {
    write_tensors(folder_.file(file), weights);
  }

  template <class Work>
  static std::string refusal(Work&& work, graft_status status = GRAFT_INVALID_ARGUMENT) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), status) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return "";
  }

  static std::string opening(const std::string& path,
                             graft_status status = GRAFT_INVALID_ARGUMENT) {
    return refusal([&] { const Model model(Artefact(path), device()); }, status);
  }

  static void expect_runs(const std::string& path) {
    Model model(Artefact(path), device());
    const std::vector<float> x = {1, 2, 3, -1, -2, -3};
    TensorView view;
    view.address = reinterpret_cast<graft_address>(x.data());
    view.dtype = GRAFT_FLOAT32, view.rank = 2;
    view.sizes[0] = 2, view.sizes[1] = 3, view.strides[0] = 3, view.strides[1] = 1;
    const HostResult result = model.run(std::vector{view})[0];
    std::vector<float> values(4);
    std::memcpy(values.data(), result.memory.get(), sizeof(float) * 4);
    EXPECT_EQ(values, expected(x)) << path;
  }

  Folder folder_;
};

void expect_has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
}

TEST_F(ReferenceTest, TwoModelsShareAFile) {
  const std::string one = written("one.graft", {"w.safetensors"});
  const std::string other = written("other.graft", {"w.safetensors"});
  const Artefact artefact(one);
  EXPECT_EQ(artefact.manifest().references.size(), 2u);
  EXPECT_EQ(artefact.manifest().own_tensors().size(), 0u);
  EXPECT_EQ(bytes_of(one).find(std::string(raw(kWeight).data(), raw(kWeight).size())),
            std::string::npos);
  expect_runs(one);
  expect_runs(other);
}

TEST_F(ReferenceTest, AWeightMayBeInOneOfSeveralFilesOrInNone) {
  std::filesystem::create_directory(folder_.file("parts"));
  with_weights("parts/a.safetensors", {small_weights()[0]});
  with_weights("parts/b.safetensors", {small_weights()[1]});
  const std::string both = written("both.graft", {"parts/a.safetensors", "parts/b.safetensors"});
  EXPECT_EQ(Artefact(both).manifest().references.at("fc.bias").file, "parts/b.safetensors");
  expect_runs(both);
  const std::string half = written("half.graft", {"parts/a.safetensors"});
  EXPECT_EQ(Artefact(half).manifest().own_tensors(), std::set<std::string>{"fc.bias"});
  expect_runs(half);
}

TEST_F(ReferenceTest, AnotherNameWithTheSameBytesIsFound) {
  auto renamed = small_weights();
  renamed[0].name = "layer.fc.weight";
  with_weights("renamed.safetensors", renamed);
  const std::string path = written("model.graft", {"renamed.safetensors"});
  EXPECT_EQ(Artefact(path).manifest().references.at("fc.weight").tensor, "layer.fc.weight");
  expect_runs(path);
}

TEST_F(ReferenceTest, TheFolderMayMove) {
  written("model.graft", {"w.safetensors"});
  const Folder other;
  for (const char* name : {"model.graft", "w.safetensors"}) {
    std::filesystem::rename(folder_.file(name), other.file(name));
  }
  expect_runs(other.file("model.graft"));
}

TEST_F(ReferenceTest, OnlyAFileWithReferencesHasTheNewMinor) {
  const auto version = [](const std::string& path) {
    return bytes_of(path).find(R"(\"version\":[1,1])") != std::string::npos;
  };
  EXPECT_TRUE(version(written("model.graft", {"w.safetensors"})));
  EXPECT_FALSE(version(written("whole.graft", {})));
}

TEST_F(ReferenceTest, AMissingFileIsNamedWithItsModel) {
  const std::string path = written("model.graft", {"w.safetensors"});
  std::filesystem::remove(folder_.file("w.safetensors"));
  expect_has(opening(path, GRAFT_NOT_FOUND),
             {folder_.file("w.safetensors"), path, "does not open", "put the one there"});
}

TEST_F(ReferenceTest, NoByteOfItMayBeMissing) {
  const std::string path = written("model.graft", {"w.safetensors"});
  const std::string whole = bytes_of(folder_.file("w.safetensors"));
  for (size_t length = 0; length < whole.size(); ++length) {
    write_bytes(folder_.file("w.safetensors"), whole.substr(0, length));
    const std::string text = refusal([&] { const Artefact artefact(path); });
    expect_has(text, {folder_.file("w.safetensors"), path});
  }
}

// Spaces behind the header's JSON, and names that no reference has, are nobody's values.
TEST_F(ReferenceTest, NoElementMayDiffer) {
  const std::string path = written("model.graft", {"w.safetensors"});
  const std::string whole = bytes_of(folder_.file("w.safetensors"));
  const size_t elements = raw(kWeight).size() + raw(kBias).size();
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    write_bytes(folder_.file("w.safetensors"), bytes);
    try {
      const Artefact artefact(path);
      std::vector<char> to(64);
      for (const std::string& name : artefact.manifest().tensors()) {
        artefact.read(artefact.weight(name), to.data());
      }
      EXPECT_LT(i, whole.size() - elements);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), GRAFT_INVALID_ARGUMENT);
      expect_has(error.what(), {folder_.file("w.safetensors"), path});
    }
  }
}

TEST_F(ReferenceTest, ChangedValuesAreNamed) {
  const std::string path = written("model.graft", {"w.safetensors"});
  const std::vector<float> bias = {0.5f, -0.125f};
  auto weights = small_weights();
  weights[1].bytes = raw(bias);
  with_weights("w.safetensors", weights);
  expect_has(opening(path), {"w.safetensors is not the file that " + path + " was deployed with",
                             "the hash of \"fc.bias\" differs", "Put that file there"});
}

TEST_F(ReferenceTest, AnotherDtypeSizeOrNameIsNamed) {
  const std::string path = written("model.graft", {"w.safetensors"});
  auto weights = small_weights();
  weights[0].sizes = {3, 2};
  with_weights("w.safetensors", weights);
  expect_has(opening(path), {"\"fc.weight\" is float32[3, 2], expected float32[2, 3]"});
  weights = small_weights();
  weights[0].dtype = GRAFT_INT32;
  with_weights("w.safetensors", weights);
  expect_has(opening(path), {"\"fc.weight\" is int32[2, 3], expected float32[2, 3]"});
  weights = small_weights();
  weights[0].name = "other";
  with_weights("w.safetensors", weights);
  expect_has(opening(path), {"it has no tensor \"fc.weight\"", path});
}

TEST_F(ReferenceTest, NoFileOutsideOfTheFolderIsOpened) {
  Manifest manifest = small_manifest();
  const std::string path = folder_.file("sub/model.graft");
  std::filesystem::create_directory(folder_.file("sub"));
  manifest.references = find_references(folder_.file("x"),
                                        std::vector<std::string>{"w.safetensors"}, small_weights());
  for (const std::string& file :
       {std::string("../w.safetensors"), folder_.file("w.safetensors"), std::string("./w"),
        std::string("a/../../w.safetensors"), std::string(), std::string("/"), std::string("w/"),
        std::string("w\0x", 3), std::string("..")}) {
    for (auto& [name, one] : manifest.references) one.file = file;
    write_artefact(path, manifest, {}, {});
    expect_has(opening(path), {path, "in its own folder or below"});
  }
}

TEST_F(ReferenceTest, WhatIsNoFileIsRefusedAndNotWaitedFor) {
  const std::string path = written("model.graft", {"w.safetensors"});
  std::filesystem::remove(folder_.file("w.safetensors"));
  ASSERT_EQ(mkfifo(folder_.file("w.safetensors").c_str(), 0600), 0);
  expect_has(opening(path), {"a folder or a device", path});
  std::filesystem::remove(folder_.file("w.safetensors"));
  std::filesystem::create_directory(folder_.file("w.safetensors"));
  expect_has(opening(path), {"a folder or a device", path});
}

TEST_F(ReferenceTest, AReferenceIsForATensorThatTheFileLacks) {
  const std::string path = folder_.file("model.graft");
  Manifest manifest = small_manifest();
  manifest.references =
      find_references(path, std::vector<std::string>{"w.safetensors"}, small_weights());
  EXPECT_THROW(write_artefact(path, manifest, small_weights(), {}), Error);
  manifest.references.erase("fc.bias");
  EXPECT_THROW(write_artefact(path, manifest, {}, {}), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
  manifest.references["nobody"] = manifest.references.at("fc.weight");
  write_artefact(path, manifest, std::vector{small_weights()[1]}, {});
  expect_has(opening(path), {"\"nobody\"", path});
}

TEST_F(ReferenceTest, PreparingKeepsThem) {
  const std::string path = written("model.graft", {"w.safetensors"});
  const References before = Artefact(path).manifest().references;
  const std::string weights = bytes_of(folder_.file("w.safetensors"));
  prepare(path, device());
  EXPECT_EQ(Artefact(path).manifest().references, before);
  EXPECT_EQ(bytes_of(folder_.file("w.safetensors")), weights);
  expect_runs(path);
}

TEST_F(ReferenceTest, ProgramsGetTheMessage) {
  const std::string path = written("model.graft", {"w.safetensors"});
  std::filesystem::remove(folder_.file("w.safetensors"));
  device();
  graft_model model = nullptr;
  EXPECT_EQ(graft_model_open(path.c_str(), 0, &model), GRAFT_NOT_FOUND);
  expect_has(graft_model_message(), {"w.safetensors", "model.graft"});
}

TEST_F(ReferenceTest, DeployingRefusesFilesOfOtherWeights) {
  const std::string path = folder_.file("model.graft");
  const auto found = [&](const std::string& file) {
    return refusal([&] { find_references(path, std::vector{file}, small_weights()); });
  };
  const std::vector<float> other = {9, 9};
  with_weights("changed.safetensors", {{"fc.bias", GRAFT_FLOAT32, {2}, raw(other)}});
  expect_has(found("changed.safetensors"), {"\"fc.bias\" has other values than in the model"});
  with_weights("cast.safetensors", {{"fc.bias", GRAFT_INT32, {2}, raw(other)}});
  expect_has(found("cast.safetensors"), {"\"fc.bias\" is int32[2] there, and float32[2] in"});
  with_weights("nothing.safetensors", {{"bias", GRAFT_FLOAT32, {2}, raw(other)}});
  expect_has(found("nothing.safetensors"), {"none of the model's 2 tensors is in nothing"});
}

TEST_F(ReferenceTest, FilesAreNamedFromTheModelsFolder) {
  const std::string model = folder_.file("model.graft");
  EXPECT_EQ(name_beside(model, folder_.file("w.safetensors")), "w.safetensors");
  EXPECT_EQ(name_beside(model, folder_.file("a/./b/../w.safetensors")), "a/w.safetensors");
  const std::string link = folder_.file("link");
  std::filesystem::create_directory(folder_.file("real"));
  std::filesystem::create_directory_symlink(folder_.file("real"), link);
  EXPECT_EQ(name_beside(link + "/model.graft", folder_.file("real/w")), "w");
  expect_has(refusal([&] { name_beside(folder_.file("sub/model.graft"), folder_.file("w")); }),
             {"put both into one folder", folder_.file("w")});
  expect_has(refusal([&] { name_beside(model, folder_.file("sub/../model.graft")); }),
             {"give two paths"});
  std::filesystem::create_symlink(folder_.file("w.safetensors"), folder_.file("model.graft"));
  expect_has(refusal([&] {
               find_references(model, std::vector<std::string>{"w.safetensors"}, small_weights());
             }),
             {"give two paths"});
}

}  // namespace
}  // namespace graft::deploy::test
