// drivers/host/program.cpp: compiles, loads and searches programs.
#include "program.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "compiler.h"
#include "device.h"
#include "fault.h"
#include "graft/driver_slot.h"
#include "pack.h"
#include "settings.h"

graft_program_s::~graft_program_s() { dlclose(handle); }

graft_kernel graft_program_s::find(const char* name) {
  std::lock_guard lock(mutex);
  auto& kernel = kernels[name];
  if (kernel == nullptr) {
    void* symbol = dlsym(handle, name);
    if (symbol == nullptr) {
      kernels.erase(name);
      return nullptr;
    }
    kernel = std::make_unique<graft_kernel_s>();
    kernel->function = reinterpret_cast<decltype(kernel->function)>(symbol);
  }
  return kernel.get();
}

namespace graft::host {
namespace {

// A blob is this header and the bytes of a shared object.
struct Header {
  char magic[8];
  uint64_t bytes;
  uint64_t checksum;
};
constexpr char kMagic[8] = {'g', 'r', 'a', 'f', 't', 'h', 's', '1'};

// FNV-1a: finds damage, is no protection.
uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

// The dynamic linker takes a path that it has seen for the same library, and descriptors are used
// again, so every path is spelled differently: bits of a counter as "/" or "/.".
std::string fresh_path(int file) {
  static std::atomic<uint64_t> counter{0};
  std::string path = "/proc/self/fd";
  for (uint64_t bits = counter.fetch_add(1) + 1; bits != 0; bits >>= 1) {
    path += (bits & 1) != 0 ? "/." : "/";
  }
  return path + "/" + std::to_string(file);
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(size_t(written));
  }
  return true;
}

}  // namespace

graft_status program_compile(graft_device device, const char* source, size_t source_bytes,
                             const char* options, graft_sink blob) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (source == nullptr || blob.write == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_compile: no source or no sink given");
  }
  if (strikes(Fault::kCompile)) {
    return fail(GRAFT_COMPILE_ERROR, "compiling failed: planted by GRAFT_HOST_FAULTS");
  }
  std::string object, log;
  graft_status status =
      compile_c({source, source_bytes}, options != nullptr ? options : "", &object, &log);
  if (status != GRAFT_OK) return fail(status, log);
  Header header = {{}, object.size(), checksum(object)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  blob.write(blob.context, &header, sizeof header);
  blob.write(blob.context, object.data(), object.size());
  return GRAFT_OK;
}

graft_status program_load(graft_device device, const void* blob, size_t bytes,
                          graft_program* out_program) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (blob == nullptr || out_program == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_load: no blob or no place given");
  }
  Header header = {};
  std::memcpy(&header, blob, bytes < sizeof header ? 0 : sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.bytes != bytes - sizeof header) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_load: not a whole blob of this driver");
  }
  std::string_view object(static_cast<const char*>(blob) + sizeof header, header.bytes);
  if (checksum(object) != header.checksum) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_load: the blob is damaged");
  }
  int file = memfd_create("graft-program", MFD_CLOEXEC);
  if (file < 0 || !write_all(file, object)) {
    std::string reason = strerror(errno);
    if (file >= 0) close(file);
    return fail(GRAFT_IO, "program_load: " + reason);
  }
  void* handle = dlopen(fresh_path(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  std::string reason = handle == nullptr ? dlerror() : "";
  close(file);
  if (handle == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "program_load: " + reason);
  *out_program = new graft_program_s(handle);
  return GRAFT_OK;
}

graft_status program_unload(graft_program program) {
  if (program == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "program_unload: no program given");
  delete program;
  return GRAFT_OK;
}

graft_status toolchain_fingerprint(graft_device device, graft_sink text) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (text.write == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "toolchain_fingerprint: no sink");
  static const std::string* fingerprint = new std::string(
      "host 1; " + settings().compiler + "; " + compiler_version() + "; " +
      processor_line("model name") + "; " + std::to_string(checksum(processor_line("flags"))));
  text.write(text.context, fingerprint->data(), fingerprint->size());
  return GRAFT_OK;
}

graft_status kernel_find(graft_device device, graft_program program, const char* name,
                         graft_kernel* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (name == nullptr || out == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "kernel_find: no name or no place given");
  }
  if (program == nullptr) program = kernel_pack();
  graft_kernel kernel = program != nullptr ? program->find(name) : nullptr;
  if (kernel == nullptr) return fail(GRAFT_NOT_FOUND, "no kernel named " + std::string(name));
  *out = kernel;
  return GRAFT_OK;
}

}  // namespace graft::host
