// Numbered samples of tokens, whatever they are made of.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// Immutable and shared by threads.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual std::int64_t size() const = 0;
  // Tokens of every sample: the sequence length and one more, for the labels.
  virtual std::int64_t num_tokens() const = 0;
  // Sample k into `out`, of num_tokens() tokens. A k past the end is an Error.
  virtual void read(std::int64_t k, std::span<TokenId> out) const = 0;
  // The text that names caches made of this source.
  virtual const std::string& description() const = 0;
};

}  // namespace bloomery
