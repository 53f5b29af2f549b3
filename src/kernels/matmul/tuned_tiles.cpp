// src/kernels/matmul/tuned_tiles.cpp: the tile shapes that a device's products use.
#include "kernels/matmul/tuned_tiles.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstdio>
#include <mutex>
#include <sstream>

#include "codegen/cache/blob_store.h"
#include "codegen/ir/ir.h"
#include "kernels/matmul/vendor_tiles.h"

namespace graft {
namespace {

constexpr const char* kFirstLine = "graft tuning 1";
constexpr int64_t kLargeSums = 512 * 512;

std::string one_line(std::string text) {
  for (char& c : text) c = c == '\n' || c == '\r' ? ' ' : c;
  return text;
}

// One file per device: another version of the driver finds it, and sees that it is stale.
std::string file_of(const OpenDevice& device) {
  const std::string text = std::string("tuning\n") + device.driver().name() + "\n" +
                           device.properties().vendor + "\n" + device.properties().name;
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

TunedTiles read_kept(OpenDevice& device) {
  const std::optional<std::string> text = blob_store().read(file_of(device));
  if (!text) return {};
  std::string reason;
  if (auto tiles = read_tuning(*text, tuning_fingerprint(device), &reason)) return *tiles;
  std::fprintf(stderr,
               "graft: warning: the tuning of %s ('%s') is not used: %s. `python -m torch_graft "
               "tune` measures again.\n",
               device.label().c_str(), device.properties().name, reason.c_str());
  return {};
}

struct Kept {
  std::mutex mutex;
  std::map<const OpenDevice*, TunedTiles> devices;
};
Kept& kept() {
  static Kept& kept = *new Kept;
  return kept;
}

std::optional<TileShape> tuned(OpenDevice& device, const std::string& row) {
  const std::lock_guard lock(kept().mutex);
  auto found = kept().devices.find(&device);
  if (found == kept().devices.end()) {
    found = kept().devices.emplace(&device, read_kept(device)).first;
  }
  const auto shape = found->second.find(row);
  if (shape == found->second.end()) return std::nullopt;
  return shape->second;
}

}  // namespace

std::string tile_row(TileUse use, uint32_t element_bytes, int64_t m, int64_t n) {
  return fmt::format("{}_{}_{}", use == TileUse::kMatmul ? "matmul" : "convolution",
                     element_bytes > 4 ? 8 : 4, m * n < kLargeSums ? "small" : "large");
}

std::optional<TileShape> tile_for(OpenDevice& device, TileUse use, graft_dtype dtype, int64_t m,
                                  int64_t n) {
  const graft_device_properties& has = device.properties();
  if (has.device_class != GRAFT_GPU_LIKE) return std::nullopt;
  const uint32_t bytes = ir::bytes_of(ir::compute_type(dtype));
  const auto shape = tuned(device, tile_row(use, bytes, m, n));
  const auto fitted = fit_tile(shape.value_or(vendor_tile(has)), has, bytes);
  if (!fitted) return std::nullopt;
  return shrink_tile(*fitted, m, n);
}

std::string tuning_text(const std::string& fingerprint, const TunedTiles& tiles) {
  std::string text = std::string(kFirstLine) + "\n" + one_line(fingerprint) + "\n";
  for (const auto& [row, shape] : tiles) text += row + " " + shape.text() + "\n";
  return text;
}

std::optional<TunedTiles> read_tuning(const std::string& text, const std::string& fingerprint,
                                      std::string* reason) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != kFirstLine) {
    *reason = "it was measured with another version of Graft";
    return std::nullopt;
  }
  if (!std::getline(lines, line) || line != one_line(fingerprint)) {
    *reason = "it was measured with another version of the driver";
    return std::nullopt;
  }
  TunedTiles tiles;
  while (std::getline(lines, line)) {
    const size_t space = line.find(' ');
    const auto shape =
        space == std::string::npos ? std::nullopt : TileShape::parse(line.substr(space + 1));
    if (!shape) {
      *reason = "it is damaged";
      return std::nullopt;
    }
    tiles[line.substr(0, space)] = *shape;
  }
  return tiles;
}

std::string tuning_fingerprint(OpenDevice& device) {
  std::string text;
  const auto append = [](void* context, const void* data, size_t bytes) {
    static_cast<std::string*>(context)->append(static_cast<const char*>(data), bytes);
  };
  const auto slot = device.driver().table().toolchain_fingerprint;
  if (slot != nullptr) slot(device.handle(), {&text, append});
  return std::string(device.properties().name) + " " + device.driver().name() + " " + text;
}

void keep_tuning(OpenDevice& device, const TunedTiles& tiles) {
  blob_store().write(file_of(device), tuning_text(tuning_fingerprint(device), tiles));
  const std::lock_guard lock(kept().mutex);
  kept().devices[&device] = tiles;
}

}  // namespace graft
