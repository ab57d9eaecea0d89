/* folder.h - the files of a compiled folder.
 */
#ifndef BB_MODEL_FOLDER_H
#define BB_MODEL_FOLDER_H

#define BB_FOLDER_PLAN "plan.json"
#define BB_FOLDER_DATA "data.bin"

/* A folder's plan ends with a member that has the hash (XXH3, 128 bits, 32 digits) of all bytes before it: a plan that was
 * damaged may still be one, and kernels trust it.  One without is taken as it is. */
#define BB_FOLDER_HASH ", \"hash\": \""
#define BB_FOLDER_HASH_END "\"}\n"

#endif
