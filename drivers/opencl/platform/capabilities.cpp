// drivers/opencl/platform/capabilities.cpp: what one device says of itself.
#include "capabilities.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>

#include "graft/driver_slot.h"
#include "query.h"
#include "settings.h"

namespace graft::opencl {
namespace {

// Of extensions whose headers not every system has.
constexpr cl_device_info kWarpSizeNv = 0x4003;
constexpr cl_device_info kWavefrontWidthAmd = 0x4043;
constexpr cl_device_info kSubGroupSizesIntel = 0x4108;

// What SVM allocations are aligned to: the largest type of OpenCL C, long16.
constexpr uint64_t kLargestType = 128;

// What compilers for GPUs fit a kernel's registers to where it does not name its group; of NVIDIA's
// devices, which say 1024, seen on an H200.
constexpr uint32_t kUnnamedGroup = 256;

// Of the local memory that NVIDIA's devices state, what their runtime keeps: an H200 launches no
// kernel that asks for all of it.
constexpr uint64_t kKeptLocal = 1024;

struct Version {
  int major = 1, minor = 0;
};

// Of "OpenCL 3.0 ..." or "OpenCL C 1.2 ...".
Version version_in(const std::string& text, const char* format) {
  Version version;
  std::sscanf(text.c_str(), format, &version.major, &version.minor);
  return version;
}

// Work-items that work together, beyond what OpenCL C 1.2 has.
bool has_collectives(cl_device_id device) {
  const auto features = ask_list<cl_name_version>(device, CL_DEVICE_OPENCL_C_FEATURES);
  return std::any_of(features.begin(), features.end(), [](const cl_name_version& one) {
    const std::string name = one.name;
    return name == "__opencl_c_subgroups" || name == "__opencl_c_work_group_collective_functions";
  });
}

// Whether programs may use the prelude's graft_shuffle().
bool has_shuffles(const std::string& extensions) {
  if (lists(extensions, "cl_intel_subgroups")) return true;
  return lists(extensions, "cl_khr_subgroups") && lists(extensions, "cl_khr_subgroup_shuffle");
}

// What the device compiles by default; OpenCL C 3.0 only where it is listed and brings something,
// since the rest of it is optional and some compilers list what they cannot compile.
std::string standard_of(cl_device_id device) {
  if (!settings().standard.empty()) return settings().standard;
  const std::string text = ask_text(device, CL_DEVICE_OPENCL_C_VERSION);
  Version best = version_in(text, "OpenCL C %d.%d");
  const auto listed = ask_list<cl_name_version>(device, CL_DEVICE_OPENCL_C_ALL_VERSIONS);
  const bool newer = std::any_of(listed.begin(), listed.end(), [](const cl_name_version& one) {
    return CL_VERSION_MAJOR(one.version) == 3;
  });
  if (newer && has_collectives(device)) best = {3, 0};
  return "CL" + std::to_string(best.major) + "." + std::to_string(best.minor);
}

uint32_t sub_group_of(cl_device_id device, bool processor, const std::string& extensions) {
  if (processor) return std::max(1u, ask<cl_uint>(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 1));
  if (lists(extensions, "cl_nv_device_attribute_query")) {
    return std::max(1u, ask<cl_uint>(device, kWarpSizeNv, 32));
  }
  if (lists(extensions, "cl_amd_device_attribute_query")) {
    return std::max(1u, ask<cl_uint>(device, kWavefrontWidthAmd, 64));
  }
  const auto sizes = ask_list<size_t>(device, kSubGroupSizesIntel);
  if (!sizes.empty()) return uint32_t(*std::max_element(sizes.begin(), sizes.end()));
  const size_t preferred = ask<size_t>(device, CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, 1);
  return uint32_t(std::clamp<size_t>(preferred, 1, 128));
}

uint32_t features_of(cl_device_id device, const Capabilities& known) {
  uint32_t features = 0;
  const bool wide =
      lists(known.extensions, "cl_khr_fp64") || lists(known.extensions, "cl_amd_fp64");
  if (wide && ask<cl_device_fp_config>(device, CL_DEVICE_DOUBLE_FP_CONFIG, 0) != 0) {
    features |= GRAFT_FEATURE_FLOAT64;
  }
  if (lists(known.extensions, "cl_khr_fp16")) features |= GRAFT_FEATURE_FLOAT16;
  if (lists(known.extensions, "cl_khr_int64_base_atomics") &&
      lists(known.extensions, "cl_khr_int64_extended_atomics")) {
    features |= GRAFT_FEATURE_INT64_ATOMICS;
  }
  if (has_shuffles(known.extensions)) features |= GRAFT_FEATURE_SHUFFLES;
  if (known.memory != MemoryKind::kBuffer) features |= GRAFT_FEATURE_POINTERS_IN_MEMORY;
  if ((known.type & CL_DEVICE_TYPE_CPU) != 0) features |= GRAFT_FEATURE_ONLY_NAMED;
  return features;
}

// In arguments of 8 bytes. A buffer with its offset takes two: the bytes limit such launches
// earlier.
uint32_t most_arguments(cl_device_id device) {
  constexpr size_t kLeast = 1024;  // what OpenCL promises
  const size_t bytes = std::max(kLeast, ask<size_t>(device, CL_DEVICE_MAX_PARAMETER_SIZE, kLeast));
  return uint32_t(std::min<size_t>(bytes / 8, 1u << 20));
}

graft_device_properties describe(cl_device_id device, const Capabilities& known, Version version) {
  graft_device_properties p = {};
  const bool processor = is_processor(known.type);
  const std::string& wish = settings().device_class;
  p.device_class = wish == "gpu"   ? GRAFT_GPU_LIKE
                   : wish == "cpu" ? GRAFT_CPU_LIKE
                   : processor     ? GRAFT_CPU_LIKE
                                   : GRAFT_GPU_LIKE;
  p.features = features_of(device, known);
  p.compute_units = std::max(1u, ask<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS, 1));
  const auto sizes = ask_list<size_t>(device, CL_DEVICE_MAX_WORK_ITEM_SIZES);
  const size_t group = ask<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, 1);
  p.max_group_size =
      uint32_t(std::max<size_t>(1, sizes.empty() ? group : std::min(group, sizes[0])));
  p.sub_group_size = sub_group_of(device, processor, known.extensions);
  if (p.device_class == GRAFT_GPU_LIKE) {
    p.max_group_size = std::min(p.max_group_size, kUnnamedGroup);
    p.sub_group_size = std::min(p.sub_group_size, p.max_group_size);
    const bool exchange = p.sub_group_size > 1 && std::has_single_bit(p.sub_group_size);
    if (!exchange) p.features &= ~GRAFT_FEATURE_SHUFFLES;
  }
  p.capability_major = uint32_t(version.major);
  p.capability_minor = uint32_t(version.minor);
  p.memory_bytes = ask<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE, 0);
  p.local_memory_bytes = ask<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE, 0);
  const bool keeps = lists(known.extensions, "cl_nv_device_attribute_query");
  if (keeps && p.local_memory_bytes > kKeptLocal) p.local_memory_bytes -= kKeptLocal;
  p.max_allocation_bytes = ask<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0);
  const uint64_t base = ask<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 8) / 8;
  const bool own = known.memory == MemoryKind::kBuffer || known.memory == MemoryKind::kAddress;
  p.allocation_alignment = own ? std::clamp<uint64_t>(base, 1, 4096) : kLargestType;
  p.max_allocation_bytes = std::min(p.max_allocation_bytes, p.memory_bytes);
  p.max_arguments = most_arguments(device);
  p.priority_lowest = known.priorities ? 1 : 0;
  p.priority_highest = known.priorities ? -1 : 0;
  copy_text(known.name, p.name, sizeof p.name);
  copy_text(known.vendor, p.vendor, sizeof p.vendor);
  copy_text(known.compiler ? "opencl-c" : "", p.dialect, sizeof p.dialect);
  return p;
}

