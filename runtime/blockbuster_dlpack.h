/* blockbuster_dlpack.h - the part of DLPack 1.1 that the library speaks, as its specification lays it out
 * (https://dmlc.github.io/dlpack): what stands here is frozen for all versions 1.x.  A program that
 * includes DLPack's own header too includes it first.
 */
#ifndef BLOCKBUSTER_DLPACK_H
#define BLOCKBUSTER_DLPACK_H

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1

typedef struct {
  uint32_t major, minor;
} DLPackVersion;

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLROCM = 10
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 } DLDataTypeCode;

typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: row-major and dense */
  uint64_t byte_offset;
} DLTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif
#endif

#include "blockbuster_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bb_session_bind() of a DLPack tensor, which stays the caller's: its data has to be there as a bound
 * array's has, the struct itself only during the call.  Errors: ARGUMENT (another device or type too). */
BB_API bb_status bb_session_bind_dlpack(bb_session *session, bb_side side, uint32_t index,
                                        const DLTensor *tensor);

/* After a run: takes an output that is not bound out of the session, without a copy.  *tensor is the
 * caller's, who calls its deleter, in any thread; it outlives session and context, but not the
 * context's allocator.  The next run makes new memory for the output.  Errors: ARGUMENT (the output
 * is bound, or was not written since it was taken), MEMORY. */
BB_API bb_status bb_session_take_dlpack(bb_session *session, uint32_t index,
                                        DLManagedTensorVersioned **tensor);

#ifdef __cplusplus
}
#endif
#endif
