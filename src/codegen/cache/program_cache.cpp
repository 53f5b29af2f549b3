// src/codegen/cache/program_cache.cpp: compiled kernels: from the driver's pack, memory, disk or
// compiler.
#include "codegen/cache/program_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "codegen/cache/background_blob_writer.h"
#include "codegen/cache/blob_store.h"
#include "codegen/cache/carried_blobs.h"
#include "codegen/cache/compile_progress.h"
#include "codegen/cache/source_dump.h"
#include "codegen/cache/toolchain.h"
#include "codegen/ir/device_limits.h"
#include "codegen/math/without_float64.h"
#include "codegen/print/printer.h"
#include "runtime/driver/error.h"
#include "runtime/stream/command_trace.h"

namespace graft {

namespace {

// The kernel as the device can run it.
ir::Kernel fit(ir::Kernel kernel, const OpenDevice& device, const std::string& key) {
  const graft_device_properties& has = device.properties();
  check_limits(kernel, key, has, device.label());
  if (has.features & GRAFT_FEATURE_FLOAT64) return kernel;
  std::optional<ir::Kernel> narrow = ir::without_float64(kernel);
  if (!narrow) {
    throw Error(GRAFT_UNSUPPORTED,
                fmt::format("dtype float64 is not supported by device {}, '{}'; convert to float32 "
                            "(the kernel {} needs it)",
                            device.label(), has.name, key));
  }
  return *std::move(narrow);
}

// Where there is no compiler: that the files which are open lack kernels for this device's level of
// processors; "" if they have some.
std::string missing_level(OpenDevice& device) {
  const graft_driver_table& table = device.driver().table();
  std::string levels, refusal;
  for (const CarriedBlob& one : carried_levels()) {
    graft_program program = nullptr;
    const graft_status status = Driver::call(table.program_load, device.handle(), one.bytes.data(),
                                             one.bytes.size(), &program);
    if (status == GRAFT_OK) {
      if (table.program_unload != nullptr) Driver::call(table.program_unload, program);
      return "";
    }
    if (levels.empty()) refusal = device.driver().message(status);
    levels += (levels.empty() ? "" : ", ") + one.processor;
  }
  if (levels.empty()) return "";
  return fmt::format(
      ". The deployed model has kernels for {} ({}): deploy it with this device's level among its "
      "processors",
      levels, refusal);
}

class Entry {
 public:
  graft_kernel get(OpenDevice& device, const std::string& key,
                   const std::function<ir::Kernel()>& make) {
    const std::lock_guard lock(mutex_);
    if (kernel_ == nullptr && failure_ == nullptr) {
      try {
        find(device, key, make);
        name_kernel(kernel_, key);
      } catch (const Error& error) {
        if (!error.lacks_kernel()) throw;
        failure_ = std::make_unique<Error>(error);
      }
    }
    if (kernel_ == nullptr) throw Error(*failure_);
    return kernel_;
  }

 private:
  void find(OpenDevice& device, const std::string& key, const std::function<ir::Kernel()>& make) {
    const ir::Dialect* dialect = ir::find_dialect(device.properties().dialect);
    const graft_driver_table& table = device.driver().table();
    if (dialect == nullptr || table.kernel_find == nullptr || table.kernel_launch == nullptr) {
      throw Error(GRAFT_UNSUPPORTED,
                  fmt::format("{} runs no generated kernels: its driver {}", device.label(),
                              device.properties().dialect[0] == '\0'
                                  ? "states no dialect"
                                  : "lacks kernel_find or kernel_launch"));
    }
    const ir::Kernel kernel = fit(make(), device, key);
    dump_sources(key, kernel);
    const Program program = make_program(key, kernel, *dialect);
    if (Driver::call(table.kernel_find, device.handle(), nullptr, program.name.c_str(), &kernel_) ==
        GRAFT_OK) {
      return;
    }
    kernel_ = nullptr;
    if (table.program_compile == nullptr || table.program_load == nullptr) {
      throw Error(GRAFT_UNSUPPORTED,
                  fmt::format("{} has no compiler, and the driver's pack lacks {}", device.label(),
                              program.name));
    }
    // A carried blob is asked for first: the question to a compiler for its version takes longer.
    const std::string carried = hash_text(device.driver().name() + "\n" + program.source);
    if (table.toolchain_fingerprint != nullptr) {
      for (const CarriedBlob& one : carried_blobs(carried)) {
        if (take(device, one.bytes, carried, program.name)) return;
      }
    }
    const std::string toolchain = toolchain_of(device);
    const std::string file = hash_text(toolchain + "\n" + program.source);
    const bool keeps = !toolchain.empty() && blob_store().keeps();
    if (keeps && take(device, blob_store().read(file), carried, program.name)) return;
    const auto* programs = device.driver().extension<graft_programs_table>();
    if (programs != nullptr) {
      build(device, *programs, program);
      if (keeps) keep_later(device, *programs, program_, file);
      return;
    }
    const std::string blob = compile(device, program);
    device.check(load(device, blob, program.name), "loading a compiled kernel");
    if (!toolchain.empty()) note_blob(carried, blob);
    if (keeps) blob_store().write(file, blob);
  }

