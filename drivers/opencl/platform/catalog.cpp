// drivers/opencl/platform/catalog.cpp: the devices of all platforms that this process uses.
#include "catalog.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <iterator>

#include "query.h"
#include "settings.h"

namespace graft::opencl {
namespace {

std::atomic<bool> in_forked_child{false};

std::string lower(std::string text) {
  for (char& letter : text) letter = char(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

int rank_of(cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) return 0;
  if ((type & CL_DEVICE_TYPE_ACCELERATOR) != 0) return 1;
  return (type & CL_DEVICE_TYPE_CPU) != 0 ? 2 : 3;
}

bool usable(cl_device_id device) {
  return ask<cl_bool>(device, CL_DEVICE_AVAILABLE, CL_FALSE) != CL_FALSE &&
         ask<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE, CL_FALSE) != CL_FALSE;
}

std::vector<Listed> find_all() {
  cl_uint count = 0;
  if (cl().GetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> platforms(count);
  if (count == 0 || cl().GetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return {};
  std::vector<Listed> all;
  for (cl_platform_id platform : platforms) {
    cl_uint members = 0;
    if (cl().GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &members) != CL_SUCCESS) {
      continue;
    }
    std::vector<cl_device_id> devices(members);
    if (members == 0 || cl().GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, members, devices.data(),
                                          nullptr) != CL_SUCCESS) {
      continue;
    }
    for (cl_device_id device : devices) {
      if (usable(device)) all.push_back({platform, device, examine(platform, device)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Listed& a, const Listed& b) {
    return rank_of(a.capabilities.type) < rank_of(b.capabilities.type);
  });
  return all;
}

bool matches(const std::string& word, size_t index, const Listed& one) {
  if (std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); })) {
    return word == std::to_string(index);
  }
  const Capabilities& known = one.capabilities;
  return lower(known.vendor + "; " + known.identity).find(lower(word)) != std::string::npos;
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t comma = std::min(list.find(',', begin), list.size());
    std::string word = list.substr(begin, comma - begin);
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    if (!word.empty()) words.push_back(word);
    begin = comma + 1;
  }
  return words;
}

Catalog choose(const std::vector<Listed>& all, const std::string& list) {
  Catalog chosen;
  std::vector<bool> taken(all.size());
  std::string unmatched;
  for (const std::string& word : words_of(list)) {
    bool any = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!matches(word, i, all[i])) continue;
      any = true;
      if (taken[i]) continue;
      taken[i] = true;
      chosen.devices.push_back(all[i]);
    }
    if (!any) unmatched += (unmatched.empty() ? "" : ", ") + word;
  }
  if (!unmatched.empty() || chosen.devices.empty()) {
    chosen.status = GRAFT_NOT_FOUND;
    chosen.problem = "GRAFT_OPENCL_DEVICES=" + list + ": " +
                     (unmatched.empty() ? list : unmatched) + " names none of the OpenCL devices:";
    for (size_t i = 0; i < all.size(); ++i) {
      chosen.problem += (i == 0 ? " " : ", ") + std::to_string(i) + " " + all[i].capabilities.name +
                        " (" + all[i].capabilities.platform + ")";
    }
    if (all.empty()) chosen.problem += " this machine has none";
  }
  return chosen;
}

Catalog make() {
  const std::string& list = settings().devices;
  std::string problem;
  if (!load_api(&problem)) {
    if (list.empty()) return {{}, GRAFT_OK, problem};
    return {{}, GRAFT_NOT_FOUND, problem + "; GRAFT_OPENCL_DEVICES asks for " + list};
  }
  if (pthread_atfork(nullptr, nullptr, [] { in_forked_child.store(true); }) != 0) {
    return {{}, GRAFT_OUT_OF_MEMORY, "pthread_atfork failed: out of memory"};
  }
  const std::vector<Listed> all = find_all();
  if (!list.empty()) return choose(all, list);
  return {all, GRAFT_OK, all.empty() ? "no OpenCL platform on this machine has a device" : ""};
}

}  // namespace

const Catalog& catalog() {
  static const Catalog* instance = new Catalog(make());
  return *instance;
}

bool forked() { return in_forked_child.load(std::memory_order_relaxed); }

}  // namespace graft::opencl
