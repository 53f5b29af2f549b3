// src/codegen/print/dialect.h: what a C-like language spells differently from the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/ir.h"

namespace graft::ir {

// The printer writes what all C-like languages share; a dialect is the data and the few overrides
// that they do not. Stateless, static storage. A new one is a file in dialects/ with an object of a
// derived class, which registers itself; nothing else names it.
class Dialect {
 public:
  // name: graft_device_properties.dialect.
  Dialect(const char* name, Family family);
  virtual ~Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;

  const char* name() const { return name_; }
  Family family() const { return family_; }

  // Top of every program: typedefs of bool, i8 .. u64, f32, f64 and what open_kernel needs.
  virtual std::string_view head() const = 0;

  // Before a function: "static inline ".
  virtual std::string_view function_qualifier() const = 0;

  // Opens the kernel up to the point where the body's statements follow, with names p0, p1, ... for
  // the parameters (pointers to storage_type(dtype); scalars as compute types) and "item" (i64).
  virtual std::string open_kernel(const Kernel& kernel) const = 0;
  virtual std::string_view close_kernel() const { return "}\n"; }

  // The line before a loop of independent iterations. trips: how many, 0: known at run time;
  // instructions: about how many one iteration takes.
  virtual std::string vector_loop(int64_t trips, size_t instructions) const {
    (void)trips, (void)instructions;
    return "";
  }

  // The same where the loop takes the largest value of an i32 variable.
  virtual std::string vector_maximum(const std::string& variable) const {
    (void)variable;
    return "";
  }

  // The language's function for f32 arguments beyond largest_argument() of math.h, which need not
  // run in vectors. Empty where there is none: the definition is then used for all arguments.
  virtual std::string far_math(Math function) const {
    (void)function;
    return "";
  }

  // The language's function, called as name(a, b); empty where it has none that keeps the bound of
  // math.h: then the definition in math.h is printed into the program.
  virtual std::string math(Math function, Type type) const = 0;

  // Functions graft_quotient_i64(a, b) and graft_remainder_i64(a, b), as kDiv and kRem are, for
  // divisors that the innermost loop does not change; empty where the language's own will do.
  virtual std::string_view invariant_division() const { return ""; }

  // Functions that convert kTileElements of tile.h in memory, graft_f32s_from_<dtype>(to, from) and
  // graft_<dtype>s_from_f32(to, from); empty where the language has no instruction for it: then
  // every element of the half type is converted alone, by its definition in math.h.
  virtual std::string_view tile_functions(graft_dtype dtype) const {
    (void)dtype;
    return "";
  }

  // The function that asks for the cache line at a pointer, which may be past the end of what it
  // points into; empty where there is none.
  virtual std::string_view prefetch() const { return ""; }

  // A union of C99 unless overridden.
  virtual std::string bitcast(Type to, Type from, const std::string& value) const;

  // Bytes of parameters that a kernel may have on every device of the language; 0: as many as it
  // likes.
  virtual int parameter_bytes() const { return 0; }

  // Of GPU-like languages, whose head() also defines graft_sub_group_place, _index and _size, and
  // graft_shuffle(value, mask), for devices that have them.
  virtual std::string_view barrier() const { return ""; }
  virtual std::string_view local_item() const { return ""; }
  virtual std::string_view local_memory() const { return ""; }   // "__local "
  virtual std::string_view address_space() const { return ""; }  // of parameters: "__global "

  // Types f32x4, f32x8, f32x16 with + - *, i32x8 with + - & | ^ >> and graft_pair_dot_i32x8(a, b,
  // c), and for each the functions (or macros) graft_splat_<type>(x), graft_load_<type>(pointer)
  // and graft_store_<type>(pointer, vector), of any alignment. Printed into programs that use
  // vectors; empty where the language has none.
  virtual std::string_view vectors() const { return ""; }

 private:
  const char* name_;
  Family family_;
};

// Every dialect, in no order that holds; static storage. Any thread.
const std::vector<const Dialect*>& all_dialects();

// The dialect of that name, null when there is none. Any thread.
const Dialect* find_dialect(std::string_view name);

// The type of a stored element: half types are u16, bool is u8, complex is its part.
const char* storage_type(graft_dtype dtype);

}  // namespace graft::ir
