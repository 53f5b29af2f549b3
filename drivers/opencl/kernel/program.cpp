// drivers/opencl/kernel/program.cpp: compiles, loads and searches programs.
#include "program.h"

#include <string_view>
#include <vector>

#include "graft/driver_blob.h"
#include "graft/driver_slot.h"
#include "platform/device.h"
#include "platform/status.h"

namespace graft::opencl {
namespace {

// As much of a build log as helps.
constexpr size_t kLogBytes = 6000;
constexpr char kMagic[] = "graftcl1";

struct Program {
  cl_program handle = nullptr;
  ~Program() {
    if (handle != nullptr) cl().ReleaseProgram(handle);
  }
};

std::string build_log(graft_device device, cl_program program) {
  const cl_device_id id = device->listed.device;
  size_t bytes = 0;
  cl().GetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  if (bytes != 0) {
    cl().GetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  }
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  if (log.size() <= kLogBytes) return log;
  const std::string cut = std::to_string(log.size() - kLogBytes);
  log.resize(kLogBytes);
  return log + "\n... and " + cut + " bytes more";
}

bool is_build_error(cl_int code) {
  return code == CL_BUILD_PROGRAM_FAILURE || code == CL_INVALID_PROGRAM ||
         code == CL_COMPILE_PROGRAM_FAILURE || code == CL_LINK_PROGRAM_FAILURE ||
         code == CL_INVALID_BUILD_OPTIONS;
}

cl_int read_binary(cl_program program, std::vector<unsigned char>* out) {
  size_t bytes = 0;
  cl_int code =
      cl().GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr);
  if (code != CL_SUCCESS) return code;
  if (bytes == 0) return CL_INVALID_BINARY;
  out->resize(bytes);
  unsigned char* place = out->data();
  return cl().GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof place, &place, nullptr);
}

// What a blob depends on.
std::string identity_of(graft_device device) {
  const Capabilities& known = device->listed.capabilities;
  return "opencl 1; " + known.identity + "; " + known.options + "; " + name_of(known.memory);
}

std::string words_of(graft_device device, const char* options) {
  std::string words = options != nullptr ? options : "";
  if (words.find("-cl-std=") != std::string::npos) return words;
  return device->listed.capabilities.options + " " + words;
}

// Compiles and links in the context. what: the slot, for messages.
graft_status build(graft_device device, cl_context context, std::string_view source,
                   const std::string& words, const std::string& what, Program* out) {
  const Capabilities& known = device->listed.capabilities;
  if (!known.compiler) {
    return fail(GRAFT_UNSUPPORTED, "the device " + known.name + " has no compiler");
  }
  cl_int code = CL_SUCCESS;
  const char* text = source.data();
  const size_t bytes = source.size();
  out->handle = cl().CreateProgramWithSource(context, 1, &text, &bytes, &code);
  if (code != CL_SUCCESS) return device->failed(code, what, GRAFT_INTERNAL);
  code = cl().BuildProgram(out->handle, 1, &device->listed.device, words.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return GRAFT_OK;
  if (!is_build_error(code)) return device->failed(code, what, GRAFT_COMPILE_ERROR);
  return fail(GRAFT_COMPILE_ERROR, "the OpenCL compiler of " + known.name + " said " +
                                       code_name(code) + " with the options " + words + "\n" +
                                       build_log(device, out->handle));
}

void write(graft_device device, const std::vector<unsigned char>& binary, graft_sink blob) {
  write_blob(kMagic, {reinterpret_cast<const char*>(binary.data()), binary.size()},
             identity_of(device), blob);
}

graft_status save(graft_device device, cl_program program, graft_sink blob) {
  std::vector<unsigned char> binary;
  const cl_int code = read_binary(program, &binary);
  if (code != CL_SUCCESS) return device->failed(code, "reading a binary", GRAFT_COMPILE_ERROR);
  write(device, binary, blob);
  return GRAFT_OK;
}

// PoCL 3.1 keeps one machine code for each kernel and group size, which it looks up again when a
// launch ends. What it makes of a binary has a group size only where the source requires one; made
// while the kernel runs for the first time it takes the other's place, and PoCL aborts. So these
// binaries are read before the first launch.
bool is_read_at_once(std::string_view source) {
  return source.find("reqd_work_group_size") != std::string_view::npos;
}

}  // namespace

