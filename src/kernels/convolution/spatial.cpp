// src/kernels/convolution/spatial.cpp: convolutions whose spatial dimensions are three.
#include "kernels/convolution/spatial.h"

#include <span>

namespace graft {

using namespace ir;

namespace {

TensorView with_three_dimensions(const TensorView& view) {
  TensorView result = view;
  const int added = 5 - view.rank;
  result.rank = 5;
  for (int d = 4; d >= 2; --d) {
    const bool given = d - added >= 2;
    result.sizes[d] = given ? view.sizes[d - added] : 1;
    result.strides[d] = given ? view.strides[d - added] : 0;
  }
  return result;
}

}  // namespace

SpatialConvolution::SpatialConvolution(const ConvolutionViews& views,
                                       const ConvolutionParameters& parameters)
    : input(with_three_dimensions(views.input)),
      weight(with_three_dimensions(views.weight)),
      output(with_three_dimensions(views.output)) {
  const int added = 5 - views.input.rank;
  for (int d = 0; d < 3; ++d) {
    const int from = d - added;
    step[d] = from < 0 ? 1 : parameters.stride[from];
    padding[d] = from < 0 ? 0 : parameters.padding[from];
    dilation[d] = from < 0 ? 1 : parameters.dilation[from];
  }
}

void SpatialConvolution::append(Arguments& arguments, bool narrow) const {
  append_spatial(arguments, {&input, &weight, &output}, {step, padding, dilation}, narrow);
}

void append_spatial(Arguments& arguments, std::initializer_list<const TensorView*> views,
                    std::initializer_list<const int64_t*> triples, bool narrow) {
  for (const TensorView* view : views) arguments.indices(std::span(view->sizes + 2, 3), narrow);
  for (const int64_t* triple : triples) arguments.indices(std::span(triple, 3), narrow);
  for (const TensorView* view : views) arguments.indices(std::span(view->strides, 5), narrow);
}

void SpatialParameters::declare(Builder& b, bool narrow) {
  const auto each = [&](Value* values, int count) {
    for (int d = 0; d < count; ++d) values[d] = narrow ? b.index32() : b.index();
  };
  for (Value* triple : {input, taps, output, step, padding, dilation}) each(triple, 3);
  for (Value* strides : {input_stride, weight_stride, output_stride}) each(strides, 5);
}

Value SpatialParameters::split(Value line, const Value* sizes, Value* at) {
  for (int d = 2; d >= 0; --d) {
    at[d] = line % sizes[d];
    line = line / sizes[d];
  }
  return line;
}

Value SpatialParameters::offset(const Value* strides, Value outer, Value inner,
                                const Value* spatial) {
  Value sum = outer * strides[0] + inner * strides[1];
  for (int d = 0; d < 3; ++d) sum = sum + spatial[d] * strides[2 + d];
  return sum;
}

void SpatialParameters::to_input(const Value* position, const Value* tap, Value* from) const {
  for (int d = 0; d < 3; ++d) from[d] = position[d] * step[d] - padding[d] + tap[d] * dilation[d];
}

Value SpatialParameters::to_output(const Value* position, const Value* tap, Value* from,
                                   Value fits) const {
  for (int d = 0; d < 3; ++d) {
    const Value shifted = position[d] + padding[d] - tap[d] * dilation[d];
    from[d] = shifted / step[d];
    fits = fits & (shifted >= 0) & (shifted % step[d] == 0);
  }
  return fits;
}

}  // namespace graft
