// drivers/veda/program/program.cpp: compiles, loads and searches programs.
#include "program/program.h"

#include <string_view>
#include <utility>

#include "device.h"
#include "graft/driver_blob.h"
#include "graft/driver_compiler.h"
#include "graft/driver_slot.h"
#include "program/compiler.h"
#include "program/entry.h"

namespace graft::veda {
namespace {

constexpr char kMagic[] = "graftve1";

// VE3 runs other machine code than VE1 and VE2.
std::string identity_of(graft_device device) {
  return toolchain() + "; VE" + std::to_string(device->listed.model);
}

// VEDA loads files alone. For a VE3 it looks for the name with a 3 behind it first.
bool write_library(const TemporaryFolder& folder, graft_device device, std::string_view bytes) {
  return write_file(folder.file("kernel.vso"), bytes) &&
         (device->listed.model < 3 || write_file(folder.file("kernel.vso3"), bytes));
}

// Takes no turn: whoever holds one closes what it opened.
graft_status open_module(Turn& turn, const std::string& path, VEDAmodule* out_module,
                         VEDAfunction* out_entry) {
  Called called = GRAFT_VEDA_CALL(ModuleLoad, out_module, path.c_str());
  if (!called.ok()) {
    return turn.failed(called, "program_load: the device does not load the program",
                       GRAFT_INVALID_ARGUMENT);
  }
  called = GRAFT_VEDA_CALL(ModuleGetFunction, out_entry, *out_module, kEntryName);
  if (called.ok()) return GRAFT_OK;
  veda().ModuleUnload(*out_module);
  turn.failed(called, "program_load: the program has no entry", GRAFT_INVALID_ARGUMENT);
  return fail(GRAFT_INVALID_ARGUMENT, std::string(last_text()));
}

}  // namespace

graft_status ProgramSlots::program_compile(graft_device device, const char* source,
                                           size_t source_bytes, const char* options,
                                           graft_sink blob) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (source == nullptr || blob.write == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_compile: no source or no sink given");
  }
  std::string library, log;
  const graft_status status =
      compile_program({source, source_bytes}, options != nullptr ? options : "", &library, &log);
  if (status != GRAFT_OK) return fail(status, log);
  write_blob(kMagic, library, identity_of(device), blob);
  return GRAFT_OK;
}

graft_status ProgramSlots::program_load(graft_device device, const void* blob, size_t bytes,
                                        graft_program* out_program) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (blob == nullptr || out_program == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_load: no blob or no out pointer given");
  }
  std::string_view library;
  graft_status status =
      read_blob(kMagic, {static_cast<const char*>(blob), bytes}, identity_of(device), &library);
  if (status != GRAFT_OK) return status;
  const TemporaryFolder folder("graft-veda");
  if (!folder.exists()) return fail(GRAFT_IO, "program_load: " + folder.problem());
  if (!write_library(folder, device, library)) {
    return fail(GRAFT_IO, "program_load: cannot write " + folder.file("kernel.vso") +
                              ": free disk space, or name another folder in TMPDIR");
  }
  Turn turn(device);
  if (status = turn.status(); status != GRAFT_OK) return status;
  VEDAmodule module_ = nullptr;
  VEDAfunction entry = {};
  status = open_module(turn, folder.file("kernel.vso"), &module_, &entry);
  if (status == GRAFT_OK) *out_program = new graft_program_s{device, module_, entry, {}, {}};
  return status;
}

graft_status ProgramSlots::program_unload(graft_program program) {
  if (program == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "program_unload: no program given");
  if (forked()) return GRAFT_OK;
  const std::unique_ptr<graft_program_s> owned(program);
  if (program->device->is_lost()) return GRAFT_OK;
  Turn turn(program->device);
  if (turn.status() != GRAFT_OK) return GRAFT_OK;
  const Called called = GRAFT_VEDA_CALL(ModuleUnload, program->module_);
  return called.ok() ? GRAFT_OK : turn.failed(called, "unloading a program", GRAFT_INTERNAL);
}

graft_status ProgramSlots::toolchain_fingerprint(graft_device device, graft_sink text) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (text.write == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "toolchain_fingerprint: no sink given");
  const std::string identity = identity_of(device);
  text.write(text.context, identity.data(), identity.size());
  return GRAFT_OK;
}

graft_status ProgramSlots::kernel_find(graft_device device, graft_program program, const char* name,
                                       graft_kernel* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (name == nullptr || out == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "kernel_find: no name or no out pointer given");
  }
  if (program == nullptr) {
    return fail(GRAFT_NOT_FOUND,
                "the VEDA driver has no kernel pack, so no kernel " + std::string(name));
  }
  std::lock_guard lock(program->mutex);
  std::unique_ptr<graft_kernel_s>& kernel = program->kernels[name];
  if (kernel == nullptr) {
    Turn turn(device);
    graft_status status = turn.status();
    VEDAfunction function = {};
    if (status == GRAFT_OK) {
      const Called called = GRAFT_VEDA_CALL(ModuleGetFunction, &function, program->module_, name);
      if (!called.ok()) {
        status = turn.failed(called, "the kernel " + std::string(name), GRAFT_LAUNCH_FAILED);
      }
    }
    if (status != GRAFT_OK) {
      program->kernels.erase(name);
      return status;
    }
    kernel.reset(new graft_kernel_s{device, name, function.ptr, program->entry});
  }
  *out = kernel.get();
  return GRAFT_OK;
}

}  // namespace graft::veda
