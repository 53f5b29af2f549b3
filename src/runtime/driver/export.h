// src/runtime/driver/export.h: marks what libgraft.so offers to the binding and to other programs.
#pragma once

// Everything in the core is hidden unless it carries this mark: put it on a class or a function
// that src/torch (a second library) calls. The unit tests link the objects and need no mark.
#define GRAFT_EXPORT __attribute__((visibility("default")))
