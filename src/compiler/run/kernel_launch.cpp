// src/compiler/run/kernel_launch.cpp: a group's kernel and the arguments of its launch.
#include "compiler/run/kernel_launch.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <system_error>
#include <thread>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/workspace.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/open_device.h"

namespace graft::compiler {

void compile_together(const Graph& graph, const std::vector<GroupKernel>& kernels,
                      OpenDevice& device) {
  std::map<std::string_view, const GroupKernel*> different;
  for (const GroupKernel& kernel : kernels) different.emplace(kernel.key, &kernel);
  std::vector<GroupKernel> todo;
  for (const auto& [key, kernel] : different) todo.push_back(dealt_for(device, *kernel));
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < todo.size(); i = next++) {
      try {
        get_kernel(device, todo[i].key, [&] { return todo[i].build(graph); });
      } catch (const std::exception&) {
        continue;
      }
    }
  };
  const size_t threads = std::min<size_t>(std::thread::hardware_concurrency(), todo.size());
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;
    }
  }
  work();
}

bool runs_on(Stream& stream, const Graph& graph, const GroupKernel& kernel, ExecutionHost& host) {
  try {
    KernelLaunch(graph, kernel, stream.device()).try_out(graph, stream);
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    host.lacks_group(error);
    return false;
  }
  return true;
}

KernelLaunch::KernelLaunch(const Graph& graph, GroupKernel kernel, OpenDevice& device)
    : kernel_(dealt_for(device, std::move(kernel))), device_(&device) {
  handle_ = get_kernel(device, kernel_.key, [&] { return kernel_.build(graph); });
}

void KernelLaunch::arrange(const std::function<int64_t(const Size&)>& at) {
  const GroupLoops& loops = kernel_.loops;
  Arguments arguments;
  for (size_t i = 0; i < loops.tensors.size() + kernel_.numbers.size(); ++i) arguments.index(0);
  grid_ = static_cast<uint64_t>(
      append_nest(arguments, *device_, kernel_.shape(), loops.axes(at).span()));
  const std::span<const graft_argument> list = arguments.span().list;
  arguments_.assign(list.begin(), list.end());
}

uint32_t KernelLaunch::group() const { return kernel_.shares_rows() ? kLanes : 1; }

void KernelLaunch::try_out(const Graph& graph, Stream& stream) {
  if (stream.memory_pool() != 0) return;
  arrange([](const Size&) { return int64_t{1}; });
  constexpr uint64_t kWidest = 16;
  const Workspace scratch(stream, kWidest);
  const char nothing = 0;
  stream.fill(scratch.address(), kWidest, &nothing, 1);
  size_t next = 0;
  for (const GroupTensor& tensor : kernel_.loops.tensors) {
    const uint8_t access = tensor.written ? GRAFT_ACCESS_WRITE : GRAFT_ACCESS_READ;
    arguments_[next++] = {GRAFT_ARGUMENT_ADDRESS, 0, access, 0, scratch.address(), kWidest};
  }
  for (ValueId value : kernel_.numbers) {
    const graft_dtype dtype = graph.values[value].type.dtype;
    arguments_[next++] = {GRAFT_ARGUMENT_SCALAR, static_cast<uint8_t>(dtype), 0, 0, 0,
                          size_of(dtype)};
  }
  const LaunchCommand launch(handle_, grid_, arguments_, group());
  const auto give = [&](uint32_t) {
    return launch.give(device_->driver().table(), stream.handle());
  };
  stream.command(launch.slot(), give);
}

void KernelLaunch::launch(Stream& stream, std::span<const TensorView> views,
                          std::span<const Scalar> numbers) {
  if (grid_ == 0) return;
  size_t next = 0;
  for (const GroupTensor& tensor : kernel_.loops.tensors) {
    const TensorView& view = views[tensor.value];
    const uint8_t access = tensor.written ? GRAFT_ACCESS_WRITE : GRAFT_ACCESS_READ;
    arguments_[next++] = {GRAFT_ARGUMENT_ADDRESS, 0, access, 0, view.address, extent_bytes(view)};
  }
  for (ValueId value : kernel_.numbers) {
    const Scalar& scalar = numbers[value];
    arguments_[next++] = {
        GRAFT_ARGUMENT_SCALAR, static_cast<uint8_t>(scalar.dtype), 0, 0, scalar.bits[0],
        size_of(scalar.dtype)};
  }
  stream.launch(handle_, grid_, arguments_, group());
}

}  // namespace graft::compiler
