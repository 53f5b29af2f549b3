// drivers/host/process_end.cpp: no command runs while the globals of the libraries are destroyed.
#include "process_end.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace graft::host {
namespace {

constexpr std::chrono::seconds kLongest(2);

std::atomic<bool> ending{false};
std::atomic<int> running{0};

void end() {
  ending.store(true);
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  while (running.load() > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

RunningCommand::RunningCommand() {
  running.fetch_add(1);
  if (ending.load()) stop_for_good();
}

RunningCommand::~RunningCommand() { running.fetch_sub(1); }

void stop_for_good() {
  running.fetch_sub(1);
  for (;;) pause();
}

void watch_process_end() { std::atexit(end); }

}  // namespace graft::host
