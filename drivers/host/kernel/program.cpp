// drivers/host/kernel/program.cpp: compiles, loads and searches programs.
#include "program.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "compiler.h"
#include "device.h"
#include "graft/driver_blob.h"
#include "graft/driver_slot.h"
#include "pack.h"
#include "processor.h"
#include "settings.h"
#include "stream/fault.h"

graft_program_s::~graft_program_s() {
  if (handle != nullptr) dlclose(handle);
}

graft_kernel graft_program_s::find(const char* name) {
  std::lock_guard lock(mutex);
  auto& kernel = kernels[name];
  if (kernel == nullptr) {
    void* symbol = handle != nullptr ? dlsym(handle, name) : nullptr;
    if (symbol == nullptr && handle != nullptr) {
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

// What a blob needs where it is loaded, by whatever compiler it was made. level: "" for this very
// processor.
struct Need {
  explicit Need(const std::string& level) {
    if (level.empty()) {
      identity = "host 1; " + processor_line("model name") + "; " +
                 std::to_string(checksum(processor_line("flags")));
    } else {
      std::memcpy(magic + sizeof magic - 1 - level.size(), level.data(), level.size());
      identity = "host 1; " + full_name(level);
    }
  }

  char magic[9] = "grafths3";  // "grafthv4" for that level
  std::string identity;
};

// Of the blobs that program_compile makes.
const Need& need_of_code() {
  static const Need* need = new Need(code_level());
  return *need;
}

// Whether a blob is for a level of x86-64, which its first bytes say.
bool is_for(const Need& level, std::string_view blob) {
  return blob.substr(0, sizeof level.magic - 1) == level.magic;
}

graft_status refuse_level(const std::string& level) {
  const std::string& own = device_level();
  return fail(GRAFT_INVALID_ARGUMENT,
              "program_load: the blob is for processors from " + full_name(level) +
                  " on, and this " +
                  (own.empty() ? "one is below " + full_name(levels_up_to("v4").back())
                               : "device is of level " + full_name(own)));
}

// Finds the object in a blob that this device runs.
graft_status read_object(std::string_view blob, std::string_view* out_object) {
  const std::vector<std::string> own = levels_up_to(device_level());
  for (const std::string& level : levels_up_to("v4")) {
    const Need need(level);
    if (!is_for(need, blob)) continue;
    if (std::find(own.begin(), own.end(), level) == own.end()) return refuse_level(level);
    return read_blob(need.magic, blob, need.identity, out_object);
  }
  return read_blob(need_of_code().magic, blob, need_of_code().identity, out_object);
}

// Loads a shared object of memory alone.
graft_status open_object(std::string_view object, void** out_handle) {
  int file = memfd_create("graft-program", MFD_CLOEXEC);
  if (file < 0 || !write_all(file, object)) {
    std::string reason = strerror(errno);
    if (file >= 0) close(file);
    return fail(GRAFT_IO, "program_load: " + reason);
  }
  *out_handle = dlopen(fresh_path(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  std::string reason = *out_handle == nullptr ? dlerror() : "";
  close(file);
  return *out_handle != nullptr ? GRAFT_OK
                                : fail(GRAFT_INVALID_ARGUMENT, "program_load: " + reason);
}

const std::string& fingerprint() {
  static const std::string* text =
      new std::string(need_of_code().identity + "; " + compiler_identity());
  return *text;
}

}  // namespace

graft_status ProgramSlots::program_compile(graft_device device, const char* source,
                                           size_t source_bytes, const char* options,
                                           graft_sink blob) {
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
  write_blob(need_of_code().magic, object, need_of_code().identity, blob);
  return GRAFT_OK;
}

graft_status ProgramSlots::program_load(graft_device device, const void* blob, size_t bytes,
                                        graft_program* out_program) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (blob == nullptr || out_program == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_load: no blob or no out pointer given");
  }
  std::string_view object;
  graft_status status = read_object({static_cast<const char*>(blob), bytes}, &object);
  void* handle = nullptr;
  // A device that only compiles runs none of it.
  if (status == GRAFT_OK && settings().target.empty()) status = open_object(object, &handle);
  if (status != GRAFT_OK) return status;
  *out_program = new graft_program_s(handle);
  return GRAFT_OK;
}

graft_status ProgramSlots::program_unload(graft_program program) {
  if (program == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "program_unload: no program given");
  delete program;
  return GRAFT_OK;
}

graft_status ProgramSlots::toolchain_fingerprint(graft_device device, graft_sink text) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (text.write == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "toolchain_fingerprint: no sink given");
  text.write(text.context, fingerprint().data(), fingerprint().size());
  return GRAFT_OK;
}

graft_status ProgramSlots::kernel_find(graft_device device, graft_program program, const char* name,
                                       graft_kernel* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (name == nullptr || out == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "kernel_find: no name or no out pointer given");
  }
  if (program == nullptr) program = kernel_pack();
  graft_kernel kernel = program != nullptr ? program->find(name) : nullptr;
  if (kernel == nullptr) return fail(GRAFT_NOT_FOUND, "no kernel named " + std::string(name));
  *out = kernel;
  return GRAFT_OK;
}

}  // namespace graft::host
