/* safe_file.c - opens files that only their owner can write. */
#include "safe_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *bb_unsafe(const struct stat *status) {
  if (status->st_uid != geteuid() && status->st_uid != 0) return "it belongs to another user";
  if (status->st_mode & (S_IWGRP | S_IWOTH)) return "other users could write it";
  return NULL;
}

int bb_file_open(const char *path, struct stat *status, const char **problem) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0 || fstat(file, status) != 0) {
    int error = errno;
    *problem = strerror(error);
    if (file >= 0) close(file);
    errno = error;
    return -1;
  }
  *problem = S_ISREG(status->st_mode) ? bb_unsafe(status) : "it is no regular file";
  if (!*problem) return file;
  close(file);
  errno = EPERM;
  return -1;
}

const char *bb_file_map(const char *path, bb_file *file) {
  struct stat status;
  const char *problem;
  int handle = bb_file_open(path, &status, &problem);
  *file = (bb_file){"", 0};
  if (handle < 0) return problem;
  if (status.st_size > 0) {
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, handle, 0);
    int error = errno;
    close(handle);
    errno = error;
    if (bytes == MAP_FAILED) return strerror(error);
    *file = (bb_file){bytes, (size_t)status.st_size};
    return NULL;
  }
  close(handle);
  return NULL;
}

void bb_file_unmap(bb_file *file) {
  if (file->size) munmap((void *)(uintptr_t)file->bytes, file->size);
  *file = (bb_file){"", 0};
}
