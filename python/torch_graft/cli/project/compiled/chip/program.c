/* chip/program.c: loads compiled programs into the emulated chip. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compiler.h"

struct chip_program {
  void* library;
};

/* The dynamic linker takes a path that it has seen for the same library, and descriptors are used
 * again: the bits of a counter, as "/." or "/", make each path another one. */
static void fresh_path(char* path, size_t capacity, int file) {
  static atomic_ulong counter;
  size_t used = (size_t)snprintf(path, capacity, "/proc/self/fd");
  for (unsigned long bits = atomic_fetch_add(&counter, 1) + 1; bits != 0; bits >>= 1) {
    used += (size_t)snprintf(path + used, capacity - used, "%s", (bits & 1) != 0 ? "/." : "/");
  }
  snprintf(path + used, capacity - used, "/%d", file);
}

static bool write_all(int file, const char* bytes, size_t size) {
  while (size != 0) {
    const ssize_t written = write(file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= (size_t)written;
  }
  return true;
}

chip_program* chip_program_load(const void* binary, size_t bytes, char* out_text, size_t capacity) {
  chip_program* self = malloc(sizeof *self);
  const int file = memfd_create("acme-program", MFD_CLOEXEC);
  if (self == NULL || file < 0 || !write_all(file, binary, bytes)) {
    snprintf(out_text, capacity, "%s", strerror(errno));
    if (file >= 0) close(file);
    free(self);
    return NULL;
  }
  char path[256];
  fresh_path(path, sizeof path, file);
  self->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (self->library == NULL) {
    const char* reason = dlerror();
    snprintf(out_text, capacity, "%s", reason != NULL ? reason : "unknown");
    free(self);
    self = NULL;
  }
  close(file);
  return self;
}

void chip_program_unload(chip_program* self) {
  dlclose(self->library);
  free(self);
}

chip_kernel chip_program_find(chip_program* self, const char* name) {
  void* symbol = dlsym(self->library, name);
  chip_kernel kernel = NULL;
  memcpy(&kernel, &symbol, sizeof kernel); /* C has no cast from an object to a function */
  return kernel;
}
