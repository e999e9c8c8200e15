// Bytes that were UTF-8 before something else was done to them, made UTF-8 again as ftfy does.
#pragma once

#include <string>

namespace bloomery {

// Spaces that stand where byte A0, a space in other encodings, makes UTF-8.
void restore_byte_a0(std::string& bytes);
// Sequences in which a byte was lost (1A, or ?) become U+FFFD.
void replace_lossy_sequences(std::string& bytes);
// Pairs of surrogates, each in three bytes, become the character; C0 80 becomes NUL.
void decode_variants(std::string& bytes);

}  // namespace bloomery
