// The decoders of a tokenizer.json: tokens back to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/json_fields.h"

namespace bloomery::hf {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Changes the tokens in place; the text is what is left, joined.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
  // It turns the spelled bytes of all tokens into one text and does nothing else.
  virtual bool is_byte_level() const { return false; }
};

// From the object under "decoder"; an unknown type is an Error that names it.
std::unique_ptr<Decoder> read_decoder(const JsonFields& object);

// The bytes that a token stands for in a byte-level vocabulary: those that it spells, or its own
// when one of its characters spells none.
std::string byte_level_bytes(const std::string& token);

}  // namespace bloomery::hf
