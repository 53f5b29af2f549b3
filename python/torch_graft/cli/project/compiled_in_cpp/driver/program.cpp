// driver/program.cpp: compiles Graft's kernels for the chip, and loads them.
//
// For the real chip: its compiler, and its loader. A blob goes to Graft's cache on the disk;
// graft/driver_blob.h notices a damaged one. If the compiler is a command, graft/driver_compiler.h
// runs it.
#include <memory>
#include <string>
#include <string_view>

#include "graft/driver_blob.h"
#include "graft/driver_slot.h"
#include "kernel.h"

namespace acme_driver {
namespace {

constexpr char kMagic[] = "acme_bin";
static_assert(sizeof kMagic == 9, "write_blob takes 8 characters");

// Frees the text at the end of a block.
struct Text : chip_text {
  Text() : chip_text{nullptr, 0} {}
  ~Text() { chip_text_free(this); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  std::string_view view() const {
    return bytes == nullptr ? std::string_view() : std::string_view(bytes, size);
  }
};

graft_status status_of_verdict(chip_verdict verdict) {
  switch (verdict) {
    case CHIP_COMPILED:
      return GRAFT_OK;
    case CHIP_SOURCE_ERROR:
      return GRAFT_COMPILE_ERROR;
    case CHIP_NO_COMPILER:
      return GRAFT_UNSUPPORTED;
    default:
      return GRAFT_IO;
  }
}

}  // namespace

graft_status ProgramSlots::program_compile(graft_device, const char* source, size_t source_bytes,
                                           const char* options, graft_sink blob) {
  Text binary, log;
  const graft_status status =
      status_of_verdict(chip_compile(source, source_bytes, options, &binary, &log));
  if (status != GRAFT_OK) return graft::fail(status, std::string(log.view()));
  graft::write_blob(kMagic, binary.view(), chip_compiler_identity(), blob);
  return GRAFT_OK;
}

graft_status ProgramSlots::program_load(graft_device, const void* blob, size_t bytes,
                                        graft_program* out_program) {
  std::string_view binary;
  const graft_status status = graft::read_blob(kMagic, {static_cast<const char*>(blob), bytes},
                                               chip_compiler_identity(), &binary);
  if (status != GRAFT_OK) return status;
  auto program = std::make_unique<graft_program_s>();
  char text[256];
  program->program.reset(chip_program_load(binary.data(), binary.size(), text, sizeof text));
  if (program->program == nullptr) {
    return graft::fail(GRAFT_INVALID_ARGUMENT, std::string("program_load: ") + text);
  }
  *out_program = program.release();
  return GRAFT_OK;
}

graft_status ProgramSlots::program_unload(graft_program program) {
  delete program;
  return GRAFT_OK;
}

graft_status ProgramSlots::toolchain_fingerprint(graft_device, graft_sink text) {
  const std::string_view identity = chip_compiler_identity();
  text.write(text.context, identity.data(), identity.size());
  return GRAFT_OK;
}

}  // namespace acme_driver
