// src/torch/version/profiler.h: from inside torch: profiling.
#pragma once

#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#include <torch/csrc/profiler/stubs/base.h>
