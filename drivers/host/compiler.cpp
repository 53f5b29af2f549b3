// drivers/host/compiler.cpp: runs the system's C compiler.
#include "compiler.h"

#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "graft/driver_command.h"
#include "settings.h"

namespace graft::host {
namespace {

constexpr const char* kFlags[] = {"-O3",
                                  "-march=native",
                                  "-mprefer-vector-width=512",
                                  "-fno-math-errno",
                                  "-fno-trapping-math",
                                  "-fopenmp-simd",
                                  "-w",
                                  "-shared",
                                  "-fPIC"};

}  // namespace

graft_status compile_c(std::string_view source, std::string_view options, std::string* out_object,
                       std::string* out_log) {
  TemporaryFolder folder("graft-compile");
  if (!folder.exists()) {
    *out_log = folder.problem();
    return GRAFT_IO;
  }
  std::string input = folder.file("kernel.c"), object = folder.file("kernel.so");
  std::string output = folder.file("log");
  if (!write_file(input, source)) {
    *out_log = "cannot write " + input + ": is the disk full? TMPDIR names another place";
    return GRAFT_IO;
  }
  std::vector<std::string> words = words_of(settings().compiler);
  words.insert(words.end(), std::begin(kFlags), std::end(kFlags));
  for (std::string& word : words_of(options)) words.push_back(std::move(word));
  words.insert(words.end(), {"-o", object, input, "-lm"});
  int result = run_command(words, output);
  *out_log = read_file(output);
  if (is_missing(result)) {
    *out_log = "no C compiler: install gcc, or name one in GRAFT_CC (now '" + words[0] + "')";
    return GRAFT_UNSUPPORTED;
  }
  if (result < 0) {
    *out_log = "cannot start " + words[0] + ": " + strerror(-result);
    return GRAFT_INTERNAL;
  }
  if (result == 0) *out_object = read_file(object);
  if (result == 0 && !out_object->empty()) return GRAFT_OK;
  return disk_is_full(*out_log) ? GRAFT_IO : GRAFT_COMPILE_ERROR;
}

std::string compiler_version() {
  TemporaryFolder folder("graft-compile");
  std::vector<std::string> words = words_of(settings().compiler);
  words.push_back("--version");
  std::string output = folder.file("log");
  if (!folder.exists() || run_command(words, output) != 0) return "";
  std::string text = read_file(output);
  return text.substr(0, text.find('\n'));
}

}  // namespace graft::host
