/* chip/compiler.c: runs a C compiler as a command, in a temporary folder. */
#define _GNU_SOURCE
#include "compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

/* A binary runs on any machine of this architecture. No traps, no errno: loops become vectors. */
static const char kOptions[] =
    "-std=gnu11 -O2 -ftree-vectorize -fno-math-errno -fno-trapping-math -fopenmp-simd -w -shared "
    "-fPIC";

enum { kWords = 128, kPath = 4096 };

typedef struct folder {
  char path[kPath], source[kPath], binary[kPath], log[kPath];
} folder;

static chip_text text_of(const char* format, const char* what, const char* why) {
  chip_text text = {NULL, 0};
  const int size = asprintf(&text.bytes, format, what, why);
  if (size < 0) return (chip_text){NULL, 0};
  text.size = (size_t)size;
  return text;
}

static bool make(folder* self) {
  const char* root = getenv("TMPDIR");
  if (root == NULL || *root == '\0') root = "/tmp";
  if (snprintf(self->path, sizeof self->path - 16, "%s/acme-XXXXXX", root) >= kPath - 16) {
    return false;
  }
  if (mkdtemp(self->path) == NULL) return false;
  stpcpy(stpcpy(self->source, self->path), "/kernel.c");
  stpcpy(stpcpy(self->binary, self->path), "/kernel.so");
  stpcpy(stpcpy(self->log, self->path), "/log");
  return true;
}

static void clean(const folder* self) {
  unlink(self->source);
  unlink(self->binary);
  unlink(self->log);
  rmdir(self->path);
}

static bool write_file(const char* path, const char* bytes, size_t size) {
  FILE* file = fopen(path, "wb");
  if (file == NULL) return false;
  const bool written = fwrite(bytes, 1, size, file) == size;
  return fclose(file) == 0 && written;
}

static chip_text read_file(const char* path) {
  chip_text text = {NULL, 0};
  FILE* file = fopen(path, "rb");
  if (file == NULL) return text;
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  if (size >= 0 && fseek(file, 0, SEEK_SET) == 0) text.bytes = calloc(1, (size_t)size + 1);
  if (text.bytes != NULL) text.size = fread(text.bytes, 1, (size_t)size, file);
  fclose(file);
  return text;
}

static size_t add_words(char* text, char** words, size_t count) {
  char* rest = NULL;
  for (char* word = strtok_r(text, " ", &rest); word != NULL && count < kWords - 8;
       word = strtok_r(NULL, " ", &rest)) {
    words[count++] = word;
  }
  return count;
}

/* The exit status; 127 if the command did not start. */
static int run(char** words, const char* log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, words[0], &actions, NULL, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 0; /* who ignores SIGCHLD gets no status: the binary tells */
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char* command(void) {
  const char* name = getenv("ACME_CC");
  return name != NULL && *name != '\0' ? name : "cc";
}

static chip_verdict compile_in(const folder* place, const char* options, chip_text* out_binary,
                               chip_text* out_log) {
  char *words[kWords], *own = NULL;
  if (asprintf(&own, "%s %s %s", command(), kOptions, options != NULL ? options : "") < 0) {
    *out_log = text_of("%s%s", "no host memory is left", "");
    return CHIP_NO_FILES;
  }
  size_t count = add_words(own, words, 0);
  char *output = strdup(place->binary), *source = strdup(place->source);
  char flag[] = "-o", math[] = "-lm";
  char* const last[] = {flag, output, source, math, NULL};
  memcpy(words + count, last, sizeof last);
  const int status = run(words, place->log);
  free(own);
  free(output);
  free(source);
  *out_log = read_file(place->log);
  if (status == 127) {
    chip_text_free(out_log);
    *out_log = text_of("the compiler '%s' does not start: install it, or name another in %s",
                       command(), "ACME_CC");
    return CHIP_NO_COMPILER;
  }
  if (status == 0) *out_binary = read_file(place->binary);
  return out_binary->size != 0 ? CHIP_COMPILED : CHIP_SOURCE_ERROR;
}

chip_verdict chip_compile(const char* source, size_t bytes, const char* options,
                          chip_text* out_binary, chip_text* out_log) {
  folder place;
  *out_binary = (chip_text){NULL, 0};
  if (!make(&place)) {
    *out_log = text_of("no temporary folder: %s; set %s to one that can be written",
                       strerror(errno), "TMPDIR");
    return CHIP_NO_FILES;
  }
  chip_verdict verdict = CHIP_NO_FILES;
  if (write_file(place.source, source, bytes)) {
    verdict = compile_in(&place, options, out_binary, out_log);
  } else {
    *out_log = text_of("cannot write %s: %s", place.source, strerror(errno));
  }
  clean(&place);
  return verdict;
}

void chip_text_free(chip_text* text) {
  free(text->bytes);
  *text = (chip_text){NULL, 0};
}

static char identity[kPath];

static void find_identity(void) {
  folder place;
  chip_text said = {NULL, 0};
  if (make(&place)) {
    char name[kPath], version[] = "--version", *words[kWords];
    snprintf(name, sizeof name, "%s", command());
    const size_t count = add_words(name, words, 0);
    words[count] = version;
    words[count + 1] = NULL;
    if (count != 0 && run(words, place.log) == 0) said = read_file(place.log);
    clean(&place);
  }
  if (said.bytes != NULL) said.bytes[strcspn(said.bytes, "\n")] = '\0';
  snprintf(identity, sizeof identity, "%s; %s; %s", command(), kOptions,
           said.bytes != NULL ? said.bytes : "");
  chip_text_free(&said);
}

const char* chip_compiler_identity(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_identity);
  return identity;
}
