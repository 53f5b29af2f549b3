// src/deploy/safetensors.cpp: files of named tensors in the format safetensors.
#include "deploy/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft::deploy {
namespace {

static_assert(std::endian::native == std::endian::little);

using Json = nlohmann::ordered_json;

constexpr uint64_t kLengthBytes = 8, kAlignment = 64;
constexpr uint64_t kMostHeader = 100'000'000;  // safetensors' own limit

struct DtypeWord {
  graft_dtype dtype;
  const char* word;
};
constexpr DtypeWord kDtypeWords[] = {
    {GRAFT_BOOL, "BOOL"},   {GRAFT_UINT8, "U8"},      {GRAFT_INT8, "I8"},
    {GRAFT_INT16, "I16"},   {GRAFT_INT32, "I32"},     {GRAFT_INT64, "I64"},
    {GRAFT_FLOAT16, "F16"}, {GRAFT_BFLOAT16, "BF16"}, {GRAFT_FLOAT32, "F32"},
    {GRAFT_FLOAT64, "F64"}, {GRAFT_COMPLEX64, "C64"}};

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(
      GRAFT_INVALID_ARGUMENT,
      fmt::format("{} is no readable file of tensors: {}. Copy or write it again", path, what));
}

[[noreturn]] void failed(const char* doing, const std::string& path) {
  throw Error(GRAFT_IO, fmt::format("{} {} failed: {}", doing, path, std::strerror(errno)));
}

void read_at(int file, void* to, uint64_t bytes, uint64_t from, const std::string& path) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(file, at, bytes, static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) failed("reading", path);
    if (got == 0) damaged(path, "it ends too early");
    at += got, from += static_cast<uint64_t>(got), bytes -= static_cast<uint64_t>(got);
  }
}

// The bytes of so many elements; nothing where that is more than a file can have.
std::optional<uint64_t> bytes_of(graft_dtype dtype, const std::vector<int64_t>& sizes) {
  uint64_t bytes = size_of(dtype);
  for (int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return {};
  }
  return bytes;
}

StoredTensor parsed(const std::string& name, const Json& entry) {
  StoredTensor tensor{.name = name, .sizes = entry.at("shape").get<std::vector<int64_t>>()};
  tensor.dtype = dtype_of_word(entry.at("dtype").get<std::string>());
  const auto offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
  if (offsets.size() != 2 || offsets[0] > offsets[1]) throw std::invalid_argument("offsets");
  tensor.begin = offsets[0], tensor.bytes = offsets[1] - offsets[0];
  if (bytes_of(tensor.dtype, tensor.sizes) != tensor.bytes) {
    throw std::invalid_argument("its sizes do not fit its bytes");
  }
  return tensor;
}

// Opened for writing under a name of its own beside path; removed unless it is renamed.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), name_(path + ".XXXXXX") {
    file_ = mkostemp(name_.data(), O_CLOEXEC);
    if (file_ < 0) failed("writing", path_);
  }
  ~NewFile() {
    if (file_ >= 0) close(file_);
    if (!name_.empty()) unlink(name_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const char* from, uint64_t bytes) {
    while (bytes > 0) {
      const ssize_t got = ::write(file_, from, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) failed("writing", path_);
      from += got, bytes -= static_cast<uint64_t>(got);
    }
  }

  void keep() {
    const mode_t mask = umask(0);
    umask(mask);
    const bool done = fchmod(file_, 0666 & ~mask) == 0 && fsync(file_) == 0;
    if (!done || rename(name_.c_str(), path_.c_str()) != 0) failed("writing", path_);
    name_.clear();
  }

 private:
  const std::string path_;
  std::string name_;
  int file_;
};

}  // namespace

graft_dtype dtype_of_word(const std::string& word) {
  for (const DtypeWord& one : kDtypeWords) {
    if (word == one.word) return one.dtype;
  }
  throw std::invalid_argument(fmt::format("it has a tensor of the unknown dtype \"{}\"", word));
}

