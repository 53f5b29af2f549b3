// src/torch/version/autograd.h: from inside torch: the autograd engine and tracing.
#pragma once

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/node.h>
#include <torch/csrc/jit/frontend/tracer.h>
