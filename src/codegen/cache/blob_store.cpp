// src/codegen/cache/blob_store.cpp: compiled programs on disk, shared by processes.
#include "codegen/cache/blob_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace graft {

namespace {

namespace fs = std::filesystem;

struct Header {
  char magic[8];
  uint64_t bytes;
  uint64_t checksum;
};
constexpr char kMagic[8] = {'g', 'r', 'a', 'f', 't', 'k', 'c', '1'};

constexpr uint64_t kDefaultLimit = uint64_t{256} << 20;

std::string default_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (std::string own = variable("GRAFT_CACHE_DIR"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/graft";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/graft";
  return "";
}

uint64_t default_limit() {
  const char* text = std::getenv("GRAFT_CACHE_LIMIT");
  if (text == nullptr) return kDefaultLimit;
  char* end = nullptr;
  const uint64_t limit = std::strtoull(text, &end, 10);
  return end == text ? kDefaultLimit : limit;
}

}  // namespace

BlobStore::BlobStore(std::string folder, uint64_t limit)
    : folder_(std::move(folder)), limit_(limit) {}

bool BlobStore::ready() {
  if (!asked_) {
    asked_ = true;
    usable_ = limit_ != 0 && !folder_.empty() && open_folder();
  }
  return usable_;
}

bool BlobStore::open_folder() {
  std::error_code error;
  fs::create_directories(fs::path(folder_).parent_path(), error);
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    warn(std::strerror(errno));
    return false;
  }
  struct stat found {};
  if (stat(folder_.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    warn("the path is not a folder");
    return false;
  }
  // What others may write there would run in this process.
  if (found.st_uid != geteuid() || (found.st_mode & 0022) != 0) {
    warn("other users may write to the folder: make it yours, with mode 0700");
    return false;
  }
  return true;
}

uint64_t BlobStore::bytes_of_folder() const {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder_, error)) bytes += file.file_size(error);
  return bytes;
}

void BlobStore::warn(const std::string& what) {
  if (warned_) return;
  warned_ = true;
  std::fprintf(stderr,
               "graft: warning: kernel cache %s: %s. Missing kernels are compiled again; "
               "GRAFT_CACHE_DIR names another folder.\n",
               folder_.c_str(), what.c_str());
}

bool BlobStore::keeps() {
  const std::lock_guard lock(mutex_);
  return ready();
}

std::optional<std::string> BlobStore::read(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (!ready()) return std::nullopt;
  const std::string path = folder_ + "/" + name;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Header header{};
  if (bytes.size() >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
  bytes.erase(0, sizeof header);
  const bool whole = std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
                     header.bytes == bytes.size() &&
                     header.checksum == XXH3_64bits(bytes.data(), bytes.size());
  if (!whole) {
    warn("a damaged file was removed");
    unlink(path.c_str());
    return std::nullopt;
  }
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // was used now
  return bytes;
}

bool BlobStore::write_file(const std::string& path, std::string_view bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  Header header{{}, bytes.size(), XXH3_64bits(bytes.data(), bytes.size())};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::string all(reinterpret_cast<const char*>(&header), sizeof header);
  all += bytes;
  size_t done = 0;
  while (done < all.size()) {
    const ssize_t written = ::write(file, all.data() + done, all.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  const int error = errno;
  const bool closed = close(file) == 0;
  if (done < all.size()) errno = error;
  return closed && done == all.size();
}

void BlobStore::write(const std::string& name, std::string_view bytes) {
  static std::atomic<uint64_t> counter{0};
  const std::lock_guard lock(mutex_);
  if (!ready()) return;
  const std::string path = folder_ + "/" + name;
  const std::string fresh =
      path + "." + std::to_string(getpid()) + "." + std::to_string(counter.fetch_add(1));
  if (!write_file(fresh, bytes) || rename(fresh.c_str(), path.c_str()) != 0) {
    warn(std::strerror(errno));
    unlink(fresh.c_str());
    return;
  }
  bytes_ = bytes_ ? *bytes_ + bytes.size() + sizeof(Header) : bytes_of_folder();
  if (*bytes_ > limit_) evict();
}

void BlobStore::evict() {
  struct File {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::error_code error;
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder_, error)) {
    files.push_back({file.last_write_time(error), file.file_size(error), file.path()});
    bytes += files.back().bytes;
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  // Down to three quarters, so that not every write evicts.
  for (size_t i = 0; i + 1 < files.size() && bytes > limit_ / 4 * 3; ++i) {
    if (fs::remove(files[i].path, error)) bytes -= files[i].bytes;
  }
  bytes_ = bytes;
}

BlobStore& blob_store() {
  static auto* store = new BlobStore(default_folder(), default_limit());
  return *store;
}

}  // namespace graft
