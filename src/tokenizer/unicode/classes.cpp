#include "tokenizer/unicode/classes.h"

namespace bloomery::detail {

#include "tokenizer/unicode/class_tables.inc"

}  // namespace bloomery::detail
