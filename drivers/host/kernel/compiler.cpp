// drivers/host/kernel/compiler.cpp: runs a C compiler: the system's, or a zig that brings one.
#include "compiler.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "graft/driver_compiler.h"
#include "processor.h"
#include "settings.h"

namespace graft::host {
namespace {

constexpr const char* kFlags[] = {
    "-O3", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-w", "-shared", "-fPIC"};

struct Compiler {
  std::vector<std::string> words;      // the command with its own options
  std::vector<std::string> libraries;  // what programs are linked with
  bool zig = false;
};

bool in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access(((folder.empty() ? "." : folder) + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// The path of the library of this process that holds a function.
std::string library_of(const void* function) {
  Dl_info info = {};
  return dladdr(function, &info) != 0 ? info.dli_fname : "";
}

// A program of zig's is linked with this process's own libraries, or zig would build others first.
// Products and sums become one instruction where GCC makes them one.
Compiler zig_compiler() {
  double (*sine)(double) = std::sin;
  return {{settings().zig, "cc", "-g0", "-ffp-contract=fast"},
          {"-nostdlib", "-Wl,-z,defs", library_of(reinterpret_cast<const void*>(sine)),
           library_of(reinterpret_cast<const void*>(&std::abort))},
          true};
}

// zig spells levels x86_64_v3, and its -mtune names features.
std::vector<std::string> options_for_zig(std::vector<std::string> options) {
  std::erase_if(options, [](const std::string& one) { return one.starts_with("-mtune="); });
  for (std::string& one : options) {
    if (one.starts_with("-march=x86-64-")) std::replace(one.begin() + 1, one.end(), '-', '_');
  }
  return options;
}

Compiler find_compiler() {
  const Settings& s = settings();
  if (!s.compiler.empty()) return {words_of(s.compiler), {"-lm"}};
  if (!in_path("cc") && access(s.zig.c_str(), X_OK) == 0) return zig_compiler();
  return {{"cc"}, {"-lm"}};
}

const Compiler& compiler() {
  static const Compiler* found = new Compiler(find_compiler());
  return *found;
}

std::atomic<bool> hung{false};  // it is not asked again

// The whole command's result, as run_command's. What zig keeps stays in the folder, too.
int run(std::vector<std::string> arguments, const TemporaryFolder& folder, std::string* out_said) {
  CommandOptions options;
  options.seconds = settings().patience;
  if (compiler().zig) {
    for (const char* name : {"ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"}) {
      options.environment.push_back(std::string(name) + "=" + folder.file("zig"));
    }
  }
  std::vector<std::string> words = compiler().words;
  for (std::string& word : arguments) words.push_back(std::move(word));
  const std::string output = folder.file("log");
  const int result = run_command(std::move(words), output, std::move(options));
  if (result == -ETIMEDOUT) hung = true;
  *out_said = read_file(output);
  return result;
}

int compile_in(const TemporaryFolder& folder, const std::string& input, std::string_view options,
               std::string* out_object, std::string* out_log) {
  const std::string object = folder.file("kernel.so");
  std::vector<std::string> words = target_options();
  if (compiler().zig) words = options_for_zig(std::move(words));
  words.insert(words.end(), std::begin(kFlags), std::end(kFlags));
  for (std::string& word : words_of(options)) words.push_back(std::move(word));
  words.insert(words.end(), {"-o", object, input});
  words.insert(words.end(), compiler().libraries.begin(), compiler().libraries.end());
  const int result = run(std::move(words), folder, out_log);
  *out_object = read_file(object);
  return result == 0 && out_object->empty() ? 1 : result;
}

// Whether the compiler fails whatever it is given: it lacks a linker, or is not a compiler.
bool compiles_nothing() {
  static const bool nothing = [] {
    TemporaryFolder folder("graft-compile");
    std::string input = folder.exists() ? folder.file("empty.c") : "", object, log;
    if (!folder.exists() || !write_file(input, "void f(void) {}\n")) return false;
    return compile_in(folder, input, "", &object, &log) != 0 && !disk_is_full(log);
  }();
  return nothing;
}

std::string name_of_compiler() { return "the C compiler '" + compiler().words[0] + "'"; }

graft_status refuse_hung(std::string* out_log) {
  *out_log = name_of_compiler() + " did not end within " + std::to_string(settings().patience) +
             " s, and this process does not run it again: repair the compiler, name another in "
             "GRAFT_CC, or raise GRAFT_CC_TIMEOUT";
  return GRAFT_UNSUPPORTED;
}

graft_status refuse_broken(std::string* log) {
  *log = name_of_compiler() + " does not compile even an empty function: repair the compiler, or " +
         "name another in GRAFT_CC. It says:\n" + *log;
  return GRAFT_UNSUPPORTED;
}

}  // namespace

graft_status compile_c(std::string_view source, std::string_view options, std::string* out_object,
                       std::string* out_log) {
  if (hung) return refuse_hung(out_log);
  TemporaryFolder folder("graft-compile");
  if (!folder.exists()) {
    *out_log = folder.problem();
    return GRAFT_IO;
  }
  const std::string input = folder.file("kernel.c");
  if (!write_file(input, source)) {
    *out_log = "cannot write " + input + ": free disk space, or name another folder in TMPDIR";
    return GRAFT_IO;
  }
  std::string object;
  const int result = compile_in(folder, input, options, &object, out_log);
  if (result == -ETIMEDOUT) return refuse_hung(out_log);
  if (is_missing(result)) {
    *out_log =
        "no C compiler: install gcc, or name one in GRAFT_CC (now '" + compiler().words[0] + "')";
    return GRAFT_UNSUPPORTED;
  }
  if (result < 0) {
    *out_log = "cannot start " + compiler().words[0] + ": " + strerror(-result);
    return GRAFT_INTERNAL;
  }
  if (result == 0) {
    *out_object = std::move(object);
    return GRAFT_OK;
  }
  if (disk_is_full(*out_log)) return GRAFT_IO;
  return compiles_nothing() ? refuse_broken(out_log) : GRAFT_COMPILE_ERROR;
}

std::string compiler_identity() {
  TemporaryFolder folder("graft-compile");
  std::string said;
  if (folder.exists() && !hung && run({"--version"}, folder, &said) != 0) said.clear();
  std::string identity;
  for (const std::string& word : compiler().words) identity += word + " ";
  return identity + "; " + said.substr(0, said.find('\n'));
}

}  // namespace graft::host
