// src/torch/ve/storage.h: storages of the slot, each in front of one of the device that carries it.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include "torch/ve/slot.h"

namespace graft::binding::ve {

// The storage behind outer: the one that it was made in front of, or, for memory that somebody else
// put into it, a new one that keeps outer alive. Both have the same address.
c10::Storage inner_storage(const c10::Storage& outer);

// The data of the storage behind outer data; any other data is returned as it is.
const c10::DataPtr& inner_data(const c10::DataPtr& outer);

// A new storage of the slot in front of inner, which it keeps alive.
c10::Storage outer_storage(c10::Storage inner);

// Whether outer was made in front of inner.
bool paired(const c10::StorageImpl& outer, const c10::StorageImpl& inner);

// After an operator that may have given inner other memory: outer has its address and size again.
// REQUIRES: paired.
void follow(c10::StorageImpl& outer, c10::StorageImpl& inner);

// Memory of the slot's current device; PyTorch keeps it in every storage of the slot.
c10::Allocator& memory();

}  // namespace graft::binding::ve