graft_status ProgramSlots::program_build(graft_device device, const char* source,
                                         size_t source_bytes, const char* options,
                                         graft_program* out_program) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (source == nullptr || out_program == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_build: no source or no out pointer given");
  }
  const std::string_view text(source, source_bytes);
  const std::string words = words_of(device, options);
  Program program;
  const graft_status status =
      build(device, device->context, text, words, "program_build", &program);
  if (status != GRAFT_OK) return status;
  auto made = std::make_unique<graft_program_s>(device, program.handle, std::string(text), words);
  program.handle = nullptr;
  if (is_processor(device->listed.capabilities.type) && is_read_at_once(text)) {
    const cl_int code = read_binary(made->handle, &made->binary);
    if (code != CL_SUCCESS) return device->failed(code, "reading a binary", GRAFT_COMPILE_ERROR);
  }
  *out_program = made.release();
  return GRAFT_OK;
}

// PoCL holds a lock of the context while it makes machine code, and makes more of it for a binary
// than the program needs: in a context of its own that stops nobody. Other devices than processors
// have their binary at hand, and contexts there are dear.
graft_status ProgramSlots::program_save(graft_program program, graft_sink blob) {
  if (program == nullptr || blob.write == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_save: no program or no sink given");
  }
  const graft_device device = program->device;
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (program->source.empty()) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "program_save: the program was loaded from a blob, not made by program_build");
  }
  if (!program->binary.empty()) {
    write(device, program->binary, blob);
    return GRAFT_OK;
  }
  if (!is_processor(device->listed.capabilities.type)) return save(device, program->handle, blob);
  {
    std::lock_guard lock(device->mutex);
    cl_int code = CL_SUCCESS;
    if (device->saving == nullptr) device->saving = create_context(device->listed, &code);
    if (code != CL_SUCCESS) return device->failed(code, "a second context", GRAFT_INTERNAL);
  }
  Program copy;
  const graft_status status =
      build(device, device->saving, program->source, program->options, "program_save", &copy);
  return status == GRAFT_OK ? save(device, copy.handle, blob) : status;
}

graft_status ProgramSlots::program_compile(graft_device device, const char* source,
                                           size_t source_bytes, const char* options,
                                           graft_sink blob) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (source == nullptr || blob.write == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_compile: no source or no sink given");
  }
  Program program;
  const graft_status status = build(device, device->context, {source, source_bytes},
                                    words_of(device, options), "program_compile", &program);
  return status == GRAFT_OK ? save(device, program.handle, blob) : status;
}

graft_status ProgramSlots::program_load(graft_device device, const void* blob, size_t bytes,
                                        graft_program* out_program) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (blob == nullptr || out_program == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_load: no blob or no out pointer given");
  }
  std::string_view binary;
  graft_status status =
      read_blob(kMagic, {static_cast<const char*>(blob), bytes}, identity_of(device), &binary);
  if (status != GRAFT_OK) return status;
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int code = CL_SUCCESS, accepted = CL_SUCCESS;
  Program program;
  program.handle = cl().CreateProgramWithBinary(device->context, 1, &device->listed.device, &size,
                                                &data, &accepted, &code);
  if (code == CL_SUCCESS) code = accepted;
  if (code == CL_SUCCESS) {
    code = cl().BuildProgram(program.handle, 1, &device->listed.device, "", nullptr, nullptr);
  }
  if (code != CL_SUCCESS) {
    return device->failed(code,
                          "program_load: the device refuses its binary; compile the program again",
                          GRAFT_INVALID_ARGUMENT);
  }
  *out_program = new graft_program_s(device, program.handle);
  program.handle = nullptr;
  return GRAFT_OK;
}

graft_status ProgramSlots::program_unload(graft_program program) {
  if (program == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "program_unload: no program given");
  if (!forked()) delete program;
  return GRAFT_OK;
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
  if (program != nullptr) return program->find(name, out);
  return fail(GRAFT_NOT_FOUND,
              "the OpenCL driver has no kernel pack, so no kernel " + std::string(name));
}

}  // namespace graft::opencl

graft_program_s::~graft_program_s() {
  kernels.clear();
  graft::opencl::cl().ReleaseProgram(handle);
}

graft_status graft_program_s::find(const char* name, graft_kernel* out) {
  std::lock_guard lock(mutex);
  auto& kernel = kernels[name];
  if (kernel == nullptr) {
    cl_int code = CL_SUCCESS;
    const cl_kernel made = graft::opencl::cl().CreateKernel(handle, name, &code);
    if (code != CL_SUCCESS) {
      kernels.erase(name);
      return device->failed(code, "the kernel " + std::string(name), GRAFT_LAUNCH_FAILED);
    }
    kernel = std::make_unique<graft_kernel_s>(device, name, made);
  }
  *out = kernel.get();
  return GRAFT_OK;
}
