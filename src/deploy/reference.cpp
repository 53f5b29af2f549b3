// src/deploy/reference.cpp: tensors of a deployed model that are in files beside its own.
#include "deploy/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "codegen/cache/toolchain.h"
#include "deploy/host_tensor.h"
#include "runtime/driver/error.h"

namespace graft::deploy {
namespace {

using Path = std::filesystem::path;

std::string form(graft_dtype dtype, const std::vector<int64_t>& sizes) {
  return told(dtype, sizes.data(), sizes.size());
}

// Neither links nor the folder that the process is in can lead such a name out of its folder,
// unless somebody put a link there.
bool stays_inside(const std::string& file) {
  const Path path(file);
  if (path.empty() || path.is_absolute() || file.find('\0') != std::string::npos) return false;
  return std::ranges::none_of(
      path, [](const Path& part) { return part.empty() || part == "." || part == ".."; });
}

std::string path_of(const std::string& model, const std::string& file) {
  if (!stays_inside(file)) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("{} has weights in \"{}\", expected a file in its own folder or below "
                            "it: deploy the model again",
                            model, file.c_str()));
  }
  return (Path(model).parent_path() / file).string();
}

[[noreturn]] void other_file(const std::string& file, const std::string& model,
                             const std::string& what) {
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("{} is not the file that {} was deployed with: {}. Put that file there, "
                          "or deploy the model again",
                          file, model, what));
}

[[noreturn]] void same_file(const std::string& path) {
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("{} is the model's file and that of its weights: give two paths", path));
}

// The files that a model's tensors may be in, as deploy() is given them.
class Candidates {
 public:
  Candidates(const std::string& model, std::span<const std::string> names) {
    for (const std::string& name : names) {
      const std::string path = path_of(model, name);
      std::error_code missing;
      if (std::filesystem::equivalent(path, model, missing)) same_file(path);
      files_.emplace_back(name, std::make_unique<TensorFile>(path));
    }
  }

  // Whether a file has the tensor; where it is, then.
  bool find(const TensorBytes& tensor, Reference* found) {
    for (const auto& [name, file] : files_) {
      const auto same = file->tensors().find(tensor.name);
      if (same == file->tensors().end()) continue;
      check_equal(tensor, same->second, *file);
      return give(tensor, name, same->second.name, found);
    }
    if (tensor.bytes.empty()) return false;
    for (const auto& [name, file] : files_) {
      for (const auto& [key, stored] : file->tensors()) {
        if (stored.dtype != tensor.dtype || stored.sizes != tensor.sizes) continue;
        if (hash_of(name, stored, *file) == hash_of(tensor)) {
          return give(tensor, name, key, found);
        }
      }
    }
    return false;
  }

 private:
  static std::string hash_of(const TensorBytes& tensor) {
    return hash_text({tensor.bytes.data(), tensor.bytes.size()});
  }

  static bool give(const TensorBytes& tensor, const std::string& file, const std::string& name,
                   Reference* found) {
    *found = {file, name, tensor.dtype, tensor.sizes, hash_of(tensor)};
    return true;
  }

  static std::vector<char> elements_of(const StoredTensor& stored, const TensorFile& file) {
    std::vector<char> elements(stored.bytes);
    file.read(stored, elements.data());
    return elements;
  }

  const std::string& hash_of(const std::string& name, const StoredTensor& stored,
                             const TensorFile& file) {
    std::string& hash = hashes_[{name, stored.name}];
    if (hash.empty()) {
      const std::vector<char> elements = elements_of(stored, file);
      hash = hash_text({elements.data(), elements.size()});
    }
    return hash;
  }

  static void check_equal(const TensorBytes& tensor, const StoredTensor& stored,
                          const TensorFile& file) {
    std::string what;
    if (stored.dtype != tensor.dtype || stored.sizes != tensor.sizes) {
      what = fmt::format("is {} there, and {} in the model", form(stored.dtype, stored.sizes),
                         form(tensor.dtype, tensor.sizes));
    } else if (!std::ranges::equal(elements_of(stored, file), tensor.bytes)) {
      what = "has other values than in the model";
    }
    if (what.empty()) return;
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("{}: \"{}\" {}. Give the file that the model was loaded from, or a "
                            "path where there is none, which deploy() then writes",
                            file.path(), tensor.name, what));
  }

  std::vector<std::pair<std::string, std::unique_ptr<TensorFile>>> files_;
  std::map<std::pair<std::string, std::string>, std::string> hashes_;
};

}  // namespace

BesideFiles::BesideFiles(const std::string& model, const References& references) : model_(model) {
  for (const auto& [name, one] : references) {
    const std::string path = path_of(model, one.file);
    try {
      files_.try_emplace(one.file, path);
    } catch (const Error& error) {
      throw Error(error.status(),
                  fmt::format("{}; {} has weights in this file: put the one there that it was "
                              "deployed with",
                              error.what(), model));
    }
    const TensorFile& file = files_.at(one.file);
    const auto found = file.tensors().find(one.tensor);
    if (found == file.tensors().end()) {
      other_file(path, model, fmt::format("it has no tensor \"{}\"", one.tensor));
    }
    StoredTensor stored = found->second;
    if (stored.dtype != one.dtype || stored.sizes != one.sizes) {
      other_file(path, model,
                 fmt::format("\"{}\" is {}, expected {}", one.tensor,
                             form(stored.dtype, stored.sizes), form(one.dtype, one.sizes)));
    }
    stored.name = name;
    tensors_.insert_or_assign(name, Tensor{std::move(stored), &file, one.hash});
  }
}

const StoredTensor* BesideFiles::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second.stored;
}

bool BesideFiles::read(const StoredTensor& tensor, void* to) const {
  const auto found = tensors_.find(tensor.name);
  if (found == tensors_.end()) return false;
  const auto& [stored, file, hash] = found->second;
  file->read(stored, to);
  if (hash_text({static_cast<const char*>(to), stored.bytes}) != hash) {
    other_file(file->path(), model_, fmt::format("the hash of \"{}\" differs", tensor.name));
  }
  return true;
}

std::string name_beside(const std::string& model, const std::string& file) {
  const auto relative = [&](auto&& whole) {
    const Path from = whole(std::filesystem::absolute(model).parent_path());
    const Path place = std::filesystem::absolute(file);
    const Path to = whole(place.parent_path()) / place.filename();
    return to.lexically_relative(from).string();
  };
  std::string name = relative([](const Path& folder) { return folder.lexically_normal(); });
  if (!stays_inside(name)) {  // the two paths may name one folder by two links
    name = relative([](const Path& folder) { return std::filesystem::weakly_canonical(folder); });
  }
  if (name == Path(model).filename()) same_file(file);
  if (stays_inside(name)) return name;
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("the weights {} are not in the folder of the model's file {}, nor below "
                          "it: put both into one folder, which can be moved as a whole",
                          file, model));
}

References find_references(const std::string& model, std::span<const std::string> files,
                           std::span<const TensorBytes> tensors) {
  Candidates candidates(model, files);
  References references;
  for (const TensorBytes& one : tensors) {
    Reference found;
    if (candidates.find(one, &found)) references.emplace(one.name, std::move(found));
  }
  if (references.empty() && !files.empty() && !tensors.empty()) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("none of the model's {} tensors is in {}: give the file that the model "
                            "was loaded from, or a path where there is none, which deploy() then "
                            "writes",
                            tensors.size(), fmt::join(files, ", ")));
  }
  return references;
}

}  // namespace graft::deploy
