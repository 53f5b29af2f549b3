// src/kernels/convolution/spatial.h: convolutions whose spatial dimensions are three.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "codegen/ir/builder.h"
#include "kernels/convolution/convolution.h"
#include "kernels/launch/arguments.h"

namespace graft {

// A convolution with spatial dimensions of one element before its others. Views have rank 5.
struct SpatialConvolution {
  TensorView input, weight, output;
  int64_t step[3], padding[3], dilation[3];

  SpatialConvolution(const ConvolutionViews& views, const ConvolutionParameters& parameters);

  // Appends what SpatialParameters declares. narrow: in int32.
  void append(Arguments& arguments, bool narrow = false) const;
};

// Appends the spatial sizes of views of rank 5, triples, then all strides of the views.
void append_spatial(Arguments& arguments, std::initializer_list<const TensorView*> views,
                    std::initializer_list<const int64_t*> triples, bool narrow = false);

// The kernel's side of one.
struct SpatialParameters {
  ir::Value input[3], taps[3], output[3], step[3], padding[3], dilation[3];
  ir::Value input_stride[5], weight_stride[5], output_stride[5];

  // narrow: in int32.
  void declare(ir::Builder& b, bool narrow = false);

  // Splits line into positions at[0..2] within sizes; what is left.
  static ir::Value split(ir::Value line, const ir::Value* sizes, ir::Value* at);
  // Of an element: spatial counts positions.
  static ir::Value offset(const ir::Value* strides, ir::Value outer, ir::Value inner,
                          const ir::Value* spatial);
  // Where a position of the output meets the input through a tap.
  void to_input(const ir::Value* position, const ir::Value* tap, ir::Value* from) const;
  // The other way round; fits, and whether a position of the output is there at all.
  ir::Value to_output(const ir::Value* position, const ir::Value* tap, ir::Value* from,
                      ir::Value fits) const;
};

}  // namespace graft