  // Loads a kept blob, if there is one and the driver takes it. carried: its hash in a file.
  bool take(OpenDevice& device, const std::optional<std::string>& kept, const std::string& carried,
            const std::string& name) {
    if (!kept || load(device, *kept, name) != GRAFT_OK) return false;
    note_blob(carried, *kept);
    return true;
  }

  static void check_compiled(OpenDevice& device, graft_status status, const Program& program) {
    try {
      device.check(status, "compiling " + program.name);
    } catch (const Error& error) {
      const std::string told =
          first_lines(error.what(), "GRAFT_DUMP_KERNELS=<folder> writes the source");
      throw Error(error.status(),
                  status == GRAFT_UNSUPPORTED ? told + missing_level(device) : told);
    }
  }

  void build(OpenDevice& device, const graft_programs_table& programs, const Program& program) {
    const CompileProgress progress(device.label());
    check_compiled(device,
                   Driver::call(programs.program_build, device.handle(), program.source.data(),
                                program.source.size(), "", &program_),
                   program);
    device.check(find_kernel(device, program.name), "finding a compiled kernel");
  }

  std::string compile(OpenDevice& device, const Program& program) {
    const CompileProgress progress(device.label());
    std::string blob;
    check_compiled(device,
                   Driver::call(device.driver().table().program_compile, device.handle(),
                                program.source.data(), program.source.size(), "", sink_into(&blob)),
                   program);
    return blob;
  }

  graft_status load(OpenDevice& device, const std::string& blob, const std::string& name) {
    const graft_status status = Driver::call(device.driver().table().program_load, device.handle(),
                                             blob.data(), blob.size(), &program_);
    return status == GRAFT_OK ? find_kernel(device, name) : status;
  }

  graft_status find_kernel(OpenDevice& device, const std::string& name) {
    const graft_status status = Driver::call(device.driver().table().kernel_find, device.handle(),
                                             program_, name.c_str(), &kernel_);
    if (status != GRAFT_OK) kernel_ = nullptr;
    return status;
  }

  std::mutex mutex_;
  graft_kernel kernel_ = nullptr;    // guarded by mutex_, as are the next
  graft_program program_ = nullptr;  // the kernel's, never unloaded; null for one of the pack
  std::unique_ptr<Error> failure_;
};

std::vector<PackEntry::Enumerate>& pack_entries() {
  static auto* entries = new std::vector<PackEntry::Enumerate>();
  return *entries;
}

}  // namespace

Program make_program(const std::string& key, ir::Kernel kernel, const ir::Dialect& dialect) {
  kernel.name = key;
  kernel.name += "_" + hash_text(ir::print(kernel, dialect)).substr(16);
  return {kernel.name, ir::print(kernel, dialect)};
}

graft_kernel get_kernel(OpenDevice& device, const std::string& key,
                        const std::function<ir::Kernel()>& make) {
  // Never destroyed: kernels may be asked for while the process ends.
  static auto* mutex = new std::mutex();
  static auto* entries = new std::unordered_map<std::string, std::unique_ptr<Entry>>();
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(*mutex);
    auto& slot = (*entries)[fmt::format("{}:{}", device.index(), key)];
    if (slot == nullptr) slot = std::make_unique<Entry>();
    entry = slot.get();
  }
  return entry->get(device, key, make);
}

PackEntry::PackEntry(Enumerate enumerate) { pack_entries().push_back(std::move(enumerate)); }
const std::vector<PackEntry::Enumerate>& PackEntry::all() { return pack_entries(); }

}  // namespace graft
