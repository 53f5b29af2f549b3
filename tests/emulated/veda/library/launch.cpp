// tests/emulated/veda/library/launch.cpp: modules, launches of kernels and functions of the host in
// stream order.
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include "tests/emulated/veda/library/arguments.h"
#include "tests/emulated/veda/library/devices.h"
#include "tests/emulated/veda/library/entry.h"

namespace emulated {
namespace {

constexpr std::uint64_t kMostBufferBytes = UINT64_C(64) << 20;

bool is_file(const std::string& name) {
  struct stat state = {};
  return ::stat(name.c_str(), &state) == 0 && S_ISREG(state.st_mode);
}

// The file of a module: name itself, or in a folder of VE_LD_LIBRARY_PATH; on VE3, x.vso3 before
// x.vso. Empty: none.
std::string module_file(const std::string& name, const Settings& settings) {
  std::vector<std::string> names;
  const std::size_t extension = name.find(".vso");
  if (settings.device_architecture() == 3 && extension != std::string::npos) {
    names.push_back(std::string(name).replace(extension, 4, ".vso3"));
  }
  names.push_back(name);
  for (const std::string& wanted : names) {
    if (is_file(wanted)) return std::filesystem::absolute(wanted).string();
    std::istringstream folders(settings.library_path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      const std::filesystem::path path = std::filesystem::path(folder) / wanted;
      if (is_file(path.string())) return std::filesystem::absolute(path).string();
    }
  }
  return "";
}

Outcome run_kernel(Link& link, Faults& faults, VEDAfunction function,
                   const std::vector<HostArgument>& arguments) {
  const std::string name = function.kernel == nullptr ? "" : function.kernel;
  if (faults.device("launch", name)) return {VEDA_ERROR_VEO_COMMAND_ERROR, 0};
  if (buffer_bytes(arguments) > kMostBufferBytes) return {VEDA_ERROR_VEO_COMMAND_ERROR, 0};
  if (faults.device("exception", name)) link.ask(Command::kCrash, {});
  if (faults.device("hang", name)) link.ask(Command::kHang, {});
  if (faults.device("drop", name)) return {VEDA_SUCCESS, 0};
  return {VEDA_SUCCESS, call_device(link, function.ptr, arguments)};
}

void launch(VEDAfunction function, VEDAstream stream, VEDAargs args, bool destroy,
            std::uint64_t* result) {
  require(args != nullptr, VEDA_ERROR_INVALID_ARGS);
  veda_context& context = current_context();
  context.session()->stream(stream);
  Work work = [function, &faults = context.faults(), arguments = args->list(),
               running = args->begin_launch()](Link& link) {
    return run_kernel(link, faults, function, arguments);
  };
  context.kernel_given();
  context.enqueue(stream, std::move(work),
                  {false, result, profile_kernel(context.device(), stream, function)});
  if (destroy) delete args;
}

void launch_host(VEDAstream stream, VEDAhost_function function, void* user_data,
                 std::uint64_t* result) {
  require(function != nullptr, VEDA_ERROR_INVALID_VALUE);
  veda_context& context = current_context();
  auto record = profile_host_function(context.device(), stream, reinterpret_cast<void*>(function));
  context.enqueue(stream,
                  [=](Link&) {
                    return Outcome{VEDA_SUCCESS, function(user_data)};
                  },
                  {false, result, record});
}

}  // namespace
}  // namespace emulated

using emulated::current_context;
using emulated::entry;
using emulated::require;

VEDAresult vedaModuleLoad(VEDAmodule* module_, const char* file) {
  return entry("ModuleLoad", [&] {
    const bool given = module_ != nullptr && file != nullptr && *file != '\0';
    require(given, VEDA_ERROR_INVALID_VALUE);
    const auto session = current_context().session();
    const std::string path = emulated::module_file(file, emulated::library().settings);
    require(!path.empty(), VEDA_ERROR_MODULE_NOT_FOUND);
    *module_ = session->load(path);
  });
}

VEDAresult vedaModuleUnload(VEDAmodule module_) {
  return entry("ModuleUnload", [&] { current_context().session()->unload(module_); });
}

VEDAresult vedaModuleGetFunction(VEDAfunction* function, VEDAmodule module_, const char* name) {
  return entry("ModuleGetFunction", [&] {
    const bool given = function != nullptr && name != nullptr && *name != '\0';
    require(given, VEDA_ERROR_INVALID_VALUE);
    *function = current_context().session()->function(module_, name);
  });
}

VEDAresult vedaLaunchKernel(VEDAfunction function, VEDAstream stream, VEDAargs args) {
  return entry("LaunchKernel", [&] { emulated::launch(function, stream, args, false, nullptr); });
}

VEDAresult vedaLaunchKernelEx(VEDAfunction function, VEDAstream stream, VEDAargs args,
                              const int destroy_args, uint64_t* result) {
  return entry("LaunchKernelEx",
               [&] { emulated::launch(function, stream, args, destroy_args != 0, result); });
}

VEDAresult vedaLaunchHostFunc(VEDAstream stream, VEDAhost_function function, void* user_data) {
  return entry("LaunchHostFunc",
               [&] { emulated::launch_host(stream, function, user_data, nullptr); });
}

VEDAresult vedaLaunchHostFuncEx(VEDAstream stream, VEDAhost_function function, void* user_data,
                                uint64_t* result) {
  return entry("LaunchHostFuncEx",
               [&] { emulated::launch_host(stream, function, user_data, result); });
}
