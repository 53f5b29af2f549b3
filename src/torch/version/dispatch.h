// src/torch/version/dispatch.h: from inside torch: the dispatcher and its guards.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/COW.h>
#include <c10/core/impl/COWDeleter.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
