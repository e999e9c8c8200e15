// `bloomery tokenizer`: text to ids and back, and vocabularies learnt from text.
#pragma once

#include <ostream>

#include "apps/common/command.h"

namespace bloomery {

int tokenizer(const Arguments& arguments, std::ostream& out);
int tokenizer_encode(const Arguments& arguments, std::ostream& out);
int tokenizer_decode(const Arguments& arguments, std::ostream& out);
int tokenizer_train(const Arguments& arguments, std::ostream& out);
int tokenizer_info(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
