// tests/drivers/opencl/fake_icd_memory.cpp: kinds of memory that PoCL lacks, made of its shared
// virtual memory, and limits of memory.
#include <cstring>
#include <map>
#include <mutex>

#include "fake_icd.h"

namespace graft::fake_cl {
namespace {

struct Held {
  cl_context context = nullptr;
  void* pointer = nullptr;  // of the fake's own
  size_t bytes = 0;
};

std::mutex mutex;
std::map<void*, Held>& held() {  // by buffer or pointer
  static auto* const instance = new std::map<void*, Held>;
  return *instance;
}
uint64_t held_bytes = 0;

cl_int check_size(size_t bytes) {
  if (plan().alloc_limit != 0 && bytes > plan().alloc_limit) return CL_INVALID_BUFFER_SIZE;
  std::lock_guard lock(mutex);
  const uint64_t most = plan().out_of_memory;
  if (most != 0 && held_bytes + bytes > most) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return CL_SUCCESS;
}

void keep(void* key, const Held& one) {
  std::lock_guard lock(mutex);
  held_bytes += one.bytes;
  held()[key] = one;
}

Held give_back(void* key) {
  std::lock_guard lock(mutex);
  const auto found = held().find(key);
  if (found == held().end()) return {};
  const Held one = found->second;
  held_bytes -= one.bytes;
  held().erase(found);
  return one;
}

void tell(cl_int* place, cl_int code) {
  if (place != nullptr) *place = code;
}

void* allocate(cl_context context, size_t bytes, cl_int* code) {
  const cl_int wrong = check_size(bytes);
  void* pointer =
      wrong == CL_SUCCESS ? real().SVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0) : nullptr;
  tell(code, wrong != CL_SUCCESS ? wrong : pointer == nullptr ? CL_OUT_OF_RESOURCES : CL_SUCCESS);
  return pointer;
}

void* device_allocate(cl_context context, cl_device_id, const cl_mem_properties_intel*,
                      size_t bytes, cl_uint, cl_int* code) {
  if (const cl_int no = refused("clDeviceMemAllocINTEL"); no != CL_SUCCESS) {
    tell(code, no);
    return nullptr;
  }
  void* pointer = allocate(context, bytes, code);
  if (pointer != nullptr) keep(pointer, {context, pointer, bytes});
  return pointer;
}

void* host_allocate(cl_context context, const cl_mem_properties_intel* properties, size_t bytes,
                    cl_uint alignment, cl_int* code) {
  return device_allocate(context, nullptr, properties, bytes, alignment, code);
}

cl_int free_allocation(cl_context context, void* pointer) {
  if (give_back(pointer).bytes == 0) return CL_INVALID_VALUE;
  real().SVMFree(context, pointer);
  return CL_SUCCESS;
}

cl_int copy(cl_command_queue queue, cl_bool blocking, void* to, const void* from, size_t bytes,
            cl_uint count, const cl_event* list, cl_event* event) {
  if (const cl_int no = refused("clEnqueueMemcpyINTEL"); no != CL_SUCCESS) return no;
  const cl_int code = real().EnqueueSVMMemcpy(queue, blocking, to, from, bytes, count, list, event);
  if (code == CL_SUCCESS) count_command("clEnqueueMemcpyINTEL", event);
  return code;
}

cl_int fill(cl_command_queue queue, void* to, const void* pattern, size_t width, size_t bytes,
            cl_uint count, const cl_event* list, cl_event* event) {
  if (const cl_int no = refused("clEnqueueMemFillINTEL"); no != CL_SUCCESS) return no;
  const cl_int code =
      real().EnqueueSVMMemFill(queue, to, pattern, width, bytes, count, list, event);
  if (code == CL_SUCCESS) count_command("clEnqueueMemFillINTEL", event);
  return code;
}

cl_int set_pointer(cl_kernel kernel, cl_uint index, const void* pointer) {
  if (const cl_int no = refused("clSetKernelArgMemPointerINTEL"); no != CL_SUCCESS) return no;
  note_address(kernel, index, pointer);
  return real().SetKernelArgSVMPointer(kernel, index, pointer);
}

cl_int set_address(cl_kernel kernel, cl_uint index, cl_ulong address) {
  if (const cl_int no = refused("clSetKernelArgDevicePointerEXT"); no != CL_SUCCESS) return no;
  void* const pointer = reinterpret_cast<void*>(address);
  note_address(kernel, index, pointer);
  return real().SetKernelArgSVMPointer(kernel, index, pointer);
}

template <class Function>
void* erased(Function* function) {
  return reinterpret_cast<void*>(function);
}

bool wants_address(const cl_mem_properties* properties) {
  return properties != nullptr && properties[0] == CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT &&
         properties[1] == CL_TRUE && properties[2] == 0;
}

}  // namespace