std::string build_options(cl_device_id device, MemoryKind memory) {
  std::string options = "-cl-std=" + standard_of(device) + " -w";
  const auto single = ask<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG, 0);
  if ((single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0) {
    options += " -cl-fp32-correctly-rounded-divide-sqrt";
  }
  if (memory == MemoryKind::kBuffer) options += " -DGRAFT_MEMORY_OFFSETS=1";
  return options;
}

std::string wrong_settings(const std::string& problem) {
  if (!problem.empty()) return problem;
  const std::string& wish = settings().device_class;
  if (wish.empty() || wish == "gpu" || wish == "cpu") return "";
  return "GRAFT_OPENCL_CLASS=" + wish + ": expected gpu or cpu";
}

// What Khronos's older headers lack.
constexpr cl_device_info kDeviceUuid = 0x106A;  // cl_khr_device_uuid
constexpr cl_device_info kPciBusInfo = 0x410F;  // cl_khr_pci_bus_info
struct PciBusInfo {
  cl_uint domain, bus, device, function;
};

graft_device_identity identify(cl_device_id device, const std::string& extensions) {
  graft_device_identity facts = {};
  copy_text(ask_text(device, CL_DRIVER_VERSION), facts.driver_version, sizeof facts.driver_version);
  if (lists(extensions, "cl_khr_device_uuid")) {
    const auto uuid = ask_list<uint8_t>(device, kDeviceUuid);
    if (uuid.size() == sizeof facts.uuid) {
      std::copy(uuid.begin(), uuid.end(), facts.uuid);
      facts.known |= GRAFT_IDENTITY_UUID;
    }
  }
  if (lists(extensions, "cl_khr_pci_bus_info")) {
    const auto pci = ask_list<PciBusInfo>(device, kPciBusInfo);
    if (pci.size() == 1) {
      facts.pci_domain = pci[0].domain, facts.pci_bus = pci[0].bus;
      facts.pci_device = pci[0].device, facts.pci_function = pci[0].function;
      facts.known |= GRAFT_IDENTITY_PCI;
    }
  }
  return facts;
}

}  // namespace

