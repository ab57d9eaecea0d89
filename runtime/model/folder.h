/* folder.h - the files of a compiled folder.
 */
#ifndef BB_MODEL_FOLDER_H
#define BB_MODEL_FOLDER_H

#define BB_FOLDER_PLAN "plan.json"
#define BB_FOLDER_DATA "data.bin"

#endif
