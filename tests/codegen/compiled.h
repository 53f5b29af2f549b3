// tests/codegen/compiled.h: runs generated kernels without a driver: system compiler and dlopen.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "codegen/print/printer.h"
#include "graft/driver.h"

namespace graft::ir {

#if defined(__x86_64__)
inline constexpr const char* kTargetOptions = " -march=native -mprefer-vector-width=512";
#else
inline constexpr const char* kTargetOptions = "";
#endif

// A kernel compiled as dialect "c", with more of the compiler's options, and loaded; unloaded at
// the end of the scope.
class Compiled {
 public:
  using Function = void (*)(const graft_kernel_argument*, uint64_t begin, uint64_t end);

  explicit Compiled(const Kernel& kernel, const std::string& options = "") {
    char folder[] = "/tmp/graft-compiled-XXXXXX";
    if (mkdtemp(folder) == nullptr) throw std::runtime_error("no temporary folder");
    const std::string path = folder, source = path + "/kernel.c", library = path + "/kernel.so";
    std::ofstream(source) << print(kernel, *find_dialect("c"));
    const char* named = std::getenv("GRAFT_CC");
    const std::string command =
        (named != nullptr ? named : "cc") + std::string(kTargetOptions) +
        " -O3 -fno-math-errno -fno-trapping-math -fopenmp-simd -shared -fPIC -Wall -Wno-unused "
        "-Werror " +
        options + " -o " + library + " " + source + " -lm";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("cc failed: " + source);
    handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
    function_ = reinterpret_cast<Function>(dlsym(handle_, kernel.name.c_str()));
    unlink(source.c_str());
    unlink(library.c_str());
    rmdir(folder);
  }
  ~Compiled() { dlclose(handle_); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  void operator()(const graft_kernel_argument* arguments, uint64_t items = 1) const {
    function_(arguments, 0, items);
  }

 private:
  void* handle_ = nullptr;
  Function function_ = nullptr;
};

}  // namespace graft::ir