const char* dtype_word(graft_dtype dtype) {
  for (const DtypeWord& one : kDtypeWords) {
    if (dtype == one.dtype) return one.word;
  }
  throw Error(GRAFT_UNSUPPORTED,
              fmt::format("safetensors has no dtype {}: store another one", name_of(dtype)));
}

TensorFile::TensorFile(std::string path) : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // no wait for a pipe's writer
  if (file_ < 0) {
    throw Error(GRAFT_NOT_FOUND, fmt::format("{} does not open: {}", path_, std::strerror(errno)));
  }
  try {
    read_header();
    add_tensors();
  } catch (const Error&) {
    close(file_);
    throw;
  } catch (const std::exception& error) {
    close(file_);
    damaged(path_, error.what());
  }
}

TensorFile::~TensorFile() { close(file_); }

void TensorFile::read_header() {
  struct stat facts {};
  if (fstat(file_, &facts) != 0) failed("reading", path_);
  if (!S_ISREG(facts.st_mode)) damaged(path_, "it is a folder or a device");
  const auto size = static_cast<uint64_t>(facts.st_size);
  uint64_t length = 0;
  if (size < kLengthBytes) damaged(path_, fmt::format("it has {} bytes", size));
  read_at(file_, &length, kLengthBytes, 0, path_);
  if (length > kMostHeader || length > size - kLengthBytes) {
    damaged(path_, fmt::format("its header would have {} bytes of {}", length, size));
  }
  header_.resize(length);
  read_at(file_, header_.data(), length, kLengthBytes, path_);
  data_ = kLengthBytes + length, bytes_ = size - data_;
}

void TensorFile::add_tensors() {
  const Json header = Json::parse(header_);
  if (!header.is_object()) damaged(path_, "its header is no object");
  std::vector<const StoredTensor*> order;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = entry.get<std::map<std::string, std::string>>();
      continue;
    }
    const auto [found, added] = tensors_.emplace(name, parsed(name, entry));
    if (!added) damaged(path_, fmt::format("it has two tensors \"{}\"", name));
    order.push_back(&found->second);
  }
  std::ranges::sort(order, {},
                    [](const StoredTensor* one) { return std::pair(one->begin, one->bytes); });
  uint64_t end = 0;
  for (const StoredTensor* one : order) {
    if (one->begin != end)
      damaged(path_, fmt::format("\"{}\" overlaps or leaves a gap", one->name));
    end += one->bytes;
  }
  if (end != bytes_) {
    damaged(path_, fmt::format("its tensors have {} bytes, the file has {}", end, bytes_));
  }
}

const StoredTensor& TensorFile::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) damaged(path_, fmt::format("it has no tensor \"{}\"", name));
  return found->second;
}

void TensorFile::read(const StoredTensor& tensor, void* to) const {
  read_at(file_, to, tensor.bytes, data_ + tensor.begin, path_);
}

std::string tensor_header(const std::map<std::string, std::string>& metadata,
                          std::span<const TensorBytes> tensors) {
  Json header;
  header["__metadata__"] = metadata;
  uint64_t begin = 0;
  for (const TensorBytes& one : tensors) {
    const uint64_t end = begin + one.bytes.size();
    header[one.name] = {
        {"dtype", dtype_word(one.dtype)}, {"shape", one.sizes}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((kAlignment - (text.size() + kLengthBytes) % kAlignment) % kAlignment, ' ');
  return text;
}

void write_tensors(const std::string& path, const std::string& header,
                   std::span<const TensorBytes> tensors) {
  NewFile file(path);
  const uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), kLengthBytes);
  file.write(header.data(), header.size());
  for (const TensorBytes& one : tensors) file.write(one.bytes.data(), one.bytes.size());
  file.keep();
}

void write_tensors(const std::string& path, std::span<const TensorBytes> tensors) {
  write_tensors(path, tensor_header({{"format", "pt"}}, tensors), tensors);
}

}  // namespace graft::deploy
