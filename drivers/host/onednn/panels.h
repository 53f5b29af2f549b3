// drivers/host/onednn/panels.h: weights as oneDNN's fast convolutions read them.
#ifndef GRAFT_DRIVERS_HOST_ONEDNN_PANELS_H_
#define GRAFT_DRIVERS_HOST_ONEDNN_PANELS_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <vector>

namespace graft::host {

// A copy of weights into panels of `width` rows, in which the same word of all rows lies in one
// piece. A word is a number of 32 bits, or two of 16 bits that follow each other along the
// reduction. oneDNN's names of such layouts are Acdb32a, AcdB64a2b and the like.
struct Panels {
  bool paired;                  // words of two numbers
  int64_t rows, row_stride;     // of the source; the stride in numbers
  int64_t apart;                // numbers between the two of a word; 0: words lie in one piece
  int64_t width, count;         // of the panels; behind the last row they hold zeros
  int64_t stride;               // from panel to panel, in words
  std::vector<int32_t> places;  // of each word of a row in its panel, in words
};

// Nothing where it is another kind of copy, or the processor cannot do what fill() does.
std::optional<Panels> panels(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

// Copies on all threads. oneDNN's reorder takes 1.4 to 10 times as long on Zen 4, by shape.
void fill(const Panels& panels, const void* from, void* to);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_ONEDNN_PANELS_H_
