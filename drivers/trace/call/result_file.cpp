// drivers/trace/call/result_file.cpp: what the host got from the device, as a file.
#include "call/result_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>

namespace graft::trace {

// This process's memory as a file; -1: there is none.
static int memory_file() {
  static const int file = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  return file;
}

uint64_t hash_of_memory(uint64_t address, uint64_t bytes) {
  uint64_t hash = 0x9e3779b97f4a7c15 ^ bytes;
  thread_local std::array<uint64_t, 8192> words;
  while (bytes > 0) {
    words.fill(0);
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(bytes, sizeof words));
    const ssize_t got = ::pread(memory_file(), words.data(), wanted, static_cast<off_t>(address));
    if (got <= 0) return 0;
    for (size_t i = 0; i * sizeof(uint64_t) < static_cast<size_t>(got); ++i) {
      hash = (hash ^ words.at(i)) * 0xbf58476d1ce4e5b9;
      hash ^= hash >> 29;
    }
    address += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return hash == 0 ? 1 : hash;
}

ResultFile::~ResultFile() {
  if (file_ != nullptr) std::fclose(file_);
}

std::string ResultFile::open(const std::string& path, const std::string& driver) {
  if (memory_file() < 0) {
    return std::string("results needs /proc/self/mem: ") + std::strerror(errno);
  }
  const char* const rank = std::getenv("RANK");
  const std::string name =
      path + "." + driver + "." + (rank == nullptr ? "0" : rank) + "." + std::to_string(getpid());
  file_ = std::fopen(name.c_str(), "we");
  return file_ == nullptr ? "results cannot write '" + name + "': " + std::strerror(errno) : "";
}

void ResultFile::write(const std::string& key, uint64_t bytes, uint64_t hash, uint64_t command) {
  const std::lock_guard lock(mutex_);
  std::fprintf(file_, "%s %" PRIu64 " %016" PRIx64 " %" PRIu64 "\n", key.c_str(), bytes, hash,
               command);
  // A process that ends by a signal leaves what it had.
  std::fflush(file_);
}

void ResultFile::write_failure(const std::string& slot, const std::string& status) {
  const std::lock_guard lock(mutex_);
  std::fprintf(file_, "failure 0 %s:%s 0\n", slot.c_str(), status.c_str());
  std::fflush(file_);
}

}  // namespace graft::trace
