// src/torch/version/minor.h: from inside torch: what minor versions name differently, each in a
// file of minor/.
#pragma once

// The build names the newest file that is not newer than its torch.
#include GRAFT_TORCH_MINOR_HEADER
