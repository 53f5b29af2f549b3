// src/deploy/npy.cpp: NumPy's files of one array.
#include "deploy/npy.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <stdexcept>
#include <vector>

#include "runtime/driver/dtype.h"

namespace graft::infer {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
constexpr uint64_t kMostHeader = 1 << 20;

struct DtypeWord {
  graft_dtype dtype;
  const char* word;
};
constexpr DtypeWord kDtypeWords[] = {
    {GRAFT_BOOL, "|b1"},      {GRAFT_UINT8, "|u1"},      {GRAFT_INT8, "|i1"},
    {GRAFT_INT16, "<i2"},     {GRAFT_INT32, "<i4"},      {GRAFT_INT64, "<i8"},
    {GRAFT_FLOAT16, "<f2"},   {GRAFT_FLOAT32, "<f4"},    {GRAFT_FLOAT64, "<f8"},
    {GRAFT_COMPLEX64, "<c8"}, {GRAFT_COMPLEX128, "<c16"}};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw std::runtime_error(
      fmt::format("{}: {}; expected an array that numpy.save() wrote, row-major and little-endian",
                  path, what));
}

graft_dtype dtype_named(const std::string& path, const std::string& word) {
  for (const DtypeWord& one : kDtypeWords) {
    if (word == one.word) return one.dtype;
  }
  refuse(path, fmt::format("its dtype is '{}'", word));
}

std::string read_header(std::ifstream& file, const std::string& path) {
  char start[8];
  if (!file.read(start, sizeof start) || kMagic != std::string_view(start, kMagic.size())) {
    refuse(path, "it does not begin with NumPy's magic");
  }
  const auto version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) refuse(path, fmt::format("its version is {}", version));
  uint32_t length = 0;
  file.read(reinterpret_cast<char*>(&length), version == 1 ? 2 : 4);
  if (!file || length > kMostHeader) refuse(path, "its header has no length");
  std::string header(length, '\0');
  if (!file.read(header.data(), length)) refuse(path, "its header ends too early");
  return header;
}

std::string match(const std::string& path, const std::string& header, const char* pattern) {
  std::smatch found;
  if (std::regex_search(header, found, std::regex(pattern))) return found[1];
  refuse(path, fmt::format("its header is {}", header));
}

std::vector<int64_t> sizes_of(const std::string& path, const std::string& text) {
  std::vector<int64_t> sizes;
  const std::regex number("[0-9]+");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), number);
       it != std::sregex_iterator(); ++it) {
    if (it->length() > 18 || sizes.size() == GRAFT_ARRAY_RANK) refuse(path, "its shape is " + text);
    sizes.push_back(std::stoll(it->str()));
  }
  return sizes;
}

uint64_t bytes_of(const graft_array& tensor) {
  uint64_t bytes = size_of(static_cast<graft_dtype>(tensor.dtype));
  for (int d = 0; d < tensor.rank; ++d) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(tensor.sizes[d]), &bytes)) {
      throw std::runtime_error("an array has more bytes than 64 bits count");
    }
  }
  return bytes;
}

}  // namespace

Array zeros(graft_dtype dtype, const int64_t* sizes, uint16_t rank) {
  Array array;
  array.tensor.struct_size = sizeof(graft_array);
  array.tensor.dtype = static_cast<uint16_t>(dtype);
  array.tensor.rank = rank;
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    array.tensor.sizes[d] = sizes[d], array.tensor.strides[d] = stride;
    stride *= sizes[d];
  }
  array.memory.reset(new char[std::max<uint64_t>(bytes_of(array.tensor), 1)]());
  array.tensor.data = array.memory.get();
  return array;
}

Array read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, fmt::format("it does not open ({})", std::strerror(errno)));
  const std::string header = read_header(file, path);
  const graft_dtype dtype = dtype_named(path, match(path, header, "'descr': *'([^']*)'"));
  if (match(path, header, "'fortran_order': *(True|False)") == "True") {
    refuse(path, "it is column-major");
  }
  const auto sizes = sizes_of(path, match(path, header, "'shape': *(\\([0-9, ]*\\))"));
  const auto begin = static_cast<uint64_t>(file.tellg());
  file.seekg(0, std::ios::end);
  const uint64_t left = static_cast<uint64_t>(file.tellg()) - begin;
  graft_array shape{};
  shape.dtype = static_cast<uint16_t>(dtype), shape.rank = static_cast<uint16_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), shape.sizes);
  if (bytes_of(shape) != left) refuse(path, fmt::format("it has {} bytes of elements", left));
  Array array = zeros(dtype, sizes.data(), shape.rank);
  file.seekg(static_cast<std::streamoff>(begin));
  file.read(array.memory.get(), static_cast<std::streamsize>(left));
  return array;
}

void write_npy(const std::string& path, const graft_array& given) {
  graft_array tensor = given;
  std::vector<uint32_t> wide;
  if (tensor.dtype == GRAFT_BFLOAT16) {
    const uint64_t count = bytes_of(tensor) / 2;
    const auto* const halves = static_cast<const uint16_t*>(tensor.data);
    for (uint64_t i = 0; i < count; ++i) wide.push_back(static_cast<uint32_t>(halves[i]) << 16);
    tensor.dtype = GRAFT_FLOAT32, tensor.data = wide.data();
  }
  const char* word = "";
  for (const DtypeWord& one : kDtypeWords) {
    if (one.dtype == tensor.dtype) word = one.word;
  }
  std::string shape;
  for (int d = 0; d < tensor.rank; ++d) shape += fmt::format("{},", tensor.sizes[d]);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", word, shape);
  const size_t before = kMagic.size() + 2 + 2;
  header.append(kAlignment - 1 - (before + header.size()) % kAlignment, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::ofstream file(path, std::ios::binary);
  file << kMagic << '\x01' << '\0';
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << header;
  file.write(static_cast<const char*>(tensor.data), static_cast<std::streamsize>(bytes_of(tensor)));
  if (!file.flush()) {
    throw std::runtime_error(fmt::format("writing {} failed: {}", path, std::strerror(errno)));
  }
}

}  // namespace graft::infer
