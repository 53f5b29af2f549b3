/* chip/compiler.h: the compiler of the emulated chip and its programs, in the form of an SDK.
 *
 * For the real chip: its compiler, as a library or as a command. All functions are thread-safe. */
#ifndef ACME_CHIP_COMPILER_H_
#define ACME_CHIP_COMPILER_H_

#include "chip.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct chip_program chip_program;

/* Bytes that the caller frees by chip_text_free, with a zero byte behind them. */
typedef struct chip_text {
  char* bytes; /* NULL: none */
  size_t size;
} chip_text;

typedef enum chip_verdict {
  CHIP_COMPILED = 0,
  CHIP_SOURCE_ERROR = 1, /* the log says what is wrong */
  CHIP_NO_COMPILER = 2,  /* the log names the command */
  CHIP_NO_FILES = 3      /* the log names the folder */
} chip_verdict;

/* Compiles C for the chip. The command is ACME_CC, or cc. options: words, added to the chip's.
 * out_binary is filled in if the verdict is CHIP_COMPILED, out_log always. */
chip_verdict chip_compile(const char* source, size_t bytes, const char* options,
                          chip_text* out_binary, chip_text* out_log);
void chip_text_free(chip_text* text);
/* All that a binary depends on: the compiler, its version and its options. Lives for ever. */
const char* chip_compiler_identity(void);

/* Loads a binary, which it copies. NULL, with a text, if it cannot. */
chip_program* chip_program_load(const void* binary, size_t bytes, char* out_text, size_t capacity);
/* Unloads a program, none of whose kernels runs. */
void chip_program_unload(chip_program* self);
/* A kernel by its name; NULL if the program has none of that name. */
chip_kernel chip_program_find(chip_program* self, const char* name);

#ifdef __cplusplus
}
#endif

#endif /* ACME_CHIP_COMPILER_H_ */
