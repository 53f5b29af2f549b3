// tests/emulated/veda/ve/cores.h: the cores of one device, on which device code may spread its
// work.
#ifndef GRAFT_TESTS_EMULATED_VEDA_VE_CORES_H_
#define GRAFT_TESTS_EMULATED_VEDA_VE_CORES_H_

namespace emulated {

// Sets how many there are; before any kernel runs.
void start_cores(int count);

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_VE_CORES_H_
