// tests/deploy/fuzz/target.cpp: what libFuzzer calls: opens the bytes of a file as a model.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

#include "tests/deploy/fuzz/artefact_change.h"
#include "tests/deploy/fuzz/opening.h"
#include "tests/deploy/fuzz/seeds.h"

// More is "too little memory", which the address sanitizer's own operator would die of.
constexpr size_t kMostMemory = 256u << 20;

void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return bytes > kMostMemory ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return ::operator new(bytes, std::nothrow);
}
void* operator new(size_t bytes) {
  void* const memory = ::operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](size_t bytes) { return ::operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace test = graft::deploy::test;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

test::ChangeBytes changer(size_t most) {
  return [most](std::string text) {
    const size_t size = text.size();
    text.resize(std::max(most, size + 1));
    text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, text.size()));
    return text;
  };
}

size_t put(const std::string& made, uint8_t* to, size_t most) {
  if (made.size() > most) return 0;
  std::copy(made.begin(), made.end(), to);
  return made.size();
}

std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  for (int i = 1; i < *count; ++i) {
    const std::string_view word = (*words)[i];
    static constexpr std::string_view kWrite = "--write-seeds=";
    if (!word.starts_with(kWrite)) continue;
    test::write_seeds(std::string(word.substr(kWrite.size())));
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  test::open_all(text_of(data, size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  test::Draw draw(seed);
  const std::string file(text_of(data, size));
  const size_t made =
      put(test::changed_artefact(file, &draw, changer(file.size() + 64)), data, most);
  return made > 0 ? made : size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t most,
                                            unsigned seed) {
  test::Draw draw(seed);
  return put(test::crossed(text_of(data, size), text_of(other, other_size), &draw), out, most);
}