Capabilities examine(cl_platform_id platform, cl_device_id device) {
  Capabilities c;
  c.type = ask<cl_device_type>(device, CL_DEVICE_TYPE, 0);
  c.name = ask_text(device, CL_DEVICE_NAME);
  if (c.name.empty()) c.name = "OpenCL device";
  c.vendor = ask_text(device, CL_DEVICE_VENDOR);
  c.platform = ask_text(platform, CL_PLATFORM_NAME);
  c.extensions = ask_text(device, CL_DEVICE_EXTENSIONS);
  const std::string version_text = ask_text(device, CL_DEVICE_VERSION);
  const Version version = version_in(version_text, "OpenCL %d.%d");
  c.compiler = ask<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE, CL_FALSE) != CL_FALSE;
  c.priorities = version.major >= 2 && cl().CreateCommandQueueWithProperties != nullptr &&
                 lists(c.extensions, "cl_khr_priority_hints");
  std::string problem;
  choose_kind(offered_kinds(platform, device, c.extensions, version.major), settings().memory,
              &c.memory, &problem);
  c.problem = wrong_settings(problem);
  c.options = build_options(device, c.memory);
  c.identity = c.platform + "; " + ask_text(platform, CL_PLATFORM_VERSION) + "; " + c.name + "; " +
               version_text + "; " + ask_text(device, CL_DRIVER_VERSION);
  c.properties = describe(device, c, version);
  c.facts = identify(device, c.extensions);
  return c;
}

}  // namespace graft::opencl
