// src/torch/device/type.h: the one file that names PyTorch's device type and dispatch keys of ours.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>

#include <string>

// For the blocks of TORCH_LIBRARY_IMPL, which take the last part of a DispatchKey's name:
// TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) registers kernels for dense tensors, the sparse
// keys those for COO and for compressed (CSR, CSC, BSR, BSC) ones, the quantized key those for
// quantized tensors, the nested key those for nested tensors of the strided layout; the autocast
// key stands for torch.autocast of the device, the autograd key for dense tensors that autograd
// follows.
#define GRAFT_DISPATCH_KEY PrivateUse1
#define GRAFT_AUTOCAST_KEY AutocastPrivateUse1
#define GRAFT_AUTOGRAD_KEY AutogradPrivateUse1
#define GRAFT_SPARSE_KEY SparsePrivateUse1
#define GRAFT_SPARSE_COMPRESSED_KEY SparseCsrPrivateUse1
#define GRAFT_QUANTIZED_KEY QuantizedPrivateUse1
#define GRAFT_NESTED_KEY NestedTensorPrivateUse1

namespace graft::binding {

// The type of every device of ours; the drivers' devices are its indices.
inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

// The key of our dense tensors.
inline constexpr c10::DispatchKey kDispatchKey = c10::DispatchKey::PrivateUse1;

// The key of our quantized tensors.
inline constexpr c10::DispatchKey kQuantizedKey = c10::DispatchKey::QuantizedPrivateUse1;

// The type and the key of the dense tensors of PyTorch's second slot (ve/slot.h).
inline constexpr c10::DeviceType kSlotType = c10::DeviceType::VE;
inline constexpr c10::DispatchKey kSlotKey = c10::DispatchKey::VE;

// The type's name: "graft" unless a vendor gave it another one.
inline std::string device_name() { return c10::DeviceTypeName(kDeviceType, true); }

// Device number index.
inline c10::Device device_of(c10::DeviceIndex index) { return {kDeviceType, index}; }

}  // namespace graft::binding
