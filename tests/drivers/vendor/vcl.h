// tests/drivers/vendor/vcl.h: a made-up vendor's collective library, of the usual form.
#ifndef GRAFT_TESTS_DRIVERS_VENDOR_VCL_H_
#define GRAFT_TESTS_DRIVERS_VENDOR_VCL_H_

#include <cstddef>
#include <cstdint>

struct vcl_communicator;
using vcl_queue = void*;  // of the device's commands

enum vcl_result { VCL_SUCCESS, VCL_TIMEOUT, VCL_INVALID, VCL_UNREACHABLE, VCL_FAILED };
enum vcl_type { VCL_INT32, VCL_INT64, VCL_FLOAT32, VCL_FLOAT64 };
enum vcl_operation { VCL_SUM, VCL_PRODUCT, VCL_MIN, VCL_MAX, VCL_MEAN };

vcl_result vcl_unique_id(void* device, char id[128]);
vcl_result vcl_init(void* device, const char id[128], int rank, int ranks, double seconds,
                    vcl_communicator** out);
vcl_result vcl_abort(vcl_communicator* communicator);
vcl_result vcl_free(vcl_communicator* communicator);

// label: comes back with the queue's errors.
vcl_result vcl_all_reduce(uint64_t send, uint64_t receive, size_t count, vcl_type type,
                          vcl_operation operation, vcl_communicator* communicator, vcl_queue queue,
                          uint32_t label);
vcl_result vcl_reduce(uint64_t send, uint64_t receive, size_t count, vcl_type type,
                      vcl_operation operation, int root, vcl_communicator* communicator,
                      vcl_queue queue, uint32_t label);
vcl_result vcl_broadcast(uint64_t send, uint64_t receive, size_t count, vcl_type type, int root,
                         vcl_communicator* communicator, vcl_queue queue, uint32_t label);
vcl_result vcl_all_gather(uint64_t send, uint64_t receive, size_t count, vcl_type type,
                          vcl_communicator* communicator, vcl_queue queue, uint32_t label);
vcl_result vcl_reduce_scatter(uint64_t send, uint64_t receive, size_t count, vcl_type type,
                              vcl_operation operation, vcl_communicator* communicator,
                              vcl_queue queue, uint32_t label);
vcl_result vcl_send(uint64_t address, size_t count, vcl_type type, int peer,
                    vcl_communicator* communicator, vcl_queue queue, uint32_t label);
vcl_result vcl_receive(uint64_t address, size_t count, vcl_type type, int peer,
                       vcl_communicator* communicator, vcl_queue queue, uint32_t label);
vcl_result vcl_group_start(vcl_communicator* communicator);
vcl_result vcl_group_end(vcl_communicator* communicator);

#endif  // GRAFT_TESTS_DRIVERS_VENDOR_VCL_H_
