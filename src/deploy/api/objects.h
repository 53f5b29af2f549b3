// src/deploy/api/objects.h: what the handles of graft/deploy.h are.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "deploy/model.h"
#include "graft/deploy.h"

struct graft_model_s {
  graft_model_s(const char* path, graft::Device& device)
      : model(graft::deploy::Artefact(path), device) {}
  graft::deploy::Model model;
  std::atomic<bool> ran{false};
};

// Of a call that waited, or of one that did not.
struct graft_results_s {
  std::vector<graft::deploy::HostResult> all;
  std::unique_ptr<graft::deploy::QueuedResults> queued;
};

struct graft_queue_s {
  graft::deploy::Queue queue;
};

struct graft_device_array_s {
  graft::deploy::DeviceArray array;
};
