/* chip/memory.c: the emulated chip's memory: an address space that only commands reach. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "emulation.h"

static chip_block* block_of(uint64_t begin, uint64_t bytes, chip_block* next) {
  chip_block* block = malloc(sizeof *block);
  if (block != NULL) *block = (chip_block){begin, bytes, false, next};
  return block;
}

uint64_t chip_first_address(const chip* self) { return (UINT64_C(1) << 44) * (self->number + 1); }

chip_status chip_open(uint32_t number, chip** out) {
  chip* self = calloc(1, sizeof *self);
  if (self == NULL) return CHIP_NO_MEMORY;
  self->number = number;
  self->blocks = block_of(chip_first_address(self), CHIP_MEMORY_BYTES, NULL);
  self->left = CHIP_MEMORY_BYTES;
  void* memory = mmap(NULL, CHIP_MEMORY_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (self->blocks == NULL || memory == MAP_FAILED) {
    if (memory != MAP_FAILED) munmap(memory, CHIP_MEMORY_BYTES);
    free(self->blocks);
    free(self);
    return CHIP_NO_MEMORY;
  }
  self->memory = memory;
  pthread_mutex_init(&self->mutex, NULL);
  *out = self;
  return CHIP_OK;
}

void chip_close(chip* self) {
  while (self->blocks != NULL) {
    chip_block* next = self->blocks->next;
    free(self->blocks);
    self->blocks = next;
  }
  munmap(self->memory, CHIP_MEMORY_BYTES);
  pthread_mutex_destroy(&self->mutex);
  free(self);
}

/* Cuts bytes from a free block and marks them used. */
static chip_status take(chip* self, chip_block* block, uint64_t bytes) {
  if (block->bytes > bytes) {
    chip_block* rest = block_of(block->begin + bytes, block->bytes - bytes, block->next);
    if (rest == NULL) return CHIP_NO_MEMORY;
    block->bytes = bytes;
    block->next = rest;
  }
  block->used = true;
  self->left -= bytes;
  return CHIP_OK;
}

chip_status chip_memory_allocate(chip* self, uint64_t bytes, uint64_t* out_address) {
  if (bytes == 0 || bytes > CHIP_MEMORY_BYTES) return CHIP_NO_MEMORY;
  bytes = (bytes + CHIP_ALIGNMENT - 1) / CHIP_ALIGNMENT * CHIP_ALIGNMENT;
  pthread_mutex_lock(&self->mutex);
  chip_block* block = self->blocks;
  while (block != NULL && (block->used || block->bytes < bytes)) block = block->next;
  chip_status status = block == NULL ? CHIP_NO_MEMORY : take(self, block, bytes);
  if (status == CHIP_OK) *out_address = block->begin;
  pthread_mutex_unlock(&self->mutex);
  return status;
}

static void join_next(chip_block* block) {
  chip_block* next = block->next;
  if (next == NULL || next->used || block->used) return;
  block->bytes += next->bytes;
  block->next = next->next;
  free(next);
}

chip_status chip_memory_free(chip* self, uint64_t address) {
  pthread_mutex_lock(&self->mutex);
  chip_block *before = NULL, *block = self->blocks;
  while (block != NULL && block->begin != address) {
    before = block;
    block = block->next;
  }
  const bool found = block != NULL && block->used;
  if (found) {
    /* The system takes the pages back. */
    madvise(self->memory + (address - chip_first_address(self)), block->bytes, MADV_DONTNEED);
    self->left += block->bytes;
    block->used = false;
    join_next(block);
    if (before != NULL) join_next(before);
  }
  pthread_mutex_unlock(&self->mutex);
  return found ? CHIP_OK : CHIP_BAD_ADDRESS;
}

uint64_t chip_memory_left(chip* self) {
  pthread_mutex_lock(&self->mutex);
  const uint64_t left = self->left;
  pthread_mutex_unlock(&self->mutex);
  return left;
}

void* chip_pointer(chip* self, uint64_t address, uint64_t bytes) {
  pthread_mutex_lock(&self->mutex);
  chip_block* block = self->blocks;
  while (block != NULL && address - block->begin >= block->bytes) block = block->next;
  const bool inside =
      block != NULL && block->used && bytes <= block->bytes - (address - block->begin);
  pthread_mutex_unlock(&self->mutex);
  return inside ? self->memory + (address - chip_first_address(self)) : NULL;
}
