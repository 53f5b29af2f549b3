// tests/runtime/driver/variant_files.h: copies of the variant driver under the names that a test
// needs.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace graft::fake {

// A folder of its own that goes away with the object.
class VariantFiles {
 public:
  VariantFiles() {
    std::string pattern = std::filesystem::temp_directory_path() / "graft-variants-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~VariantFiles() { std::filesystem::remove_all(folder_); }

  // The absolute path of a driver that behaves as variant says, under a driver name.
  std::string driver(const std::string& variant, const std::string& name = "variant") const {
    const auto path = folder_ / (variant + "-" + name + ".so");
    const auto library =
        std::filesystem::path(GRAFT_TEST_BINARY_DIR) / "tests/fixtures/graft_variant_driver.so";
    std::filesystem::copy_file(library, path, std::filesystem::copy_options::skip_existing);
    return path;
  }

  std::string text_file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace graft::fake
