// drivers/veda/program/compiler.cpp: runs the compiler and the linker for Vector Engines.
#include "program/compiler.h"

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "graft/driver_blob.h"
#include "graft/driver_compiler.h"
#include "program/entry.h"
#include "settings.h"

namespace graft::veda {
namespace {

using Words = std::vector<std::string>;

void append(Words* words, const Words& more) {
  words->insert(words->end(), more.begin(), more.end());
}

// NEC's compilers have their own ways, and OpenMP for the cores; others are GNU's or clang.
Words flags() {
  const Words words = words_of(settings().compiler);
  const std::string& command = words.empty() ? "" : words.front();
  if (command.ends_with("ncc")) return {"-O3", "-fopenmp", "-fPIC", "-w"};
  return {"-O3", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-fPIC", "-w"};
}

std::string replaced(std::string word, std::string_view name, std::string_view by) {
  for (size_t at = word.find(name); at != std::string::npos; at = word.find(name, at + by.size())) {
    word.replace(at, name.size(), by);
  }
  return word;
}

// The words of GRAFT_VE_LINK. {cc} and {inputs} stand alone, for any number of words.
Words link_command(const Words& inputs, const std::string& output) {
  Words words;
  for (const std::string& word : words_of(settings().link)) {
    if (word == "{cc}") {
      append(&words, words_of(settings().compiler));
      if (flags()[1] == "-fopenmp") words.push_back("-fopenmp");
    } else if (word == "{inputs}") {
      append(&words, inputs);
    } else {
      words.push_back(replaced(word, "{output}", output));
    }
  }
  return words;
}

// One command; what: "the compiler", setting: the variable that names it.
graft_status run(const Words& words, const TemporaryFolder& folder, const std::string& output,
                 const std::string& what, const std::string& setting, std::string* out_log) {
  const std::string log = folder.file("log");
  const int result = words.empty() ? -ENOENT : run_command(words, log);
  const std::string command = words.empty() ? "" : words.front();
  *out_log = result < 0 ? "" : read_file(log);
  if (is_missing(result)) {
    *out_log = what +
               " for Vector Engines is missing: install NEC's ncc, or name another command in " +
               setting + " (now '" + command + "')";
    return GRAFT_UNSUPPORTED;
  }
  if (result < 0) {
    *out_log = "cannot start " + command + ": " + strerror(-result);
    return GRAFT_INTERNAL;
  }
  if (disk_is_full(*out_log)) return GRAFT_IO;
  if (result == 0 && !read_file(output).empty()) return GRAFT_OK;
  *out_log = what + " (" + setting + ", '" + command + "') " +
             (result == 0 ? "wrote nothing to " + output
                          : "failed with exit code " + std::to_string(result)) +
             (out_log->empty() ? "" : ":\n" + *out_log);
  return GRAFT_COMPILE_ERROR;
}

graft_status compile_one(std::string_view source, std::string_view options,
                         const TemporaryFolder& folder, const std::string& name,
                         std::string* out_log) {
  const std::string input = folder.file(name + ".c"), object = folder.file(name + ".o");
  if (!write_file(input, source)) {
    *out_log = "cannot write " + input + ": free disk space, or name another folder in TMPDIR";
    return GRAFT_IO;
  }
  Words words = words_of(settings().compiler);
  append(&words, flags());
  append(&words, words_of(options));
  append(&words, {"-c", "-o", object, input});
  return run(words, folder, object, "the compiler", "GRAFT_VE_CC", out_log);
}

// The entry is compiled once in a process.
graft_status put_entry(const TemporaryFolder& folder, std::string* out_log) {
  static std::mutex mutex;
  static std::string* object = new std::string;
  std::lock_guard lock(mutex);
  if (object->empty()) {
    const graft_status status = compile_one(kEntrySource, "", folder, "entry", out_log);
    if (status == GRAFT_OK) *object = read_file(folder.file("entry.o"));
    return status;
  }
  if (write_file(folder.file("entry.o"), *object)) return GRAFT_OK;
  *out_log = "cannot write " + folder.file("entry.o") +
             ": free disk space, or name another folder in TMPDIR";
  return GRAFT_IO;
}

std::string version() {
  const TemporaryFolder folder("graft-veda");
  Words words = words_of(settings().compiler);
  if (words.empty() || !folder.exists()) return "";
  words.push_back("--version");
  const std::string log = folder.file("log");
  if (run_command(words, log) != 0) return "";
  const std::string text = read_file(log);
  return text.substr(0, text.find('\n'));
}

}  // namespace

graft_status compile_program(std::string_view source, std::string_view options,
                             std::string* out_library, std::string* out_log) {
  const TemporaryFolder folder("graft-veda");
  if (!folder.exists()) {
    *out_log = folder.problem();
    return GRAFT_IO;
  }
  graft_status status = compile_one(source, options, folder, "kernel", out_log);
  if (status == GRAFT_OK) status = put_entry(folder, out_log);
  if (status != GRAFT_OK) return status;
  const std::string library = folder.file("kernel.vso");
  status = run(link_command({folder.file("kernel.o"), folder.file("entry.o")}, library), folder,
               library, "the linker", "GRAFT_VE_LINK", out_log);
  if (status == GRAFT_OK) *out_library = read_file(library);
  return status;
}

const std::string& toolchain() {
  static const std::string* text = new std::string([] {
    std::string all = "veda 1; " + settings().compiler;
    for (const std::string& flag : flags()) all += " " + flag;
    return all + "; " + version() + "; " + settings().link + "; " +
           std::to_string(checksum(kEntrySource));
  }());
  return *text;
}

}  // namespace graft::veda