void* extension_function(const char* name) {
  const std::map<std::string, void*> unified = {
      {"clDeviceMemAllocINTEL", erased(device_allocate)},
      {"clHostMemAllocINTEL", erased(host_allocate)},
      {"clSharedMemAllocINTEL", erased(device_allocate)},
      {"clMemFreeINTEL", erased(free_allocation)},
      {"clEnqueueMemcpyINTEL", erased(copy)},
      {"clEnqueueMemFillINTEL", erased(fill)},
      {"clSetKernelArgMemPointerINTEL", erased(set_pointer)}};
  const auto found = unified.find(name);
  if (plan().usm && found != unified.end()) return found->second;
  if (plan().address && std::strcmp(name, "clSetKernelArgDevicePointerEXT") == 0) {
    return erased(set_address);
  }
  return nullptr;
}

void* behave(Tag<&Api::GetExtensionFunctionAddressForPlatform>, cl_platform_id, const char* name) {
  return extension_function(name);
}

cl_mem behave(Tag<&Api::CreateBuffer>, cl_context context, cl_mem_flags flags, size_t bytes,
              void* host, cl_int* code) {
  if (const cl_int wrong = check_size(bytes); wrong != CL_SUCCESS) {
    tell(code, wrong);
    return nullptr;
  }
  const cl_mem buffer = real().CreateBuffer(context, flags, bytes, host, code);
  if (buffer != nullptr) keep(buffer, {context, nullptr, bytes});
  return buffer;
}

cl_mem behave(Tag<&Api::CreateBufferWithProperties>, cl_context context,
              const cl_mem_properties* properties, cl_mem_flags flags, size_t bytes, void* host,
              cl_int* code) {
  if (!plan().address || !wants_address(properties)) {
    return real().CreateBufferWithProperties(context, properties, flags, bytes, host, code);
  }
  void* pointer = allocate(context, bytes, code);
  if (pointer == nullptr) return nullptr;
  const cl_mem buffer =
      real().CreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, bytes, pointer, code);
  if (buffer != nullptr) keep(buffer, {context, pointer, bytes});
  return buffer;
}

cl_int behave(Tag<&Api::ReleaseMemObject>, cl_mem buffer) {
  const Held one = give_back(buffer);
  const cl_int code = real().ReleaseMemObject(buffer);
  if (one.pointer != nullptr) real().SVMFree(one.context, one.pointer);
  return code;
}

cl_int behave(Tag<&Api::GetMemObjectInfo>, cl_mem buffer, cl_mem_info what, size_t room, void* out,
              size_t* bytes) {
  if (what != CL_MEM_DEVICE_ADDRESS_EXT) {
    return real().GetMemObjectInfo(buffer, what, room, out, bytes);
  }
  cl_ulong address = 0;
  {
    std::lock_guard lock(mutex);
    const auto found = held().find(buffer);
    if (found != held().end()) address = reinterpret_cast<cl_ulong>(found->second.pointer);
  }
  if (address == 0) return CL_INVALID_OPERATION;
  return answer(&address, sizeof address, room, out, bytes);
}

void* behave(Tag<&Api::SVMAlloc>, cl_context context, cl_svm_mem_flags flags, size_t bytes,
             cl_uint alignment) {
  if (hides_svm()) forbidden("clSVMAlloc");
  if (plan().coarse_svm && (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) != 0) return nullptr;
  if (check_size(bytes) != CL_SUCCESS) return nullptr;
  void* pointer = real().SVMAlloc(context, flags, bytes, alignment);
  if (pointer != nullptr) keep(pointer, {context, pointer, bytes});
  return pointer;
}

void behave(Tag<&Api::SVMFree>, cl_context context, void* pointer) {
  if (hides_svm()) forbidden("clSVMFree");
  give_back(pointer);
  real().SVMFree(context, pointer);
}

cl_int behave(Tag<&Api::EnqueueSVMMemcpy>, cl_command_queue queue, cl_bool blocking, void* to,
              const void* from, size_t bytes, cl_uint count, const cl_event* list,
              cl_event* event) {
  if (hides_svm()) forbidden("clEnqueueSVMMemcpy");
  return real().EnqueueSVMMemcpy(queue, blocking, to, from, bytes, count, list, event);
}

cl_int behave(Tag<&Api::EnqueueSVMMemFill>, cl_command_queue queue, void* to, const void* pattern,
              size_t width, size_t bytes, cl_uint count, const cl_event* list, cl_event* event) {
  if (hides_svm()) forbidden("clEnqueueSVMMemFill");
  return real().EnqueueSVMMemFill(queue, to, pattern, width, bytes, count, list, event);
}

cl_int behave(Tag<&Api::SetKernelArgSVMPointer>, cl_kernel kernel, cl_uint index,
              const void* pointer) {
  if (hides_svm()) forbidden("clSetKernelArgSVMPointer");
  note_address(kernel, index, pointer);
  return real().SetKernelArgSVMPointer(kernel, index, pointer);
}

cl_int behave(Tag<&Api::SetKernelExecInfo>, cl_kernel kernel, cl_kernel_exec_info what,
              size_t bytes, const void* value) {
  const bool unified = plan().usm && what == CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL;
  const bool address = plan().address && what == CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT;
  if (unified || address) return CL_SUCCESS;
  if (hides_svm()) forbidden("clSetKernelExecInfo");
  return real().SetKernelExecInfo(kernel, what, bytes, value);
}

}  // namespace graft::fake_cl
