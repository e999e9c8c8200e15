// The normalizers of a tokenizer.json: what happens to a text before it is split.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "config/json_fields.h"

namespace bloomery::hf {

// A stretch of the text between added tokens.
struct Stretch {
  std::string text;
  // Its first character comes from the first character of the whole text. Metaspace's scheme
  // "first" asks for it.
  bool at_start = false;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(Stretch& stretch) const = 0;
  // True when apply() would surely leave this text as it is: then no copy need be made.
  virtual bool leaves(std::string_view) const { return false; }
};

// From the object under "normalizer"; an unknown type is an Error that names it.
std::unique_ptr<Normalizer> read_normalizer(const JsonFields& object);

}  // namespace bloomery::hf
