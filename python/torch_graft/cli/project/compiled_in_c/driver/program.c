/* driver/program.c: compiles Graft's kernels for the chip, loads them and finds them by name.
 *
 * For the real chip: its compiler, and its loader. A blob goes to Graft's cache on the disk, so
 * program_load must notice a damaged one: here by a checksum before the binary. */
#include <stdlib.h>
#include <string.h>

#include "chip/compiler.h"
#include "driver.h"
#include "kernel.h"

static const char kMagic[8] = "acme_bin";

typedef struct blob_header {
  char magic[8];
  uint64_t bytes, checksum; /* of the binary, which follows; the checksum covers the identity */
} blob_header;

struct graft_program_s {
  chip_program* program;
  pthread_mutex_t mutex; /* guards what follows */
  graft_kernel kernels;
};

/* FNV-1a: finds damage, not forgery. */
static uint64_t checksum(uint64_t hash, const void* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ ((const unsigned char*)bytes)[i]) * UINT64_C(0x100000001b3);
  }
  return hash;
}

static blob_header header_of(const void* binary, size_t bytes) {
  const char* identity = chip_compiler_identity();
  const uint64_t start = checksum(UINT64_C(0xcbf29ce484222325), identity, strlen(identity));
  blob_header header = {{0}, bytes, checksum(start, binary, bytes)};
  memcpy(header.magic, kMagic, sizeof header.magic);
  return header;
}

static graft_status status_of_verdict(chip_verdict verdict, const char* log) {
  switch (verdict) {
    case CHIP_COMPILED:
      return GRAFT_OK;
    case CHIP_SOURCE_ERROR:
      return failed(GRAFT_COMPILE_ERROR, "%s", log);
    case CHIP_NO_COMPILER:
      return failed(GRAFT_UNSUPPORTED, "%s", log);
    default:
      return failed(GRAFT_IO, "%s", log);
  }
}

graft_status program_compile(graft_device device, const char* source, size_t source_bytes,
                             const char* options, graft_sink blob) {
  (void)device;
  chip_text binary, log;
  const chip_verdict verdict = chip_compile(source, source_bytes, options, &binary, &log);
  const graft_status status = status_of_verdict(verdict, log.bytes != NULL ? log.bytes : "");
  if (status == GRAFT_OK) {
    const blob_header header = header_of(binary.bytes, binary.size);
    blob.write(blob.context, &header, sizeof header);
    blob.write(blob.context, binary.bytes, binary.size);
  }
  chip_text_free(&binary);
  chip_text_free(&log);
  return status;
}

graft_status program_load(graft_device device, const void* blob, size_t bytes,
                          graft_program* out_program) {
  (void)device;
  blob_header found = {0};
  const char* binary = (const char*)blob + sizeof found;
  if (bytes > sizeof found) memcpy(&found, blob, sizeof found);
  if (memcmp(found.magic, kMagic, sizeof kMagic) != 0 || found.bytes != bytes - sizeof found ||
      found.checksum != header_of(binary, found.bytes).checksum) {
    return failed(GRAFT_INVALID_ARGUMENT,
                  "program_load: the blob is damaged or another compiler's: compile again");
  }
  char text[256];
  graft_program program = calloc(1, sizeof *program);
  if (program == NULL) return failed(GRAFT_OUT_OF_MEMORY, "program_load: no host memory is left");
  program->program = chip_program_load(binary, found.bytes, text, sizeof text);
  if (program->program == NULL) {
    free(program);
    return failed(GRAFT_INVALID_ARGUMENT, "program_load: %s", text);
  }
  pthread_mutex_init(&program->mutex, NULL);
  *out_program = program;
  return GRAFT_OK;
}

graft_status program_unload(graft_program program) {
  while (program->kernels != NULL) {
    graft_kernel next = program->kernels->next;
    free(program->kernels);
    program->kernels = next;
  }
  chip_program_unload(program->program);
  pthread_mutex_destroy(&program->mutex);
  free(program);
  return GRAFT_OK;
}

graft_status toolchain_fingerprint(graft_device device, graft_sink text) {
  (void)device;
  const char* identity = chip_compiler_identity();
  text.write(text.context, identity, strlen(identity));
  return GRAFT_OK;
}

graft_status kernel_find(graft_device device, graft_program program, const char* name,
                         graft_kernel* out) {
  (void)device;
  if (program == NULL) return failed(GRAFT_NOT_FOUND, "the driver has no pack of kernels");
  const chip_kernel entry = chip_program_find(program->program, name);
  if (entry == NULL) return failed(GRAFT_NOT_FOUND, "the program has no kernel %s", name);
  graft_kernel kernel = malloc(sizeof *kernel);
  if (kernel == NULL) return failed(GRAFT_OUT_OF_MEMORY, "kernel_find: no host memory is left");
  kernel->entry = entry;
  pthread_mutex_lock(&program->mutex);
  kernel->next = program->kernels;
  program->kernels = kernel;
  pthread_mutex_unlock(&program->mutex);
  *out = kernel;
  return GRAFT_OK;
}
