// src/deploy/infer_main.cpp: the program graft-infer: runs a deployed model on arrays.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "deploy/levels.h"
#include "deploy/npy.h"
#include "graft/deploy.hpp"
#include "runtime/driver/dtype.h"

namespace graft::infer {
namespace {

using deployed::Model;
using deployed::Results;
using deployed::Value;
using Inputs = std::vector<deployed::Array>;

constexpr const char* kUsage =
    R"(usage: graft-infer model.graft [--input x.npy]... [--output prefix] [--device N]
                   [--driver path]... [--state prefix] [--seed N] [--bench seconds]
                   [--prepare [--processor LEVEL]...]

Runs a model that torch_graft.deploy() wrote. Without --input it prints what the model takes
and gives. --input: one for each input, in their order. --output: writes prefix<name>.npy for
each result (bfloat16 as float32). --state: what the model keeps between calls
is read from prefix<name>.npy, where there is such a file, before the run, and written after
it. --bench: runs for so long after a first run, and prints
the time of a run, copies of inputs and results included. --prepare: compiles the
model's kernels for the device and keeps them in its file. --processor: for all processors of a
level instead, x86-64-v2, x86-64-v3 or x86-64-v4; none is run.
)";

struct Options {
  std::string model, output, state;
  std::vector<std::string> inputs, drivers, processors;
  uint32_t device = 0;
  uint64_t seed = 0;
  double bench = 0;
  bool prepare = false;
};

Options parse(int count, char** words) {
  Options options;
  const auto next = [&](int* i) -> std::string {
    if (*i + 1 < count) return words[++*i];
    throw std::runtime_error(fmt::format("{} wants a value\n{}", words[*i], kUsage));
  };
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--input")
      options.inputs.push_back(next(&i));
    else if (word == "--output")
      options.output = next(&i);
    else if (word == "--device")
      options.device = static_cast<uint32_t>(std::stoul(next(&i)));
    else if (word == "--driver")
      options.drivers.push_back(next(&i));
    else if (word == "--state")
      options.state = next(&i);
    else if (word == "--seed")
      options.seed = std::stoull(next(&i));
    else if (word == "--prepare")
      options.prepare = true;
    else if (word == "--processor")
      options.processors.push_back(next(&i));
    else if (word == "--bench")
      options.bench = std::stod(next(&i));
    else if (options.model.empty() && !word.starts_with("--"))
      options.model = word;
    else
      throw std::runtime_error(fmt::format("unknown argument {}\n{}", word, kUsage));
  }
  if (options.model.empty()) throw std::runtime_error(kUsage);
  if (!options.processors.empty() && !options.prepare) {
    throw std::runtime_error(fmt::format("--processor goes with --prepare\n{}", kUsage));
  }
  return options;
}

std::string told(graft_dtype dtype, const std::vector<int64_t>& sizes) {
  std::string text = name_of(dtype);
  text += "[";
  for (size_t d = 0; d < sizes.size(); ++d) {
    text += (d == 0 ? "" : ", ") + (sizes[d] < 0 ? std::string("?") : std::to_string(sizes[d]));
  }
  return text + "]";
}

void describe(const char* kind, const std::vector<Value>& values) {
  for (const Value& one : values) {
    std::printf("%s %s: %s\n", kind, one.name.c_str(), told(one.dtype, one.sizes).c_str());
  }
}

std::string state_file(const std::string& prefix, const Value& value) {
  return prefix + value.name + ".npy";
}

void read_state(const Model& model, const std::string& prefix) {
  for (const Value& one : model.state()) {
    const std::string path = state_file(prefix, one);
    if (!std::filesystem::exists(path)) continue;
    const Array array = read_npy(path);
    model.write_state(one.name, deployed::Array(array.tensor));
  }
}

void write_state(const Model& model, const std::string& prefix) {
  const Results state = model.read_state();
  for (size_t i = 0; i < state.size(); ++i) {
    write_npy(state_file(prefix, state.values()[i]), state[i].c());
  }
}

double seconds_of_run(const Model& model, const Inputs& inputs) {
  const auto begin = std::chrono::steady_clock::now();
  model.run(inputs);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void bench(const Model& model, const Inputs& inputs, double seconds) {
  std::vector<double> taken;
  double sum = 0;
  while (taken.empty() || sum < seconds) {
    taken.push_back(seconds_of_run(model, inputs));
    sum += taken.back();
  }
  std::ranges::sort(taken);
  std::printf("%zu runs: min %.3f ms, median %.3f ms\n", taken.size(), 1e3 * taken.front(),
              1e3 * taken[taken.size() / 2]);
}

void write_results(const Results& results, const std::string& prefix) {
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = results.values()[i].name;
    const deployed::Array tensor = results[i];
    std::printf("%s: %s\n", name.c_str(), told(tensor.dtype(), tensor.sizes()).c_str());
    if (!prefix.empty()) write_npy(prefix + name + ".npy", tensor.c());
  }
}

void run(const Model& model, const Options& options) {
  std::vector<Array> arrays;
  Inputs inputs;
  for (const std::string& path : options.inputs) arrays.push_back(read_npy(path));
  for (const Array& array : arrays) inputs.emplace_back(array.tensor);
  model.seed(options.seed);
  if (!options.state.empty()) read_state(model, options.state);
  write_results(model.run(inputs), options.output);
  if (!options.state.empty()) write_state(model, options.state);
  if (options.bench > 0) bench(model, inputs, options.bench);
}

// The exit status of what work does, whose exceptions are told.
template <class Work>
int reported(const Work& work) {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "graft-infer: %s\n", error.what());
    return 1;
  }
}

void add_drivers(const Options& options) {
  for (const std::string& path : options.drivers) deployed::add_driver(path);
}

// Calls work in a process whose host driver compiles for other processors; its settings are read
// once. REQUIRES: no driver is loaded.
template <class Work>
void in_child(const deploy::LevelStep& step, const std::string& path, const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("GRAFT_HOST_ISA", step.device.c_str(), 1);
    setenv("GRAFT_HOST_TARGET", step.code.c_str(), 1);
    setenv("GRAFT_HOST_LIBRARY", step.library ? "1" : "0", 1);
    std::exit(reported(work));
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child < 0 || status != 0) {
    throw std::runtime_error(
        fmt::format("{} has no kernels for x86-64-{}: {}", path, step.code,
                    child < 0 ? std::strerror(errno) : "the process that compiles them failed"));
  }
}

void prepare(const Options& options) {
  const auto here = [&] {
    add_drivers(options);
    deployed::prepare(options.model, options.device);
  };
  if (options.processors.empty()) return here();
  for (const deploy::LevelStep& step : deploy::level_steps(options.processors)) {
    in_child(step, options.model, here);
  }
}

void work(int count, char** words) {
  const Options options = parse(count, words);
  if (options.prepare) return prepare(options);
  add_drivers(options);
  const Model model(options.model, options.device);
  if (!options.inputs.empty()) return run(model, options);
  describe("input ", model.inputs());
  describe("output", model.outputs());
  describe("state ", model.state());
}

}  // namespace
}  // namespace graft::infer

int main(int count, char** words) {
  // No code here holds device addresses, so the host driver's memory needs neither its guard nor
  // other processes' access, and its pages may be huge: a model opens faster.
  setenv("GRAFT_HOST_PROTECT", "0", 0);
  setenv("GRAFT_HOST_SHARE", "0", 0);
  return graft::infer::reported([&] { graft::infer::work(count, words); });
}
